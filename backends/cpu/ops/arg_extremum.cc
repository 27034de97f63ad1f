// argmax, argmin, max.dim, min.dim: the extreme element along a dimension, and where it is.
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/reduce/arg_reduce.h"
#include "tenon/core/half.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/reduction/kernels.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/reduction/reduced_dims.h"

namespace tenon::cpu {
namespace {

template <class F>
void with_compute(DType type, F&& f) {
  if (type == DType::Float64)
    f.template operator()<double>();
  else if (is_floating_point(type))
    f.template operator()<float>();
  else
    f.template operator()<int64_t>();
}

/// Calls done(i, ArgResult) for every result i.
template <class T, class F>
void for_each_extremum(const Tensor& self, const Dims& mask, bool largest, const char* op, F&& done) {
  report_kernel(op, "scan");
  const ConvertFn convert = convert_from(self.dtype(), dtype_of<T>, op);
  const auto* base = static_cast<const char*>(self.data_ptr());
  const StridedDims kept = dims_where(self, mask, false), reduced = dims_where(self, mask, true);
  const int64_t extent = reduced.numel();
  const ReduceOp op_of = largest ? ReduceOp::Max : ReduceOp::Min;
  constexpr int64_t kItem = sizeof(T), kStrip = kReduceStrip;
  if (!convert && self.numel() > 0 && reduced.sizes.size() == 1 && !kept.sizes.empty() &&
      kept.strides.back() == kItem && reduced.strides[0] % kItem == 0) {
    // Neighbouring results side by side: whole rows are compared.
    const int64_t row = kept.sizes.back(), strips = (row + kStrip - 1) / kStrip;
    const auto step = static_cast<ptrdiff_t>(reduced.strides[0] / kItem);
    parallel_for(0, kept.numel() / row * strips, std::max<int64_t>((1 << 14) / (extent * kStrip), 1),
                 [&](int64_t begin, int64_t end) {
                   T values[kStrip];
                   int64_t positions[kStrip];
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i / strips * row + i % strips * kStrip,
                                   n = std::min(kStrip, row - i % strips * kStrip);
                     arg_reduce_outer(op_of, reinterpret_cast<const T*>(base + kept.offset(first)), step,
                                      static_cast<size_t>(extent), values, positions, static_cast<size_t>(n));
                     for (int64_t k = 0; k < n; ++k) done(first + k, ArgResult<T>{values[k], positions[k]});
                   }
                 });
    return;
  }
  parallel_for(0, kept.numel(), std::max<int64_t>((1 << 14) / std::max<int64_t>(extent, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   ArgReducer<T> best(op_of);
                   for_each_tile<T>(base + kept.offset(i), reduced, convert,
                                    [&](const T* p, int64_t n) { best.feed(p, static_cast<size_t>(n)); });
                   done(i, best.result());
                 }
               });
}

void arg_extremum(const Tensor& self, std::optional<int64_t> dim, bool largest, Tensor& out, const char* op) {
  const Dims mask =
      ops::reduction_mask(dim ? std::optional<IntArrayRef>(IntArrayRef(*dim)) : std::nullopt, self.dim(), op);
  auto* positions = static_cast<int64_t*>(out.data_ptr());
  with_compute(self.dtype(), [&]<class T>() {
    for_each_extremum<T>(self, mask, largest, op,
                         [&](int64_t i, const ArgResult<T>& best) { positions[i] = best.index; });
  });
}

void extremum_dim(const Tensor& self, int64_t dim, bool largest, Tensor& values, Tensor& indices,
                  const char* op) {
  const Dims mask = ops::reduction_mask(IntArrayRef(dim), self.dim(), op);
  auto* positions = static_cast<int64_t*>(indices.data_ptr());
  auto* bytes = static_cast<char*>(values.data_ptr());
  const auto item = static_cast<int64_t>(values.itemsize());
  with_compute(self.dtype(), [&]<class T>() {
    const ConvertFn store = convert_fn(dtype_of<T>, values.dtype());
    for_each_extremum<T>(self, mask, largest, op, [&](int64_t i, const ArgResult<T>& best) {
      positions[i] = best.index;
      store(bytes + i * item, {item, 0}, &best.value, {sizeof(T), 0}, 1, 1);
    });
  });
}

}  // namespace

void argmax(const Tensor& self, std::optional<int64_t> dim, bool, Tensor& out) {
  arg_extremum(self, dim, true, out, "argmax");
}
void argmin(const Tensor& self, std::optional<int64_t> dim, bool, Tensor& out) {
  arg_extremum(self, dim, false, out, "argmin");
}
void max_dim(const Tensor& self, int64_t dim, bool, Tensor& out0, Tensor& out1) {
  extremum_dim(self, dim, true, out0, out1, "max");
}
void min_dim(const Tensor& self, int64_t dim, bool, Tensor& out0, Tensor& out1) {
  extremum_dim(self, dim, false, out0, out1, "min");
}

}  // namespace tenon::cpu
