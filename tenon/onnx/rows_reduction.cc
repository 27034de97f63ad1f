// Reductions, softmax, sums along an axis, sorting.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/sort/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

/// What a reduction of no elements gives: the identity of `op`, as the standard has it.
double of_nothing(std::string_view op, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool is_max = op == "ReduceMax";
  if (is_integral(dtype, true)) {
    const double bits = 8.0 * static_cast<double>(item_size(dtype));
    if (dtype == kBool) return is_max ? 0 : 1;
    if (!is_signed(dtype)) return is_max ? 0 : std::exp2(bits) - 1;
    return is_max ? -std::exp2(bits - 1) : std::exp2(bits - 1) - 1;
  }
  return is_max ? -kInfinity : kInfinity;
}

/// Calls `f(x, axes, keepdims)` with the node's axes; its result gets the dtype of x again.
template <class F>
void reduce(N& n, const F& f) {
  const Tensor& x = n.tensor(0);
  std::optional<Dims> axes = n.ints("axes", 1);
  const bool keep = n.flag("keepdims", true);
  if (!axes || axes->empty()) {
    if (n.flag("noop_with_empty_axes", false)) return n.set(x);
    axes.emplace();
    for (size_t i = 0; i < x.sizes().size(); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  for (int64_t& axis : *axes) axis = n.axis(axis, x.sizes().size());
  n.set(f(x, *axes, keep).to(x.dtype()));
}

Tensor sum_of(const Tensor& x, const Dims& axes, bool keep) {
  return axes.empty() ? x : sum(x, IntArrayRef(axes), keep);
}
void reduce_sum(N& n) { reduce(n, sum_of); }
void reduce_mean(N& n) {
  reduce(n, [](const Tensor& x, const Dims& axes, bool keep) {
    if (axes.empty()) return x;
    const Tensor real = is_integral(x.dtype(), true) ? x.to(kFloat64) : x;
    return mean(real, IntArrayRef(axes), keep);
  });
}
void reduce_extreme(N& n) {
  reduce(n, [&](const Tensor& x, const Dims& axes, bool keep) {
    if (axes.empty()) return x;
    if (x.numel() > 0) return n.op() == "ReduceMax" ? amax(x, axes, keep) : amin(x, axes, keep);
    const Tensor sizes = sum(x.to(kFloat32), IntArrayRef(axes), keep);
    return full(sizes.sizes(), of_nothing(n.op(), x.dtype()), TensorOptions(x.dtype()));
  });
}
void reduce_prod(N& n) {
  reduce(n, [](const Tensor& x, Dims axes, bool keep) {
    std::ranges::sort(axes, std::greater());
    Tensor out = x;
    for (const int64_t axis : axes) out = prod(out, axis, keep);
    return out;
  });
}
void reduce_l1(N& n) {
  reduce(n, [](const Tensor& x, const Dims& axes, bool keep) { return sum_of(abs(x), axes, keep); });
}
void reduce_l2(N& n) {
  reduce(n, [](const Tensor& x, const Dims& axes, bool keep) {
    return sqrt(sum_of(square(is_integral(x.dtype(), true) ? x.to(kFloat64) : x), axes, keep));
  });
}
void reduce_sum_square(N& n) {
  reduce(n, [](const Tensor& x, const Dims& axes, bool keep) { return sum_of(square(x), axes, keep); });
}
void reduce_log_sum(N& n) {
  reduce(n, [](const Tensor& x, const Dims& axes, bool keep) { return log(sum_of(x, axes, keep)); });
}
void reduce_log_sum_exp(N& n) {
  reduce(n, [](const Tensor& x, const Dims& axes, bool keep) {
    const Tensor real = is_integral(x.dtype(), true) ? x.to(kFloat64) : x;
    if (axes.empty()) return real;
    return x.numel() > 0 ? logsumexp(real, axes, keep) : log(sum_of(exp(real), axes, keep));
  });
}

void arg_extreme(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t axis = n.axis(n.integer("axis", 0), x.sizes().size());
  const bool keep = n.flag("keepdims", true), is_max = n.op() == "ArgMax";
  const auto find = [&](const Tensor& t) { return is_max ? argmax(t, axis, keep) : argmin(t, axis, keep); };
  if (!n.flag("select_last_index", false)) return n.set(find(x));
  n.set(rsub(find(flip(x, {axis})), Scalar(x.sizes()[static_cast<size_t>(axis)] - 1)));
}

/// Before version 13, dimensions from the axis on are one.
template <class F>
void along_axis(N& n, const F& f) {
  const Tensor& x = n.tensor(0);
  if (n.opset() >= 13) return n.set(f(x, n.axis(n.integer("axis", -1), x.sizes().size())));
  const int64_t axis = n.axis(n.integer("axis", 1), x.sizes().size());
  n.set(f(flatten(x, axis, -1), axis).reshape(x.sizes()));
}
void softmax_of(N& n) {
  along_axis(n, [](const Tensor& x, int64_t axis) { return softmax(x, axis); });
}
void log_softmax_of(N& n) {
  along_axis(n, [](const Tensor& x, int64_t axis) { return log_softmax(x, axis); });
}
void hardmax(N& n) {
  along_axis(n, [](const Tensor& x, int64_t axis) {
    return scatter(zeros_like(x), axis, argmax(x, axis, true), 1);
  });
}

/// Sums or products of the elements up to each one, or, with `exclusive`, before it.
void cumulative(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t axis = n.axis(n.integer(1), x.sizes().size());
  const bool is_sum = n.op() == "CumSum", reverse = n.flag("reverse", false);
  Tensor out = reverse ? flip(x, {axis}) : x;
  const int64_t size = x.sizes()[static_cast<size_t>(axis)];
  if (n.flag("exclusive", false) && size > 0) {
    const Tensor first = full_like(slice(out, axis, 0, 1), is_sum ? 0 : 1);
    out = cat(std::vector{first, slice(out, axis, 0, size - 1)}, axis);
  }
  out = (is_sum ? cumsum(out, axis) : cumprod(out, axis)).to(x.dtype());
  n.set(reverse ? flip(out, {axis}) : out);
}

void top_k(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t k = n.opset() < 10 ? n.integer("k", 1) : n.integer(1);
  const int64_t axis = n.axis(n.integer("axis", -1), x.sizes().size());
  TENON_NODE_CHECK(n, 0 <= k && k <= x.sizes()[static_cast<size_t>(axis)], Value,
                   fmt::format("the largest {} of {} elements", k, x.sizes()[static_cast<size_t>(axis)]));
  // Of equal elements the first ones, in their order: a stable sort.
  const auto [values, places] = sort(x, true, axis, n.flag("largest", true));
  n.set(0, slice(values, axis, 0, k));
  n.set(1, slice(places, axis, 0, k));
}

constexpr auto kReductionRows = std::to_array<Row>({
    {"ArgMax", 1, arg_extreme},
    {"ArgMin", 1, arg_extreme},
    {"CumProd", 26, cumulative},
    {"CumSum", 11, cumulative},
    {"Hardmax", 1, hardmax},
    {"LogSoftmax", 1, log_softmax_of},
    {"ReduceL1", 1, reduce_l1},
    {"ReduceL2", 1, reduce_l2},
    {"ReduceLogSum", 1, reduce_log_sum},
    {"ReduceLogSumExp", 1, reduce_log_sum_exp},
    {"ReduceMax", 1, reduce_extreme},
    {"ReduceMean", 1, reduce_mean},
    {"ReduceMin", 1, reduce_extreme},
    {"ReduceProd", 1, reduce_prod},
    {"ReduceSum", 1, reduce_sum},
    {"ReduceSumSquare", 1, reduce_sum_square},
    {"Softmax", 1, softmax_of},
    {"TopK", 1, top_k},
});

}  // namespace

std::span<const Row> reduction_rows() noexcept { return kReductionRows; }

}  // namespace tenon::onnx
