// Embeddings: rows of a table by number, and sums, means and maxima of bags of rows.
#include <fmt/core.h>

#include <limits>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/embedding/bodies.h"
#include "tenon/generated/embedding/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/indexing/indexed.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

/// The rows of a matrix that a tensor names, in a loop over its sizes and the elements of a row.
IndexedSide rows_of(const Tensor& matrix, const Tensor& rows) {
  const Tensor positions = on_device_of(matrix, rows);
  IndexedSide side{matrix, Dims(rows.sizes().size() + 1, 0), {}};
  side.strides.back() = matrix.strides()[1];
  Dims strides = positions.strides().to_dims();
  strides.push_back(0);
  side.by.push_back({positions, std::move(strides), Dims{matrix.sizes()[0]}, Dims{matrix.strides()[0]}, 0});
  return side;
}

/// A vector as a column.
Tensor column(const Tensor& t) { return t.unsqueeze(1); }

/// How often each of `count` numbers is in a vector.
Tensor occurrences(const Tensor& numbers, int64_t count, TensorOptions options) {
  const Tensor one = ones({}, options).expand(numbers.sizes());
  return index_add(zeros({count}, options), 0, numbers, one);
}

/// A count that something is divided by.
Tensor at_least_one(const Tensor& counts) { return masked_fill(counts, counts == 0, 1); }

enum Mode : int64_t { kSum, kMean, kMax };

/// Which bag each index is in, where bags start at `offsets`.
Tensor bags_of(const Tensor& offsets, int64_t count) {
  const TensorOptions options = offsets.options().dtype(DType::Int64);
  const Tensor starts = occurrences(offsets, count + 1, options);
  return cumsum(starts, 0).narrow(0, 0, count) - 1;
}

/// For each bag and column, the index of the first row that has the maximum; -1 where no row counts. Rows
/// that `skipped` is true for do not.
Tensor rows_of_maxima(const Tensor& weight, const Tensor& indices, const Tensor& bags, const Tensor& skipped,
                      int64_t count) {
  const Tensor all = tenon::embedding(weight.detach(), indices);
  const Tensor skip = column(skipped);
  const Tensor rows = masked_fill(all, skip, -std::numeric_limits<double>::infinity());
  const Tensor wide = column(bags).expand(rows.sizes());
  const Dims sizes{count, rows.size(1)};
  const Tensor largest =
      scatter_reduce(zeros(sizes, rows.options()), 0, wide, rows, "amax", /*include_self=*/false);
  const Tensor there = gather(largest, 0, wide);
  const TensorOptions integers = indices.options().dtype(DType::Int64);
  const int64_t none = indices.numel();
  const Tensor order = column(arange(none, integers)).expand(rows.sizes());
  const Tensor is_largest = (rows == there).logical_or(isnan(rows)).logical_and(logical_not(skip));
  const Tensor candidates = where(is_largest, order, none);
  const Tensor first = scatter_reduce(full(sizes, none, integers), 0, wide, candidates, "amin");
  // One more index, for bags without rows.
  const Tensor last = full({1}, -1, integers);
  const Tensor list[] = {indices.to(DType::Int64), last};
  return take(cat(list), first);
}

void check_bags(const Tensor& indices, const Tensor& offsets, int64_t mode, const Tensor& weights,
                bool include_last_offset) {
  TENON_CHECK(indices.dim() == 1 && offsets.dim() == 1, Shape,
              fmt::format("embedding_bag: `indices` and `offsets` must be vectors, got {} and {}",
                          to_string(indices.sizes()), to_string(offsets.sizes())));
  TENON_CHECK(mode >= kSum && mode <= kMax, Value,
              fmt::format("embedding_bag: `mode` must be 0 (sum), 1 (mean) or 2 (max), got {}", mode));
  TENON_CHECK(
      offsets.dtype() == DType::Int64 || offsets.dtype() == DType::Int32, Type,
      fmt::format("embedding_bag: expected dtype int32 or int64 for offsets, got {}", name(offsets.dtype())));
  TENON_CHECK(!weights.defined() || mode == kSum, NotImplemented,
              "embedding_bag: `per_sample_weights` goes with mode sum alone");
  TENON_CHECK(!weights.defined() || weights.sizes() == indices.sizes(), Shape,
              fmt::format("embedding_bag: `per_sample_weights` must have the shape of `indices`, {}",
                          to_string(indices.sizes())));
  TENON_CHECK(!include_last_offset || offsets.numel() >= 1, Value,
              "embedding_bag: `include_last_offset` needs at least one offset");
  if (offsets.is_meta() || offsets.numel() == 0) return;
  const int64_t first = offsets.select(0, 0).item<int64_t>(), last = offsets.select(0, -1).item<int64_t>();
  TENON_CHECK(first == 0, Value, fmt::format("embedding_bag: `offsets` must start at 0, got {}", first));
  TENON_CHECK(
      last <= indices.numel(), Value,
      fmt::format("embedding_bag: `offsets` go up to {}, beyond the {} `indices`", last, indices.numel()));
  if (const int64_t n = offsets.numel() - 1; n > 0) {
    const Tensor rising = tenon::ge(offsets.narrow(0, 1, n), offsets.narrow(0, 0, n));
    TENON_CHECK(tenon::all(rising).item<bool>(), Value,
                "embedding_bag: `offsets` must not fall from one to the next");
  }
}

}  // namespace

void embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool, Tensor& out) {
  const bool fresh = is_fresh(out);
  run_indexed({.op = "embedding",
               .argument = "indices",
               .sizes = out.sizes().to_dims(),
               .to = every_element(out, out.sizes()),
               .from = rows_of(weight, indices),
               .fresh = fresh});
}

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  const int64_t width = grad_output.size(-1);
  const Tensor rows = indices.reshape({indices.numel()});
  const Dims sizes{num_weights, width};
  Tensor grad = index_select_backward(grad_output.reshape({indices.numel(), width}), sizes, 0, rows);
  if (scale_grad_by_freq) grad = grad / column(at_least_one(occurrences(rows, num_weights, grad.options())));
  if (padding_idx >= 0) grad = index_fill(grad, 0, full({1}, padding_idx, rows.options()), 0);
  return grad;
}

void embedding_bag_sum(const Tensor& self, const Tensor& rows, const Tensor& bags, int64_t, Tensor& out) {
  run_indexed({.op = "embedding_bag",
               .argument = "indices",
               .sizes = {rows.numel(), out.sizes()[1]},
               .to = rows_of(out, bags),
               .from = rows_of(self, rows),
               .combine = Combine::Add});
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_padding(
    const Tensor& weight, const Tensor& given_indices, const Tensor& given_offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
    std::optional<int64_t> padding_idx) {
  check_bags(given_indices, given_offsets, mode, per_sample_weights, include_last_offset);
  TENON_CHECK(!sparse, NotImplemented, "embedding_bag: `sparse` gradients are not supported");
  Tensor indices = given_indices, offsets = given_offsets, weights = per_sample_weights;
  if (include_last_offset) {
    const int64_t end = offsets.is_meta() ? indices.numel() : offsets.select(0, -1).item<int64_t>();
    indices = indices.narrow(0, 0, end);
    if (weights.defined()) weights = weights.narrow(0, 0, end);
    offsets = offsets.narrow(0, 0, offsets.numel() - 1);
  }
  const int64_t count = offsets.numel();
  const Tensor bags = bags_of(offsets, indices.numel());
  const bool padded = padding_idx && *padding_idx >= 0;
  const Tensor skipped = indices == (padded ? *padding_idx : -1);
  const Tensor bag_sizes =
      index_add(zeros({count}, bags.options()), 0, bags, logical_not(skipped).to(DType::Int64));
  Tensor largest = empty({0}, bags.options());
  const Dims sizes{count, weight.size(1)};
  Tensor output;
  if (mode == kMax) {
    largest = rows_of_maxima(weight, indices, bags, skipped, count);
    output = weight.size(0) == 0 ? zeros(sizes, weight.options())
                                 : masked_fill(gather(weight, 0, clamp_min(largest, 0)), largest < 0, 0);
  } else if (weights.defined() || scale_grad_by_freq || padded) {
    Tensor rows = tenon::embedding(weight, indices, padding_idx.value_or(-1), scale_grad_by_freq);
    if (weights.defined()) rows = rows * column(weights);
    if (padded) rows = masked_fill(rows, column(skipped), 0);
    output = index_select_backward(rows, sizes, 0, bags);
  } else {
    output = _embedding_bag_sum(weight, indices, bags, count);
  }
  if (mode == kMean) output = output / column(at_least_one(bag_sizes).to(output.dtype()));
  return {output, bags, bag_sizes, largest};
}

Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  TENON_CHECK(
      self.dim() == 2, Shape,
      fmt::format("embedding_renorm_: `self` must be a matrix [N, D], got {}", to_string(self.sizes())));
  TENON_CHECK(
      is_floating_point(self.dtype()) || self.is_complex(), Type,
      fmt::format("embedding_renorm_: not implemented for {}; rows of floating-point numbers have a norm",
                  name(self.dtype())));
  const Tensor numbers = indices.reshape({indices.numel()});
  const Tensor rows = index_select(self, 0, numbers);
  const Tensor norms = tenon::linalg_vector_norm(rows, norm_type, Dims{1}, true);
  const Tensor scale = where(norms > max_norm, max_norm / (norms + 1e-7), 1.0).to(self.dtype());
  return self.index_copy_(0, numbers, rows * scale);
}

}  // namespace tenon::ops
