// What instructions.py counts: one function for each path, which callgrind sums up by name. Each runs its
// path so many times as its name says, once it is warm.
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "tenon/builder/graph.h"
#include "tenon/cache/plan_cache.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/nn.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"
#include "tenon/record/replay.h"

namespace {

using namespace tenon;

/// Keeps a result that nobody uses.
template <class T>
void keep(T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

int64_t none(const Tensor&) { return 0; }
TENON_LIBRARY(instructions, m) { m.def("none(Tensor a) -> int"); }
TENON_LIBRARY_IMPL(instructions, CPU, m) { m.impl("none", &none); }

struct State {
  TypedOperator<int64_t(const Tensor&)> none =
      Dispatcher::singleton().find_schema_or_throw("instructions::none").typed<int64_t(const Tensor&)>();
  Tensor a = ones({1}), b = ones({1}), out = ones({1});
  Tensor matrix = ones({3, 4}), square = ones({64, 64});
  Tensor leaf = ones({1}).requires_grad_();
  Tensor scores = ones({1, 10}), ten = ones({10}), number = ones({});
  Dims one{1};
  Tensor row = ones({64});
  nn::Sequential model{nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 128), nn::ReLU(),
                       nn::Linear(128, 10)};
  Tensor sample = ones({1, 64}), label = tensor(std::vector<int64_t>{3});
  // Of recorded and built programs.
  std::optional<record::Scope> scope;
  Tensor result;
  std::unique_ptr<struct Built> built;
  std::unique_ptr<struct Replayed> replayed;
};

void dispatch(State& s) { s.none.call(s.a); }
void make_one(State& s) {
  Tensor t = empty(s.one);
  keep(t);
}
void add_into(State& s) { add_out(s.out, s.a, s.b); }
void add_new(State& s) {
  Tensor t = add(s.a, s.b);
  keep(t);
}
void add_recorded(State& s) {
  Tensor t = add(s.leaf, s.b);
  keep(t);
}
void transpose_view(State& s) {
  Tensor t = transpose(s.matrix, 0, 1);
  keep(t);
}

void sum_all(State& s) {
  Tensor t = sum(s.square);
  keep(t);
}
void mean_all(State& s) {
  Tensor t = mean(s.square);
  keep(t);
}
void largest(State& s) {
  Tensor t = amax(s.matrix, s.one);
  keep(t);
}

void log_softmax_of_ten(State& s) {
  Tensor t = log_softmax(s.scores, 1);
  keep(t);
}

/// One sample through three layers and back.
void train_mlp(State& s) {
  cross_entropy_loss(s.model(s.sample), s.label).backward();
  for (const Tensor& p : s.model.parameters()) const_cast<Tensor&>(p).set_grad({});
}

void add_bias(State& s) {
  Tensor t = add(s.scores, s.ten);
  keep(t);
}
void mul_by_number(State& s) {
  Tensor t = mul(s.ten, s.number);
  keep(t);
}
void sum_ten(State& s) {
  Tensor t = sum(s.ten);
  keep(t);
}
void argmax_ten(State& s) {
  Tensor t = argmax(s.ten);
  keep(t);
}

/// Ten nodes and their leaf.
void backward_ten(State& s) {
  Tensor t = s.leaf;
  for (int i = 0; i < 10; ++i) t = mul(t, s.b);
  t.backward();
}

// Recorded and built programs: sums and products of 64 elements, without reads, so that one segment has all
// of them.

constexpr int kChain = 10;

/// A chain of calls, each on the last one's result.
Tensor chain(State& s) {
  Tensor t = s.row;
  for (int i = 0; i < kChain; i += 2) t = add(mul(t, s.row), s.row);
  return t;
}

using Step = void (*)(State&);

/// Records a chain in a scope of `program`; `record` and `compute` do the two parts.
template <Step record, Step compute>
void recorded(State& s, uint64_t program) {
  s.scope.emplace(program, record::ScopeOptions{.threshold = 0});
  record(s);
  compute(s);
  s.result = {};
  s.scope.reset();
}
void record_chain(State& s) { s.result = chain(s); }
void compute(State& s) { s.scope->end(); }

/// A plan of the builder, and the addresses that it runs at.
struct Built {
  Tensor x = ones({64}), y = ones({64}), out = empty({64});
  builder::Graph graph;
  Address addresses[3];

  Built() {
    auto &tx = graph.tensor_like(x), &ty = graph.tensor_like(y);
    graph.add(graph.mul(tx, ty), ty).set_output();
    graph.build();
    const Tensor* const tensors[] = {&x, &y, &out};
    for (size_t i = 0; i < 3; ++i) addresses[i] = reinterpret_cast<Address>(tensors[i]->data_ptr());
  }
};

/// A captured chain.
struct Replayed {
  std::optional<record::Replay> replay;
  std::vector<Storage> storages;

  explicit Replayed(State& s) {
    record::Recorder& recorder = record::Recorder::current();
    const PhiloxState before = default_generator()->state();
    record::RecordedSegment copy;
    const uint64_t scope = recorder.begin(record::new_program(), {.threshold = 0, .trust_shared = true});
    recorder.capture(&copy);
    const Tensor result = chain(s);
    recorder.end(scope);
    recorder.capture(nullptr);
    std::vector<bool> results;
    for (const auto& slot : copy.slots()) {
      results.push_back(slot.is_wanted);
      storages.push_back(slot.is_input ? slot.storage : Storage());
    }
    replay.emplace(copy, results, before, default_generator()->state());
  }
};

template <void (*path)(State&), int count>
[[gnu::always_inline]] inline void repeat(State& s) {
  for (int i = 0; i < count; ++i) path(s);
}

}  // namespace

void execute(State& s) { s.built->graph.plan()->execute(s.built->addresses, {}); }
void run_replay(State& s) {
  s.replayed->storages.back() = {};  // the last run's result
  s.replayed->replay->run(s.replayed->storages);
}

// Names that callgrind reports: measure_COUNT_NAME.
#define MEASURE(name, path, count)                                                                  \
  extern "C" [[gnu::noinline]] void measure_##count##_##name(State& s) { repeat<&path, count>(s); } \
  extern "C" [[gnu::noinline]] void warm_##name(State& s) { repeat<&path, 100>(s); }
// One part of a path, between whose calls are the others'. The comment keeps the compiler from making one
// function of two that are alike.
#define MEASURE_PART(name, part, count)                                  \
  extern "C" [[gnu::noinline]] void measure_##count##_##name(State& s) { \
    asm volatile("# " #name);                                            \
    part(s);                                                             \
  }

MEASURE(dispatch, dispatch, 1000)
MEASURE(empty, make_one, 1000)
MEASURE(add_out, add_into, 1000)
MEASURE(add, add_new, 1000)
MEASURE(add_recorded, add_recorded, 1000)
MEASURE(transpose, transpose_view, 1000)
MEASURE(sum, sum_all, 1000)
MEASURE(mean, mean_all, 1000)
MEASURE(amax_along, largest, 1000)
MEASURE(log_softmax, log_softmax_of_ten, 1000)
MEASURE(mlp_forward_and_backward, train_mlp, 1000)
MEASURE(add_bias, add_bias, 1000)
MEASURE(mul_by_zero_dim, mul_by_number, 1000)
MEASURE(sum_of_ten, sum_ten, 1000)
MEASURE(argmax_of_ten, argmax_ten, 1000)
MEASURE(record_and_backward_of_ten, backward_ten, 100)

MEASURE_PART(record_known_of_ten, record_chain, 1000)
MEASURE_PART(flush_known_of_ten, compute, 1000)
MEASURE_PART(record_new_of_ten, record_chain, 20)
MEASURE_PART(plan_new_of_ten, compute, 20)
MEASURE_PART(plan_from_file_of_ten, compute, 20)
MEASURE(execute_of_two, execute, 1000)
MEASURE(replay_of_ten, run_replay, 1000)

#define RUN(count, name) warm_##name(state), measure_##count##_##name(state)

/// Its plans are in a folder of its own.
void run_recorded(State& state) {
  char folder[] = "/tmp/tenon-instructions-XXXXXX";
  if (!mkdtemp(folder)) std::abort();
  setenv("TENON_CACHE", folder, 1);
  cache::PlanCache& cache = cache::PlanCache::get();
  for (int i = 0; i < 20; ++i) {
    cache.clear();
    recorded<&measure_20_record_new_of_ten, &measure_20_plan_new_of_ten>(state, record::new_program());
    cache.write();
  }
  for (int i = 0; i < 20; ++i)
    recorded<&record_chain, &measure_20_plan_from_file_of_ten>(state, record::new_program());
  state.built = std::make_unique<Built>();
  RUN(1000, execute_of_two);
  state.replayed = std::make_unique<Replayed>(state);
  RUN(1000, replay_of_ten);
  const uint64_t program = record::new_program();
  for (int i = 0; i < 100; ++i) recorded<&record_chain, &compute>(state, program);
  for (int i = 0; i < 1000; ++i)
    recorded<&measure_1000_record_known_of_ten, &measure_1000_flush_known_of_ten>(state, program);
  cache.clear();
  std::filesystem::remove_all(folder);
}

int main() {
  State state;
  RUN(1000, dispatch);
  RUN(1000, empty);
  RUN(1000, add_out);
  RUN(1000, add);
  RUN(1000, add_recorded);
  RUN(1000, transpose);
  RUN(1000, sum);
  RUN(1000, mean);
  RUN(1000, amax_along);
  RUN(1000, log_softmax);
  RUN(1000, mlp_forward_and_backward);
  RUN(1000, add_bias);
  RUN(1000, mul_by_zero_dim);
  RUN(1000, sum_of_ten);
  RUN(1000, argmax_of_ten);
  RUN(100, record_and_backward_of_ten);
  run_recorded(state);
  return 0;
}
