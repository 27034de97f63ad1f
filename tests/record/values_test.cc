// Dtypes, random numbers, modes, errors that depend on values, and memory that fails.
#include "tenon/core/generator.h"
#include "tenon/core/strict.h"
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(RecordedValues, DtypesThatMix) {
  alike([](auto c) {
    Tensors all;
    for (const DType t : {kFloat16, kBFloat16, kInt8, kUInt8, kBool, kInt64, kFloat64, kComplex64}) {
      auto f = c([&](const Tensor& x) {
        const Tensor y = x.to(t);
        Tensors made{y + y, y * 2, y + tensor({1, 2, 3}), y.sum(), y.slice(0, 1, 1) * 2, y.eq(0)};
        made.push_back(y.select(0, 0) * ramp({3}));
        return made;
      });
      for (const Tensor& made : f(ramp({3}))) all.push_back(made);
    }
    return all;
  });
}

TEST(RecordedValues, ANumberThatDoesNotFitThrowsAtTheCall) {
  record::Scope scope(record::new_program(), kAll);
  const Tensor x = ramp({3}).to(kInt32) * 2;
  EXPECT_THROW(x + (int64_t{1} << 40), Error);
  scope.end();
}

TEST(RecordedValues, RandomNumbersComeFromTheirPlacesInTheStream) {
  alike([](auto c) {
    Generator own(7);
    auto f = c([&](const Tensor& x) {
      const Tensor dead = randn({10});
      Tensors made{dropout(x, 0.5, true), randn({4}), randperm(6), rand({3}, own)};
      manual_seed(5);
      made.push_back(x + randn({3}));
      return made;
    });
    Tensors all = f(ramp({3}));
    for (const Tensor& t : f(ramp({3}))) all.push_back(t);
    all.push_back(randn({2}));
    all.push_back(rand({2}, own));
    return all;
  });
}

TEST(RecordedValues, ModesThatAreSwitchedInside) {
  alike([](auto c) {
    Tensor w = ramp({3}).requires_grad_();
    auto f = c([&] {
      Tensors made{w * 2};
      {
        const NoGradGuard guard;
        made.push_back(w * 3);
      }
      {
        const InferenceMode inference;
        made.push_back((w * 4).clone());
      }
      set_strict(true);
      made.push_back(ramp({40, 40}).mm(ramp({40, 40})));
      set_strict(false);
      EXPECT_EQ(made[0].requires_grad(), true);
      EXPECT_EQ(made[1].requires_grad(), false);
      return Tensors{made[0].detach(), made[1], made[3]};
    });
    return f();
  });
}

TEST(RecordedValues, ABadIndexNamesItsOperatorAndSparesWhatDoesNotDependOnIt) {
  Tensor x = ramp({4});
  const Tensor wrong = tensor({1, 9});
  Tensor good, bad;
  auto f = compile(
      [&] {
        x.add_(1);
        bad = x.index_select(0, wrong) * 2;
        good = x.exp();
      },
      kAll);
  const std::string said = error_of(f);
  EXPECT_NE(said.find("index_select"), std::string::npos) << said;
  EXPECT_TRUE(same_bits(x, ramp({4}) + 1));
  EXPECT_TRUE(same_bits(good, (ramp({4}) + 1).exp()));
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(error_of([&] { bad.data_ptr(); }).find("index_select"), std::string::npos);
}

TEST(RecordedValues, MemoryThatFailsLeavesInputsAsTheyWere) {
  const Tensor x = randn({5000}), before = x.clone();
  auto f = compile([&] { return (x * 2).cumsum(0); }, kAll);
  fail_cpu_allocation_after(1, 16 << 10);
  EXPECT_THROW(f(), Error);
  fail_cpu_allocation_after(0, 0);
  EXPECT_TRUE(same_bits(x, before));
  EXPECT_TRUE(same_bits(f(), (x * 2).cumsum(0)));
}

}  // namespace
}  // namespace tenon
