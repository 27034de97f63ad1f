// The gradients of norms as operators: by input, weight and bias; a call's output_mask selects them.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/norm/bodies.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/ops/norm/checks.h"
#include "tenon/ops/norm/gradients.h"

namespace tenon::ops {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

/// A norm over the trailing dimensions `row`, whose statistics have them with size 1. `affine` is the shape
/// of its weight and bias; `weight` may be absent.
struct Backward {
  const Tensor &grad, &input, &mean, &rstd, &weight;
  IntArrayRef row, affine;

  bool differentiated() const {
    if (!thread_state.grad_enabled) return false;
    for (const Tensor* t : {&grad, &input, &mean, &rstd, &weight}) {
      if (t->defined() && t->requires_grad()) return true;
    }
    return false;
  }

  Three run(std::span<const bool> wanted) const {
    Three result;
    Dims dims;
    for (int64_t d = -static_cast<int64_t>(row.size()); d < 0; ++d) dims.push_back(d);
    const bool composed = differentiated();
    if (wanted[0] && !composed)
      std::get<0>(result) = tenon::_layer_norm_backward(grad, input, mean, rstd, weight, row);
    const bool leads = wanted[1] && !composed && affine == row;
    if (leads) std::get<1>(result) = tenon::_layer_norm_backward_weight(grad, input, mean, rstd, row);
    if ((wanted[0] && composed) || (wanted[1] && !leads)) {
      const Normal n(input, dims, mean, rstd);
      if (wanted[0] && composed) std::get<0>(result) = input_gradient(grad, n, weight, dims, true);
      if (wanted[1] && !leads) std::get<1>(result) = tenon::sum_to_size(tenon::mul(grad, n.x), affine);
    }
    if (wanted[2]) std::get<2>(result) = tenon::sum_to_size(grad, affine);
    return result;
  }
};

void check_call(const Tensor& grad, const Tensor& input, std::span<const bool> wanted, const char* op) {
  check_shaped(grad, input.sizes(), op, "grad_out");
  TENON_CHECK(wanted.size() == 3, Value,
              fmt::format("{}: expected `output_mask` of 3 truth values, got {}", op, wanted.size()));
}

}  // namespace

Three native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape,
                                 const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                 const Tensor& bias, std::span<const bool> output_mask) {
  constexpr const char* kName = "native_layer_norm_backward";
  check_normalized(input, normalized_shape, kName);
  check_call(grad_out, input, output_mask, kName);
  check_shaped(weight, normalized_shape, kName, "weight");
  check_shaped(bias, normalized_shape, kName, "bias");
  TENON_CHECK(!bias.defined() || bias.device() == input.device(), Device,
              fmt::format("{}: expected `bias` on {} as `input`, got {}", kName, to_string(input.device()),
                          to_string(bias.device())));
  Dims kept = input.sizes().to_dims();
  for (size_t i = kept.size() - normalized_shape.size(); i < kept.size(); ++i) kept[i] = 1;
  check_shaped(mean, kept, kName, "mean");
  check_shaped(rstd, kept, kName, "rstd");
  return Backward{grad_out, input, mean, rstd, weight, normalized_shape, normalized_shape}.run(output_mask);
}

Three native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                 const Tensor& rstd, const Tensor& weight, int64_t N, int64_t C, int64_t HxW,
                                 int64_t group, std::span<const bool> output_mask) {
  constexpr const char* kName = "native_group_norm_backward";
  check_call(grad_out, input, output_mask, kName);
  check_groups(input, N, C, HxW, group, kName);
  check_shaped(weight, IntArrayRef(C), kName, "weight");
  check_shaped(mean, {N, group}, kName, "mean");
  check_shaped(rstd, {N, group}, kName, "rstd");
  const Dims groups{N, group, C / group, HxW}, each{C / group, HxW}, of_groups{group, C / group, 1},
      kept{N, group, 1, 1};
  const Tensor g = grad_out.reshape(groups), x = input.reshape(groups), mu = mean.reshape(kept),
               r = rstd.reshape(kept), w = weight.defined() ? weight.reshape(of_groups) : weight;
  auto [by_input, by_weight, by_bias] = Backward{g, x, mu, r, w, each, of_groups}.run(output_mask);
  if (by_input.defined()) by_input = by_input.reshape(input.sizes());
  if (by_weight.defined()) by_weight = by_weight.reshape({C});
  if (by_bias.defined()) by_bias = by_bias.reshape({C});
  return {by_input, by_weight, by_bias};
}

}  // namespace tenon::ops
