#include <fmt/core.h>

#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/rows/run_rows.h"
#include "tenon/expr/plain_reduction.h"
#include "tenon/ops/device_stubs.h"

namespace tenon {

void detail::StubArg<const RowsLaunch&>::push(Stack&, const RowsLaunch& launch) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: row expressions do not go to functions on boxed values", launch.name));
}
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
  for (const Tensor* result : call.results) s.push(*result);
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

#define TENON_DEFINE_STUB(name, ...)              \
  constinit Stub<__VA_ARGS__> name##_stub(#name); \
  static const tenon::detail::StubListing name##_listing(name##_stub, &cpu::name)

constinit Stub<void(const RowsLaunch&)> rows_stub("rows");
static const tenon::detail::StubListing rows_listing(rows_stub, &cpu::run_rows);
TENON_DEFINE_STUB(reduce, void(const ReduceCall&));
TENON_DEFINE_STUB(copy, void(const Tensor&, const Tensor&, bool));
TENON_DEFINE_STUB(fill, void(const Tensor&, const Scalar&));
TENON_DEFINE_STUB(arange, void(const Tensor&, const Scalar&, const Scalar&));
TENON_DEFINE_STUB(linspace, void(const Tensor&, double, double));
TENON_DEFINE_STUB(equal, bool(const Tensor&, const Tensor&));
TENON_DEFINE_STUB(nonzero, Tensor(const Tensor&));
TENON_DEFINE_STUB(masked_select, Tensor(const Tensor&, const Tensor&));
TENON_DEFINE_STUB(indexed, void(const IndexedCall&));
TENON_DEFINE_STUB(axes_sum, void(const Tensor&, std::span<const Axis>, bool, Tensor&));
TENON_DEFINE_STUB(axes_max, void(const Tensor&, std::span<const Axis>, Tensor&, Tensor&));
TENON_DEFINE_STUB(axes_copy, void(const Tensor&, std::span<const Axis>, const Scalar&, Tensor&));
TENON_DEFINE_STUB(uniform, void(const Tensor&, double, double, PhiloxState));
TENON_DEFINE_STUB(normal, void(const Tensor&, double, double, PhiloxState));
TENON_DEFINE_STUB(randint, void(const Tensor&, int64_t, uint64_t, PhiloxState));
TENON_DEFINE_STUB(bernoulli, void(const Tensor&, const Tensor&, PhiloxState));
TENON_DEFINE_STUB(randperm, void(const Tensor&, PhiloxState));

#undef TENON_DEFINE_STUB

}  // namespace tenon::ops

namespace tenon::detail {

void StubArg<std::span<const Axis>>::push(Stack& s, std::span<const Axis> axes) {
  s.push(static_cast<int64_t>(axes.size()));
  for (const Axis& a : axes) {
    s.push(Dims{static_cast<int64_t>(a.taps), a.inputs, a.outputs, a.kernel, a.stride, a.pad, a.dilation});
    for (const std::vector<int64_t>* list : {&a.begins, &a.places}) s.push(Dims(list->data(), list->size()));
    for (const std::vector<double>* list : {&a.weights, &a.divisors, &a.input_divisors})
      s.push(std::span<const double>(*list));
  }
}

}  // namespace tenon::detail
