// sum, mean, prod, amax, amin, max, min, all, any: tensors to the fixed tree of backends/cpu/reduce.
#include <bit>
#include <cmath>
#include <complex>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/cpu/copy/copy.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/report.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/reduce/reduce.h"
#include "tenon/core/half.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/reduction/kernels.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/reduction/reduced_dims.h"

namespace tenon::cpu {
namespace {

/// bool reduces as bytes of 0 and 1.
template <class T>
inline constexpr DType kElement = std::is_same_v<T, uint8_t> ? DType::Bool : dtype_of<T>;

/// Work below which another thread does not pay, in elements.
constexpr int64_t kGrain = 1 << 15;

/// The kind of elements that a reduction on T converts as it loads them, if it does.
template <class T>
std::optional<ReduceSource> source_of(DType dtype, ReduceOp op) {
  std::optional<ReduceSource> source;
  switch (dtype) {
    case DType::Float16:
      source = ReduceSource::Float16;
      break;
    case DType::BFloat16:
      source = ReduceSource::BFloat16;
      break;
    case DType::Bool:
      source = ReduceSource::Bool;
      break;
    case DType::UInt8:
      source = ReduceSource::UInt8;
      break;
    case DType::Int8:
      source = ReduceSource::Int8;
      break;
    case DType::Int16:
      source = ReduceSource::Int16;
      break;
    case DType::Int32:
      source = ReduceSource::Int32;
      break;
    default:
      break;
  }
  return source && reduces_from<T>(*source, op) ? source : std::nullopt;
}

/// Results of fewer elements are worked on side by side, from a transposed tile.
constexpr int64_t kShortExtent = 32;

/// out[j] = the reduction of the `extent` elements from `base` + j * `pitch` on, which are `step` bytes
/// apart.
template <class T>
void reduce_short(ReduceOp op, const char* base, int64_t pitch, int64_t step, int64_t extent,
                  ConvertFn convert, T* out, int64_t outputs) {
  constexpr int64_t kItem = sizeof(T), kStrip = kReduceStrip;
  const RowKernels::Transpose transpose = row_kernels().transpose[element_size_index(kItem)];
  const ConvertFn copy = convert ? convert : convert_fn(kElement<T>, kElement<T>);
  alignas(64) T packed[kShortExtent * kStrip], columns[kShortExtent * kStrip];
  for (int64_t j = 0; j < outputs; j += kStrip) {
    const int64_t n = std::min(kStrip, outputs - j);
    const char* from = base + j * pitch;
    const bool dense = !convert && step == kItem;
    if (!dense) copy(packed, {kItem, kItem * extent}, from, {step, pitch}, extent, n);
    transpose(columns, kItem * kStrip, dense ? static_cast<const void*>(from) : packed,
              dense ? pitch : kItem * extent, static_cast<size_t>(n), static_cast<size_t>(extent));
    OuterReducer<T> reducer(op, static_cast<size_t>(n));
    reducer.feed(columns, kStrip, static_cast<size_t>(extent));
    reducer.result(out + j);
  }
}

/// Rows that are reduced side by side.
constexpr int64_t kTogether = 8;

/// out[i] = the reduction of the `extent` elements from `base` + kept.offset(i) on, `step` bytes apart, of
/// results [begin, end).
template <class T>
void reduce_rows(ReduceOp op, const char* base, const StridedDims& kept, int64_t step, int64_t extent,
                 ConvertFn convert, T* out, int64_t begin, int64_t end) {
  constexpr int64_t kItem = sizeof(T), kTile = 1024;
  const bool dense = !convert && (step == kItem || extent == 1);
  const ConvertFn copy = convert ? convert : convert_fn(kElement<T>, kElement<T>);
  RowsReducer<T> reducer(op, static_cast<size_t>(std::min(kTogether, end - begin)));
  const auto tiles = dense ? nullptr : std::make_unique_for_overwrite<T[]>(kTogether * kTile);
  const T* from[kTogether];
  for (int64_t i = begin; i < end; i += kTogether) {
    const int64_t rows = std::min(kTogether, end - i);
    // The fewer rows, the more of each: their chunks go side by side as well.
    const int64_t piece =
        dense ? extent : kTogether / static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))) * kTile;
    reducer.reset();
    for (int64_t at = 0; at < extent; at += piece) {
      const int64_t n = std::min(piece, extent - at);
      for (int64_t r = 0; r < rows; ++r) {
        const char* p = base + kept.offset(i + r) + at * step;
        from[r] = dense ? reinterpret_cast<const T*>(p) : tiles.get() + r * piece;
        if (!dense) copy(tiles.get() + r * piece, {kItem, 0}, p, {step, 0}, n, 1);
      }
      reducer.feed(from, static_cast<size_t>(rows), static_cast<size_t>(n), at + n == extent);
    }
    reducer.result(out + i, static_cast<size_t>(rows));
  }
}

/// out[i] = the reduction of `self`'s masked dimensions for result i, in logical order of the others.
template <class T>
void reduce_to(ReduceOp op, const Tensor& self, const Dims& mask, T* out, const char* name) {
  report_kernel(name, TENON_KERNEL_NAMES("reduce"));
  const ConvertFn convert = convert_from(self.dtype(), kElement<T>, name);
  const auto* base = static_cast<const char*>(self.data_ptr());
  const StridedDims kept = dims_where(self, mask, false), reduced = dims_where(self, mask, true);
  const int64_t outputs = kept.numel(), extent = reduced.numel();
  if (outputs == 0) return;
  if (extent == 0) {
    std::fill(out, out + outputs, reduce_identity<T>(op));
    return;
  }
  const int64_t grain = std::max<int64_t>(kGrain / extent, 1), item = static_cast<int64_t>(self.itemsize());
  const std::optional<ReduceSource> source = convert ? source_of<T>(self.dtype(), op) : std::nullopt;
  const bool loads = !convert || source;
  const size_t last = kept.sizes.size() - 1;
  const bool rows_of_results = reduced.sizes.size() <= 1 && !kept.sizes.empty();
  const int64_t step = reduced.sizes.empty() ? item : reduced.strides[0];
  if (loads && rows_of_results && kept.strides[last] == item && step % item == 0) {
    // Neighbouring results side by side: whole rows are added up.
    const int64_t row = kept.sizes[last], stride = step / item;
    parallel_for(0, outputs / row, std::max<int64_t>(grain / row, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const char* p = base + kept.offset(i * row);
        if (source)
          reduce_outer_from(op, *source, p, stride, static_cast<size_t>(extent), out + i * row,
                            static_cast<size_t>(row));
        else
          reduce_outer(op, reinterpret_cast<const T*>(p), stride, static_cast<size_t>(extent), out + i * row,
                       static_cast<size_t>(row));
      }
    });
    return;
  }
  if (rows_of_results && extent <= kShortExtent && kept.sizes[last] >= 16) {
    const int64_t row = kept.sizes[last];
    parallel_for(0, outputs, std::max<int64_t>(grain, kReduceStrip), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t n = std::min(end, (i / row + 1) * row) - i;
        reduce_short(op, base + kept.offset(i), kept.strides[last], step, extent, convert, out + i, n);
        i += n;
      }
    });
    return;
  }
  if (!source && reduced.sizes.size() <= 1 && outputs >= kTogether &&
      extent >= static_cast<int64_t>(kReduceLanes)) {
    parallel_for(0, outputs, std::max(grain, kTogether), [&](int64_t begin, int64_t end) {
      reduce_rows(op, base, kept, step, extent, convert, out, begin, end);
    });
    return;
  }
  if (loads && reduced.dense(static_cast<size_t>(item))) {
    parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const char* p = base + kept.offset(i);
        out[i] = source ? reduce_contiguous_from<T>(op, *source, p, static_cast<size_t>(extent))
                        : reduce_contiguous(op, reinterpret_cast<const T*>(p), static_cast<size_t>(extent));
      }
    });
    return;
  }
  parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Reducer<T> reducer(op);
      for_each_tile<T>(base + kept.offset(i), reduced, convert,
                       [&](const T* p, int64_t n) { reducer.feed(p, static_cast<size_t>(n)); });
      out[i] = reducer.result();
    }
  });
}

template <class F>
void with_compute(DType type, F&& f) {
  switch (type) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    case DType::Int32:
      return f.template operator()<int32_t>();
    case DType::Bool:
      return f.template operator()<uint8_t>();
    default:
      return f.template operator()<int64_t>();
  }
}

/// Reduces as elements of T into `out`, which is contiguous; `finish` sees each result before it is stored.
template <class T, class F>
void reduce_as(ReduceOp op, const Tensor& self, const Dims& mask, Tensor& out, const char* name, F&& finish) {
  const auto count = static_cast<size_t>(out.numel());
  if (out.dtype() == kElement<T>) {
    T* results = static_cast<T*>(out.data_ptr());
    reduce_to(op, self, mask, results, name);
    for (size_t i = 0; i < count; ++i) results[i] = finish(results[i]);
    return;
  }
  std::vector<T> results(count);
  reduce_to(op, self, mask, results.data(), name);
  for (T& r : results) r = finish(r);
  const ConvertFn store = convert_fn(kElement<T>, out.dtype());
  store(out.data_ptr(), {static_cast<int64_t>(out.itemsize()), 0}, results.data(), {sizeof(T), 0},
        out.numel(), 1);
}

void accumulate(ReduceOp op, const Tensor& self, const Dims& mask, Tensor& out, const char* name,
                int64_t divide_by = 0);

/// Sums of complex numbers whose parts are of type T, which lie along or across dense memory: both parts in
/// one walk. Returns whether they do.
template <class T>
bool sum_dense_parts(const Tensor& self, const Dims& mask, Tensor& out, const char* name, int64_t divide_by) {
  constexpr int64_t kItem = 2 * sizeof(T);
  const StridedDims kept = dims_where(self, mask, false), reduced = dims_where(self, mask, true);
  const int64_t outputs = kept.numel(), extent = reduced.numel();
  if (outputs == 0 || extent == 0) return false;
  const auto* base = static_cast<const char*>(self.data_ptr());
  auto* results = static_cast<T*>(out.data_ptr());
  const auto at = [&](int64_t i) { return reinterpret_cast<const T*>(base + kept.offset(i)); };
  const int64_t grain = std::max<int64_t>(kGrain / extent, 1);
  const size_t last = kept.sizes.size() - 1;
  if (reduced.dense(kItem)) {
    parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sum_pairs(at(i), static_cast<size_t>(extent), results + 2 * i, results + 2 * i + 1);
    });
  } else if (reduced.sizes.size() == 1 && !kept.sizes.empty() && kept.strides[last] == kItem) {
    // Neighbouring results, and their parts, side by side.
    const int64_t row = kept.sizes[last], stride = reduced.strides[0] / static_cast<int64_t>(sizeof(T));
    parallel_for(0, outputs / row, std::max<int64_t>(grain / row, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        reduce_outer(ReduceOp::Sum, at(i * row), stride, static_cast<size_t>(extent), results + 2 * i * row,
                     static_cast<size_t>(2 * row));
    });
  } else {
    return false;
  }
  report_kernel(name, TENON_KERNEL_NAMES("reduce"));
  if (divide_by != 0) {
    for (int64_t i = 0; i < 2 * outputs; ++i) results[i] /= static_cast<T>(divide_by);
  }
  return true;
}

/// Sums of complex numbers are those of their parts.
void sum_parts(const Tensor& self, const Dims& mask, Tensor& out, const char* name, int64_t divide_by) {
  if (self.dtype() == out.dtype()) {
    const bool summed = out.dtype() == DType::Complex64
                            ? sum_dense_parts<float>(self, mask, out, name, divide_by)
                            : sum_dense_parts<double>(self, mask, out, name, divide_by);
    if (summed) return;
  }
  for (const int64_t i : {0, 1}) {
    Tensor part = make_empty(out.sizes(), real_dtype(out.dtype()));
    if (self.is_complex())
      accumulate(ReduceOp::Sum, ops::part_of(self, i), mask, part, name, divide_by);
    else if (i == 0)
      accumulate(ReduceOp::Sum, self, mask, part, name, divide_by);
    else
      ops::zero_elements(part);
    copy_strided(ops::part_of(out, i), part, name);
  }
}

/// Products of complex numbers, in logical order.
template <class T>
void multiply_out(const Tensor& self, const Dims& mask, Tensor& out, const char* name) {
  tenon::report_kernel(name, "reduce");
  using Complex = std::complex<T>;
  const ConvertFn convert = convert_from(self.dtype(), dtype_of<Complex>, name);
  const auto* base = static_cast<const char*>(self.data_ptr());
  const StridedDims kept = dims_where(self, mask, false), reduced = dims_where(self, mask, true);
  auto* results = static_cast<Complex*>(out.data_ptr());
  parallel_for(0, kept.numel(), std::max<int64_t>(kGrain / std::max<int64_t>(reduced.numel(), 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   T re = 1, im = 0;
                   for_each_tile<Complex>(base + kept.offset(i), reduced, convert,
                                          [&](const Complex* p, int64_t n) {
                                            for (int64_t j = 0; j < n; ++j) {
                                              const T c = p[j].real(), d = p[j].imag();
                                              const T next = re * c - im * d;
                                              im = re * d + im * c;
                                              re = next;
                                            }
                                          });
                   results[i] = {re, im};
                 }
               });
}

/// Sums and products: integers of every width, and bool, in int64.
void accumulate(ReduceOp op, const Tensor& self, const Dims& mask, Tensor& out, const char* name,
                int64_t divide_by) {
  if (out.is_complex()) {
    if (op == ReduceOp::Sum) return sum_parts(self, mask, out, name, divide_by);
    return out.dtype() == DType::Complex64 ? multiply_out<float>(self, mask, out, name)
                                           : multiply_out<double>(self, mask, out, name);
  }
  if (is_floating_point(out.dtype())) {
    const auto in_floating = [&]<class T>() {
      reduce_as<T>(op, self, mask, out, name,
                   [&](T r) { return divide_by == 0 ? r : static_cast<T>(r / static_cast<T>(divide_by)); });
    };
    if (out.dtype() == DType::Float64)
      in_floating.template operator()<double>();
    else
      in_floating.template operator()<float>();
  } else {
    reduce_as<int64_t>(op, self, mask, out, name, [](int64_t r) { return r; });
  }
}

void extremum(ReduceOp op, const Tensor& self, const Dims& mask, Tensor& out, const char* name) {
  with_compute(self.dtype(),
               [&]<class T>() { reduce_as<T>(op, self, mask, out, name, [](T r) { return r; }); });
}

void logical(ReduceOp op, const Tensor& self, const Dims& mask, Tensor& out, const char* name) {
  reduce_as<uint8_t>(op, self, mask, out, name, [](uint8_t r) { return r; });
}

Dims all_of(const Tensor& self) { return Dims(self.sizes().size(), 1); }
Dims mask_of(const Tensor& self, std::optional<IntArrayRef> dim, const char* name) {
  return ops::reduction_mask(dim, self.dim(), name);
}

/// The mean of no elements is 0 / 0.
int64_t divisor(const Tensor& self, const Dims& mask) { return ops::reduced_extent(self.sizes(), mask); }

void mean_over(const Tensor& self, const Dims& mask, Tensor& out) {
  const int64_t n = divisor(self, mask);
  accumulate(ReduceOp::Sum, self, mask, out, "mean", n);
  if (n > 0 || out.numel() == 0) return;
  if (out.is_complex()) return ops::fill_elements(out, std::complex<double>(NAN, NAN), "mean");
  const auto fill_nan = [&]<class T>() {
    for (int64_t i = 0; i < out.numel(); ++i) static_cast<T*>(out.data_ptr())[i] = T(__builtin_nanf(""));
  };
  switch (out.dtype()) {
    case DType::Float64:
      return fill_nan.template operator()<double>();
    case DType::Float16:
      return fill_nan.template operator()<Half>();
    case DType::BFloat16:
      return fill_nan.template operator()<BFloat16>();
    default:
      return fill_nan.template operator()<float>();
  }
}

}  // namespace

ConvertFn convert_from(DType dtype, DType compute, const char* op) {
  if (dtype == compute) return nullptr;
  const ConvertFn f = convert_fn(dtype, compute);
  TENON_CHECK(f, NotImplemented, std::string(op) + ": not implemented for " + std::string(name(dtype)));
  return f;
}

void sum_all(const Tensor& self, std::optional<DType>, Tensor& out) {
  accumulate(ReduceOp::Sum, self, all_of(self), out, "sum");
}
void sum_dim(const Tensor& self, std::optional<IntArrayRef> dim, bool, std::optional<DType>, Tensor& out) {
  accumulate(ReduceOp::Sum, self, mask_of(self, dim, "sum"), out, "sum");
}
void mean_all(const Tensor& self, std::optional<DType>, Tensor& out) { mean_over(self, all_of(self), out); }
void mean_dim(const Tensor& self, std::optional<IntArrayRef> dim, bool, std::optional<DType>, Tensor& out) {
  mean_over(self, mask_of(self, dim, "mean"), out);
}
void prod_all(const Tensor& self, std::optional<DType>, Tensor& out) {
  accumulate(ReduceOp::Prod, self, all_of(self), out, "prod");
}
void prod_dim(const Tensor& self, int64_t dim, bool, std::optional<DType>, Tensor& out) {
  accumulate(ReduceOp::Prod, self, mask_of(self, IntArrayRef(dim), "prod"), out, "prod");
}
void amax(const Tensor& self, IntArrayRef dim, bool, Tensor& out) {
  extremum(ReduceOp::Max, self, mask_of(self, dim, "amax"), out, "amax");
}
void amin(const Tensor& self, IntArrayRef dim, bool, Tensor& out) {
  extremum(ReduceOp::Min, self, mask_of(self, dim, "amin"), out, "amin");
}
void max_all(const Tensor& self, Tensor& out) { extremum(ReduceOp::Max, self, all_of(self), out, "max"); }
void min_all(const Tensor& self, Tensor& out) { extremum(ReduceOp::Min, self, all_of(self), out, "min"); }
void all_all(const Tensor& self, Tensor& out) { logical(ReduceOp::Min, self, all_of(self), out, "all"); }
void any_all(const Tensor& self, Tensor& out) { logical(ReduceOp::Max, self, all_of(self), out, "any"); }
void all_dim(const Tensor& self, int64_t dim, bool, Tensor& out) {
  logical(ReduceOp::Min, self, mask_of(self, IntArrayRef(dim), "all"), out, "all");
}
void any_dim(const Tensor& self, int64_t dim, bool, Tensor& out) {
  logical(ReduceOp::Max, self, mask_of(self, IntArrayRef(dim), "any"), out, "any");
}
void all_dims(const Tensor& self, std::optional<IntArrayRef> dim, bool, Tensor& out) {
  logical(ReduceOp::Min, self, mask_of(self, dim, "all"), out, "all");
}
void any_dims(const Tensor& self, std::optional<IntArrayRef> dim, bool, Tensor& out) {
  logical(ReduceOp::Max, self, mask_of(self, dim, "any"), out, "any");
}

}  // namespace tenon::cpu
