// Plain reductions (expr/plain_reduction.h): a tensor is walked in memory order, with loads that convert,
// step over strides and take complex numbers apart, in the tree of backends/cpu/reduce.

#include <algorithm>
#include <bit>
#include <complex>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/cpu/copy/copy.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/operand_walk.h"
#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/reduce/factors.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/report.h"
#include "tenon/core/half.h"
#include "tenon/core/parallel.h"
#include "tenon/expr/plain_reduction.h"
#include "tenon/ops/device_stubs.h"

namespace tenon::cpu {
namespace {

using expr::ReduceKind;
using expr::Type;

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
    if (reduce_short_strip(op, columns, kStrip, static_cast<size_t>(extent), out + j, static_cast<size_t>(n)))
      continue;
    OuterReducer<T> reducer(op, static_cast<size_t>(n));
    reducer.feed(columns, kStrip, static_cast<size_t>(extent));
    reducer.result(out + j);
  }
}

/// out[j] = the reduction of the `extent` elements from `from` + j * `item` on, which are `step` bytes apart,
/// of up to kReduceStrip results: rows of them are converted to a tile.
template <class T>
void reduce_strip(ReduceOp op, const char* from, int64_t item, int64_t step, int64_t extent,
                  ConvertFn convert, T* out, int64_t outputs) {
  constexpr int64_t kItem = sizeof(T), kStrip = kReduceStrip, kRows = 32;
  alignas(64) T tile[kRows * kStrip];
  OuterReducer<T> reducer(op, static_cast<size_t>(outputs));
  for (int64_t at = 0; at < extent; at += kRows) {
    const int64_t rows = std::min(kRows, extent - at);
    convert(tile, {kItem, kItem * kStrip}, from + at * step, {item, step}, outputs, rows);
    reducer.feed(tile, kStrip, static_cast<size_t>(rows));
    if (at + rows < extent) check_stop();
  }
  reducer.result(out);
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
    if (!convert && step == -kItem && rows == kTogether) {
      for (int64_t r = 0; r < rows; ++r) from[r] = reinterpret_cast<const T*>(base + kept.offset(i + r));
      reducer.reset();
      reducer.feed_backward(from, static_cast<size_t>(rows), static_cast<size_t>(extent));
      reducer.result(out + i, static_cast<size_t>(rows));
      continue;
    }
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
      if (at + n < extent) check_stop();
    }
    reducer.result(out + i, static_cast<size_t>(rows));
  }
}

/// out[i] = the reduction of result i's elements.
template <class T>
void reduce_to(ReduceOp op, const OperandWalk& walk, T* out) {
  const ConvertFn convert = convert_from(walk.dtype, kElement<T>, walk.name);
  const char* base = walk.base;
  const StridedDims &kept = walk.kept, &reduced = walk.reduced;
  const int64_t outputs = kept.numel(), extent = reduced.numel();
  if (outputs == 0) return;
  if (extent == 0) {
    std::fill(out, out + outputs, reduce_identity<T>(op));
    return;
  }
  if (outputs == 1 && !convert && reduced.dense(sizeof(T))) {
    *out = reduce_contiguous(op, reinterpret_cast<const T*>(base), static_cast<size_t>(extent));
    return;
  }
  const int64_t grain = std::max<int64_t>(kGrain / extent, 1), item = walk.item();
  const std::optional<ReduceSource> source = convert ? source_of<T>(walk.dtype, op) : std::nullopt;
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
  constexpr int64_t kStrip = kReduceStrip;
  if (convert && rows_of_results && kept.strides[last] == item && kept.sizes[last] >= kTogether) {
    const int64_t row = kept.sizes[last], strips = (row + kStrip - 1) / kStrip;
    const int64_t few = std::max<int64_t>(grain / kStrip, 1);
    parallel_for(0, outputs / row * strips, few, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / strips * row + i % strips * kStrip;
        reduce_strip(op, base + kept.offset(first), item, step, extent, convert, out + first,
                     std::min(kStrip, row - i % strips * kStrip));
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

/// Products that the tree has made NaN, from their factors again.
template <class T>
void resolve_products(const OperandWalk& walk, T* products) {
  const ConvertFn convert = convert_from(walk.dtype, kElement<T>, walk.name);
  const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(walk.reduced.numel(), 1), 1);
  parallel_for(0, walk.kept.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (products[i] == products[i]) continue;
      Factors<T> factors;
      for_each_tile<T>(walk.base + walk.kept.offset(i), walk.reduced, convert, [&](const T* p, int64_t n) {
        for (int64_t j = 0; j < n; ++j) factors.add(p[j]);
      });
      products[i] = factors.resolve(products[i]);
    }
  });
}

/// Sums of complex numbers whose parts are of type T, along or across dense memory: both parts in
/// one walk, to out[2 * i] and out[2 * i + 1]. Returns whether they do.
template <class T>
bool sum_dense_pairs(const OperandWalk& walk, T* out) {
  constexpr int64_t kItem = 2 * sizeof(T);
  const StridedDims &kept = walk.kept, &reduced = walk.reduced;
  const int64_t outputs = kept.numel(), extent = reduced.numel();
  if (walk.item() != kItem || outputs == 0 || extent == 0) return false;
  const auto at = [&](int64_t i) { return reinterpret_cast<const T*>(walk.base + kept.offset(i)); };
  const int64_t grain = std::max<int64_t>(kGrain / extent, 1);
  const size_t last = kept.sizes.size() - 1;
  if (reduced.dense(kItem)) {
    parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sum_pairs(at(i), static_cast<size_t>(extent), out + 2 * i, out + 2 * i + 1);
    });
  } else if (reduced.sizes.size() == 1 && !kept.sizes.empty() && kept.strides[last] == kItem) {
    // Neighbouring results, and their parts, side by side.
    const int64_t row = kept.sizes[last], stride = reduced.strides[0] / static_cast<int64_t>(sizeof(T));
    parallel_for(0, outputs / row, std::max<int64_t>(grain / row, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        reduce_outer(ReduceOp::Sum, at(i * row), stride, static_cast<size_t>(extent), out + 2 * i * row,
                     static_cast<size_t>(2 * row));
    });
  } else {
    return false;
  }
  return true;
}

/// Sums of complex numbers are those of their parts.
template <class T>
void sum_pairs_of(const OperandWalk& walk, T* out) {
  if (sum_dense_pairs(walk, out)) return;
  OperandWalk part = walk;
  part.dtype = real_dtype(walk.dtype);
  std::vector<T> sums(static_cast<size_t>(walk.kept.numel()));
  for (const int64_t i : {0, 1}) {
    part.base = walk.base + i * part.item();
    reduce_to(ReduceOp::Sum, part, sums.data());
    for (size_t k = 0; k < sums.size(); ++k) out[2 * k + static_cast<size_t>(i)] = sums[k];
  }
}

/// Products of complex numbers, in logical order.
template <class T>
void multiply_pairs_of(const OperandWalk& walk, T* out) {
  using Complex = std::complex<T>;
  const ConvertFn convert = convert_from(walk.dtype, dtype_of<Complex>, walk.name);
  const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(walk.reduced.numel(), 1), 1);
  parallel_for(0, walk.kept.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T re = 1, im = 0;
      for_each_tile<Complex>(walk.base + walk.kept.offset(i), walk.reduced, convert,
                             [&](const Complex* p, int64_t n) {
                               for (int64_t j = 0; j < n; ++j) {
                                 const T c = p[j].real(), d = p[j].imag();
                                 const T next = re * c - im * d;
                                 im = re * d + im * c;
                                 re = next;
                               }
                             });
      out[2 * i] = re;
      out[2 * i + 1] = im;
    }
  });
}

/// The means of `extent` elements, from their sums.
template <class T>
void divide(T* sums, int64_t n, int64_t extent) {
  const T by = extent > 0 ? static_cast<T>(extent) : std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = 0; i < n; ++i) sums[i] /= by;
}

/// One call: the operand's walk, and where the results go.
class Reduction {
 public:
  explicit Reduction(const ops::ReduceCall& call) : call_(call), what_(call.what) {
    const Tensor& self = call.self;
    walk_.name = call.name;
    walk_.base = static_cast<const char*>(self.data_ptr());
    // Of complex numbers that are computed with as real ones, the real parts.
    walk_.dtype = what_.complex ? self.dtype() : real_dtype(self.dtype());
    const auto item = static_cast<int64_t>(self.itemsize());
    const IntArrayRef sizes = self.sizes(), strides = self.strides();
    const int64_t* over = call.over.data();
    for (size_t d = 0; d < sizes.size(); ++d)
      (over[d] ? walk_.reduced : walk_.kept).add(sizes[d], strides[d] * item);
    count_ = walk_.kept.numel();
  }

  void run() const {
    switch (what_.kind) {
      case ReduceKind::Sum:
        return of_pairs() ? reduce_pairs(&sum_pairs_of<float>, &sum_pairs_of<double>) : reduce(ReduceOp::Sum);
      case ReduceKind::Prod:
        return of_pairs() ? reduce_pairs(&multiply_pairs_of<float>, &multiply_pairs_of<double>)
                          : reduce(ReduceOp::Prod);
      case ReduceKind::Max:
        return reduce(ReduceOp::Max);
      case ReduceKind::Min:
        return reduce(ReduceOp::Min);
      case ReduceKind::Any:
        return reduce_as<uint8_t>(ReduceOp::Max);
      case ReduceKind::All:
        return reduce_as<uint8_t>(ReduceOp::Min);
      default:
        return find(what_.kind == ReduceKind::ArgMax ? ReduceOp::Max : ReduceOp::Min);
    }
  }

 private:
  /// Whether results are complex numbers.
  bool of_pairs() const { return what_.complex && is_complex(call_.results[0]->dtype()); }

  WalkResults results(size_t i) const {
    const Tensor& out = *call_.results[i];
    return {static_cast<char*>(out.data_ptr()), out.dtype(), static_cast<int64_t>(out.itemsize())};
  }

  void reduce(ReduceOp op) const {
    const bool extremum = op == ReduceOp::Max || op == ReduceOp::Min;
    if (extremum && walk_.dtype == DType::Bool) return reduce_as<uint8_t>(op);
    switch (what_.type) {
      case Type::F32:
        return reduce_as<float>(op);
      case Type::F64:
        return reduce_as<double>(op);
      case Type::I32:
        return reduce_as<int32_t>(op);
      default:
        return reduce_as<int64_t>(op);
    }
  }

  template <class T>
  void reduce_as(ReduceOp op) const {
    report();
    const WalkResults out = results(0);
    if (out.dtype == kElement<T>) return reduce_into(op, reinterpret_cast<T*>(out.data));
    std::vector<T> values(static_cast<size_t>(count_));
    reduce_into(op, values.data());
    out.store(values.data(), count_);
  }
  template <class T>
  void reduce_into(ReduceOp op, T* values) const {
    reduce_to(op, walk_, values);
    if constexpr (std::is_floating_point_v<T>) {
      if (op == ReduceOp::Prod) resolve_products(walk_, values);
      if (what_.mean) divide(values, count_, walk_.reduced.numel());
    }
  }

  void reduce_pairs(void (*as_float)(const OperandWalk&, float*),
                    void (*as_double)(const OperandWalk&, double*)) const {
    report();
    if (what_.type == Type::F64)
      reduce_pairs_as(as_double);
    else
      reduce_pairs_as(as_float);
  }
  template <class T>
  void reduce_pairs_as(void (*reduce)(const OperandWalk&, T*)) const {
    const Tensor& out = *call_.results[0];
    auto* to = static_cast<char*>(out.data_ptr());
    const DType part = real_dtype(out.dtype());
    const bool direct = part == dtype_of<T>;
    std::vector<T> scratch(direct ? 0 : 2 * static_cast<size_t>(count_));
    T* pairs = direct ? reinterpret_cast<T*>(to) : scratch.data();
    reduce(walk_, pairs);
    if (what_.mean) divide(pairs, 2 * count_, walk_.reduced.numel());
    if (!direct) WalkResults{to, part, static_cast<int64_t>(item_size(part))}.store(pairs, 2 * count_);
  }

  void find(ReduceOp op) const {
    const WalkResults first = results(0);
    if (!what_.elements) return find_extrema(walk_, op, what_.type, nullptr, first);
    find_extrema(walk_, op, what_.type, &first, results(1));
  }

  void report() const { report_kernel(call_.name, TENON_KERNEL_NAMES("reduce")); }

  const ops::ReduceCall& call_;
  const expr::PlainReduction& what_;
  OperandWalk walk_;
  int64_t count_;
};

}  // namespace

void reduce(const ops::ReduceCall& call) { Reduction(call).run(); }

}  // namespace tenon::cpu
