// What instructions.py counts: one function for each path of a call, which callgrind sums up by name. Each
// runs its path `kCalls` times, once it is warm.
#include <cstdint>

#include "tenon/dispatch/library.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/nn.h"
#include "tenon/ops/factory/from_data.h"

namespace {

using namespace tenon;

constexpr int kCalls = 1000;

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
  nn::Sequential model{nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 128), nn::ReLU(),
                       nn::Linear(128, 10)};
  Tensor sample = ones({1, 64}), label = tensor(std::vector<int64_t>{3});
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

/// Ten nodes and their leaf; one call is one node.
void backward_ten(State& s) {
  Tensor t = s.leaf;
  for (int i = 0; i < 10; ++i) t = mul(t, s.b);
  t.backward();
}

template <void (*path)(State&), int count>
[[gnu::always_inline]] inline void repeat(State& s) {
  for (int i = 0; i < count; ++i) path(s);
}

}  // namespace

// Names that callgrind reports: measure_NAME.
#define MEASURE(name, path, count)                                                        \
  extern "C" [[gnu::noinline]] void measure_##name(State& s) { repeat<&path, count>(s); } \
  extern "C" [[gnu::noinline]] void warm_##name(State& s) { repeat<&path, 100>(s); }

MEASURE(dispatch, dispatch, kCalls)
MEASURE(empty, make_one, kCalls)
MEASURE(add_out, add_into, kCalls)
MEASURE(add, add_new, kCalls)
MEASURE(add_recorded, add_recorded, kCalls)
MEASURE(transpose, transpose_view, kCalls)
MEASURE(sum, sum_all, kCalls)
MEASURE(mean, mean_all, kCalls)
MEASURE(amax_along, largest, kCalls)
MEASURE(log_softmax, log_softmax_of_ten, kCalls)
MEASURE(mlp_forward_and_backward, train_mlp, kCalls)
MEASURE(add_bias, add_bias, kCalls)
MEASURE(mul_by_zero_dim, mul_by_number, kCalls)
MEASURE(sum_of_ten, sum_ten, kCalls)
MEASURE(argmax_of_ten, argmax_ten, kCalls)
MEASURE(record_and_backward_per_node, backward_ten, kCalls / 10)

int main() {
  State state;
#define RUN(name) warm_##name(state), measure_##name(state)
  RUN(dispatch);
  RUN(empty);
  RUN(add_out);
  RUN(add);
  RUN(add_recorded);
  RUN(transpose);
  RUN(sum);
  RUN(mean);
  RUN(amax_along);
  RUN(log_softmax);
  RUN(mlp_forward_and_backward);
  RUN(add_bias);
  RUN(mul_by_zero_dim);
  RUN(sum_of_ten);
  RUN(argmax_of_ten);
  RUN(record_and_backward_per_node);
  return 0;
}
