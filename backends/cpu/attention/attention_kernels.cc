// The kernels of attention, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/attention_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <limits>

#include "backends/cpu/attention/attention_kernels.h"
#include "backends/cpu/reduce/reduce_kernels-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

/// By the tree of reductions, of chunks one after the other.
template <class T>
HWY_INLINE T sum_row(const T* p, int64_t n) {
  constexpr int64_t kChunk = kReduceChunk;
  T total = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    HWY_ALIGN T sums[kReduceLanes] = {};
    lanes<ReduceOp::Sum, LoadSame<T>>(sums, 0, p + i, static_cast<size_t>(std::min(kChunk, n - i)));
    const T chunk = fold<ReduceOp::Sum>(sums);
    total = i == 0 ? chunk : total + chunk;
  }
  return total;
}

template <class T>
HWY_INLINE T largest_of(const T* p, int64_t n) {
  return extremum<ReduceOp::Max, LoadSame<T>, T>(p, static_cast<size_t>(n));
}

/// f(vector tag, position) over a row: whole vectors, then single elements.
template <class T, class F>
HWY_INLINE void for_row(int64_t columns, F&& f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + width <= columns; c += width) f(d, c);
  for (; c < columns; ++c) f(one, c);
}

template <class T>
void subtract_row(T* x, int64_t columns, T shift) {
  for_row<T>(columns, [=](auto d, int64_t c) HWY_ATTR {
    hn::StoreU(hn::Sub(hn::LoadU(d, x + c), hn::Set(d, shift)), d, x + c);
  });
}

template <class T>
void shift(T* scores, int64_t rows, int64_t columns, T* largest, T* change) {
  for (int64_t r = 0; r < rows; ++r, scores += columns) {
    const T before = largest[r];
    const T after = detail::combine(ReduceOp::Max, before, largest_of(scores, columns));
    const T zero_if_none = after == kLowest<T> ? T(0) : after;
    largest[r] = after;
    change[r] = before - zero_if_none;
    subtract_row(scores, columns, zero_if_none);
  }
}

template <class T>
void add_sums(const T* weights, int64_t rows, int64_t columns, const T* factor, T* total) {
  for (int64_t r = 0; r < rows; ++r, weights += columns)
    total[r] = total[r] * factor[r] + sum_row(weights, columns);
}

template <class T>
void scale(T* x, int64_t rows, int64_t columns, const T* factor) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    const T f = factor[r];
    for_row<T>(columns, [=](auto d, int64_t c)
                            HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, x + c), hn::Set(d, f)), d, x + c); });
  }
}

template <class T>
void divide(T* x, int64_t rows, int64_t columns, const T* divisor) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    const T f = divisor[r];
    if (f == T(0)) {
      std::fill_n(x, columns, T(0));
      continue;
    }
    for_row<T>(columns, [=](auto d, int64_t c)
                            HWY_ATTR { hn::StoreU(hn::Div(hn::LoadU(d, x + c), hn::Set(d, f)), d, x + c); });
  }
}

template <class T>
void subtract(T* x, int64_t rows, int64_t columns, const T* shift) {
  for (int64_t r = 0; r < rows; ++r, x += columns)
    subtract_row(x, columns, shift[r] == kLowest<T> ? T(0) : shift[r]);
}

template <class T>
void dot(const T* a, const T* b, int64_t rows, int64_t columns, T* out) {
  constexpr int64_t kChunk = kReduceChunk;
  HWY_ALIGN T products[kReduceChunk];
  for (int64_t r = 0; r < rows; ++r, a += columns, b += columns) {
    T total = 0;
    for (int64_t i = 0; i < columns; i += kChunk) {
      const int64_t n = std::min(kChunk, columns - i);
      for_row<T>(n, [&](auto d, int64_t c) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, a + i + c), hn::LoadU(d, b + i + c)), d, products + c);
      });
      const T chunk = sum_row(products, n);
      total = i == 0 ? chunk : total + chunk;
    }
    out[r] = total;
  }
}

template <class T>
void gradient(const T* weights, T* gradient, int64_t rows, int64_t columns, const T* mean) {
  for (int64_t r = 0; r < rows; ++r, weights += columns, gradient += columns) {
    const T m = mean[r];
    for_row<T>(columns, [=](auto d, int64_t c) HWY_ATTR {
      const auto difference = hn::Sub(hn::LoadU(d, gradient + c), hn::Set(d, m));
      hn::StoreU(hn::Mul(hn::LoadU(d, weights + c), difference), d, gradient + c);
    });
  }
}

template <class T>
constexpr AttentionKernels<T> kTable = {&shift<T>,    &add_sums<T>, &scale<T>,   &divide<T>,
                                        &subtract<T>, &dot<T>,      &gradient<T>};

}  // namespace

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <class T>
const AttentionKernels<T>& attention_kernels(CpuTarget target) {
  static constexpr AttentionKernels<T> kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable<T>);
  return kTables[static_cast<size_t>(target)];
}

template const AttentionKernels<float>& attention_kernels(CpuTarget);
template const AttentionKernels<double>& attention_kernels(CpuTarget);

}  // namespace tenon::cpu
#endif
