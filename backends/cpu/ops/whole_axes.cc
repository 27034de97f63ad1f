#include "backends/cpu/ops/whole_axes.h"

#include "backends/cpu/ops/stub_functions.h"
#include "tenon/expr/plain_reduction.h"
#include "tenon/ops/device_stubs.h"

namespace tenon::cpu {
namespace {

/// Whether the axis has one output, which is the sum of all inputs.
bool takes_all(const Axis& a) {
  if (a.outputs != 1 || !a.weights.empty() || !a.input_divisors.empty()) return false;
  if (a.taps == Axis::Taps::Adaptive) return true;
  return a.taps == Axis::Taps::Affine && a.dilation == 1 && a.pad >= 0 && a.kernel - a.pad >= a.inputs;
}

}  // namespace

bool sum_whole_axes(const Tensor& self, std::span<const Axis> axes, Tensor& out) {
  if (!is_floating_point(self.dtype()) || axes.empty() || self.numel() == 0 || !out.is_contiguous())
    return false;
  double count = 1, divisor = 1;
  for (const Axis& a : axes) {
    if (!takes_all(a)) return false;
    count *= static_cast<double>(a.inputs);
    if (!a.divisors.empty()) divisor *= a.divisors[0];
  }
  if (divisor != 1 && divisor != count) return false;
  Dims over;
  for (size_t d = 0; d < self.sizes().size(); ++d) over.push_back(d + axes.size() >= self.sizes().size());
  const expr::PlainReduction what{.type = self.dtype() == DType::Float64 ? expr::Type::F64 : expr::Type::F32,
                                  .mean = divisor != 1};
  Tensor* const results[] = {&out};
  reduce({.name = "axes_sum", .what = what, .self = self, .over = over, .results = results, .rows = nullptr});
  return true;
}

}  // namespace tenon::cpu
