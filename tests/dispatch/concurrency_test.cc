#include <atomic>
#include <thread>

#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

constexpr int kRounds = 300;

struct Counted : detail::ClosureBase {
  explicit Counted(float v) : value(v) { ++alive; }
  ~Counted() override {
    value = -1;
    --alive;
  }
  float value;
  static inline std::atomic<int> alive{0};
};

void call_counted(const Kernel& kernel, const OperatorHandle&, DispatchKeySet, Stack& stack) {
  const float value = static_cast<const Counted*>(kernel.data)->value;
  stack.clear();
  stack.push(one(value));
}

CppFunction counted(float value) {
  return CppFunction::from_closure(std::make_shared<Counted>(value), &call_counted);
}

/// Runs `work` on threads beside `change` on this one, until `change` is done.
template <class Work, class Change>
void race(const Work& work, const Change& change) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) work();
    });
  }
  change();
  done = true;
  for (auto& t : threads) t.join();
}

TEST(Concurrency, CallsRaceWithRegistrationAndRemoval) {
  Library def = declare("race1");
  def.def(
      "op(Tensor a) -> Tensor", +[](const Tensor&) { return one(1); });
  const auto op = find("race1::op").typed<Tensor(const Tensor&)>();
  race(
      [&] {
        const float v = value_of(op.call(one()));
        EXPECT_TRUE(v == 1 || v == 2) << v;
      },
      [] {
        for (int i = 0; i < kRounds; ++i) {
          Library impl = implement("race1", "CPU");
          impl.impl(
              "op", +[](const Tensor&) { return one(2); });
        }
      });
  EXPECT_EQ(value_of(op.call(one())), 1);
}

TEST(Concurrency, RemovedClosureOutlivesItsCalls) {
  Library def = declare("race2");
  def.def(
      "op(Tensor a) -> Tensor", +[](const Tensor&) { return one(1); });
  const auto op = find("race2::op").typed<Tensor(const Tensor&)>();
  race(
      [&] {
        const float v = value_of(op.call(one()));
        EXPECT_TRUE(v == 1 || v == 2) << v;
      },
      [] {
        for (int i = 0; i < kRounds; ++i) {
          Library impl = implement("race2", "CPU");
          impl.impl("op", counted(2));
        }
      });
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Concurrency, FallbacksBackendsAndLookUpsRace) {
  Library def = declare("race3");
  def.def("op(Tensor a) -> Tensor");
  Library base = implement("race3", "CPU");
  base.impl(
      "op", +[](const Tensor&) { return one(1); });
  const auto op = find("race3::op").typed<Tensor(const Tensor&)>();
  const Backend raced = register_backend("raced", "Raced");
  Tensor there = one();
  there.impl()->set_keys(DispatchKeySet(Functionality::Dense, raced));
  race(
      [&] {
        EXPECT_EQ(value_of(op.call(one())), 1);
        try {
          EXPECT_EQ(value_of(op.call(there)), 3);
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
        }
        EXPECT_TRUE(Dispatcher::singleton().find_op("race3::op"));
        Dispatcher::singleton().dump_table(op);
      },
      [] {
        for (int i = 0; i < kRounds / 10; ++i) {
          Library fallback = implement("_", "Raced");
          fallback.fallback(counted(3));
          Library other = declare("race3");
          other.def("temporary(Tensor a) -> Tensor");
        }
      });
}

TEST(Concurrency, SeveralThreadsRegisterAtOnce) {
  Library def = declare("race4");
  def.def(
      "op(Tensor a) -> Tensor", +[](const Tensor&) { return one(1); });
  const auto op = find("race4::op").typed<Tensor(const Tensor&)>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds / 4; ++round) {
        Library impl = implement("race4", "CPU");
        impl.impl(
            "op", +[](const Tensor&) { return one(2); });
        EXPECT_EQ(value_of(op.call(one())), 2);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(value_of(op.call(one())), 1);
}

}  // namespace
}  // namespace tenon
