#include <fmt/core.h>

#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/rows/run_rows.h"
#include "tenon/expr/plain_reduction.h"
#include "tenon/ops/device_stubs.h"

namespace tenon {

void detail::HostArgument<const RowsLaunch&>::add(HostCopies& copies, Access) {
  throw_error(ErrorKind::NotImplemented, fmt::format("{}: row expressions are not implemented for device {}",
                                                     value.name, to_string(copies.device())));
}

void detail::StubArg<const ops::ReduceCall&>::push(Stack& s, const ops::ReduceCall& call) {
  s.push(call.self);
  s.push(std::string(expr::name(call.what.kind)));
  s.push(call.what.mean);
  s.push(call.what.elements);
  s.push(call.over);
  for (size_t i = 0; i < 2; ++i) s.push(i < call.results.size() ? *call.results[i] : Tensor());
}
void detail::HostArgument<const ops::ReduceCall&>::add(HostCopies& copies, Access) {
  self = given.self;
  copies.add(self, Access::Read);
  for (size_t i = 0; i < given.results.size(); ++i) {
    results[i] = *given.results[i];
    copies.add(results[i], Access::Write);
  }
}
const ops::ReduceCall& detail::HostArgument<const ops::ReduceCall&>::get() {
  for (size_t i = 0; i < given.results.size(); ++i) places[i] = &results[i];
  return made.emplace(
      ops::ReduceCall{given.name, given.what, self, given.over, {places, given.results.size()}, given.rows});
}

}  // namespace tenon

namespace tenon::ops {

// A stub, its C++ type and its signature.
#define TENON_DEFINE_STUB(name, signature, ...)              \
  constinit Stub<__VA_ARGS__> name##_stub(#name, signature); \
  static const tenon::detail::StubListing name##_listing(name##_stub, &cpu::name)

// Without a signature: it takes C++ functions only.
constinit Stub<void(const RowsLaunch&)> rows_stub("rows");
static const tenon::detail::StubListing rows_listing(rows_stub, &cpu::run_rows);
TENON_DEFINE_STUB(
    reduce,
    "(Tensor self, str kind, bool mean, bool elements, int[] over, Tensor(a!) out, Tensor(b!)? second) -> ()",
    void(const ReduceCall&));
TENON_DEFINE_STUB(copy, "(Tensor(a!) dst, Tensor src, bool non_blocking) -> ()",
                  void(const Tensor&, const Tensor&, bool));
TENON_DEFINE_STUB(fill, "(Tensor(a!) dst, Scalar value) -> ()", void(const Tensor&, const Scalar&));
TENON_DEFINE_STUB(arange, "(Tensor(a!) dst, Scalar start, Scalar step) -> ()",
                  void(const Tensor&, const Scalar&, const Scalar&));
TENON_DEFINE_STUB(linspace, "(Tensor(a!) dst, float start, float end) -> ()",
                  void(const Tensor&, double, double));
TENON_DEFINE_STUB(equal, "(Tensor a, Tensor b) -> bool", bool(const Tensor&, const Tensor&));
TENON_DEFINE_STUB(nonzero, "(Tensor self) -> Tensor", Tensor(const Tensor&));
TENON_DEFINE_STUB(masked_select, "(Tensor self, Tensor mask) -> Tensor",
                  Tensor(const Tensor&, const Tensor&));
TENON_DEFINE_STUB(
    indexed,
    "(str op, str argument, int[] sizes, int combine, Scalar alpha, bool wraps, bool fresh, Tensor(a!) to, "
    "int[] to_strides, Tensor[] to_positions, int[] to_numbers, Tensor src, int[] src_strides, "
    "Tensor[] src_positions, int[] src_numbers) -> ()",
    void(const IndexedCall&));
TENON_DEFINE_STUB(
    axes_sum,
    "(Tensor self, int[] axes, int[] begins, int[] places, float[] weights, float[] divisors, float[] "
    "input_divisors, bool accumulate, Tensor(a!) out) -> ()",
    void(const Tensor&, std::span<const Axis>, bool, Tensor&));
TENON_DEFINE_STUB(
    axes_max,
    "(Tensor self, int[] axes, int[] begins, int[] places, float[] weights, float[] divisors, float[] "
    "input_divisors, Tensor(a!) values, Tensor(b!) indices) -> ()",
    void(const Tensor&, std::span<const Axis>, Tensor&, Tensor&));
TENON_DEFINE_STUB(
    axes_max_values,
    "(Tensor self, int[] axes, int[] begins, int[] places, float[] weights, float[] divisors, float[] "
    "input_divisors, Tensor(a!) out) -> ()",
    void(const Tensor&, std::span<const Axis>, Tensor&));
TENON_DEFINE_STUB(
    axes_copy,
    "(Tensor self, int[] axes, int[] begins, int[] places, float[] weights, float[] divisors, float[] "
    "input_divisors, Scalar otherwise, Tensor(a!) out) -> ()",
    void(const Tensor&, std::span<const Axis>, const Scalar&, Tensor&));
TENON_DEFINE_STUB(uniform, "(Tensor(a!) dst, float low, float high, int[3] state) -> ()",
                  void(const Tensor&, double, double, PhiloxState));
TENON_DEFINE_STUB(normal, "(Tensor(a!) dst, float mean, float std, int[3] state) -> ()",
                  void(const Tensor&, double, double, PhiloxState));
TENON_DEFINE_STUB(randint, "(Tensor(a!) dst, int low, int range, int[3] state) -> ()",
                  void(const Tensor&, int64_t, uint64_t, PhiloxState));
TENON_DEFINE_STUB(bernoulli, "(Tensor(a!) dst, Tensor p, int[3] state) -> ()",
                  void(const Tensor&, const Tensor&, PhiloxState));
TENON_DEFINE_STUB(randperm, "(Tensor(a!) dst, int[3] state) -> ()", void(const Tensor&, PhiloxState));

#undef TENON_DEFINE_STUB

}  // namespace tenon::ops

namespace tenon::detail {

void StubArg<std::span<const Axis>>::push(Stack& s, std::span<const Axis> axes) {
  Dims numbers, begins, places;
  std::vector<double> weights, divisors, input_divisors;
  const auto append = [&](auto& all, const auto& of_axis) {
    for (const auto v : of_axis) all.push_back(v);
    numbers.push_back(static_cast<int64_t>(of_axis.size()));
  };
  for (const Axis& a : axes) {
    for (const int64_t n :
         {static_cast<int64_t>(a.taps), a.inputs, a.outputs, a.kernel, a.stride, a.pad, a.dilation})
      numbers.push_back(n);
    append(begins, a.begins);
    append(places, a.places);
    append(weights, a.weights);
    append(divisors, a.divisors);
    append(input_divisors, a.input_divisors);
  }
  s.push(std::move(numbers));
  s.push(std::move(begins));
  s.push(std::move(places));
  for (const auto* list : {&weights, &divisors, &input_divisors}) s.push(std::span<const double>(*list));
}

}  // namespace tenon::detail
