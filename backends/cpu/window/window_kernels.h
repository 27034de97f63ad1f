// What sums and maxima over windows are made of: loops over dense rows. Used by ops/window.cc. Knows no
// tensors and no axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// Rows of sums. `out` may be `a` or `x`; other rows do not overlap. n counts elements.
template <class T>
struct SumKernels {
  /// A signed integer as wide as T.
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

  void (*add)(T* out, const T* a, const T* b, size_t n);                  // a + b
  void (*multiply)(T* out, const T* x, T w, size_t n);                    // w * x
  void (*multiply_add)(T* out, const T* x, T w, size_t n);                // out + w * x, rounded twice
  void (*add_strided)(T* out, const T* x, int64_t step, size_t n);        // out[i] + x[i * step]
  void (*divide)(T* out, const T* x, T by, size_t n);                     // x / by
  void (*divide_each)(T* out, const T* x, T by, const T* bys, size_t n);  // x[i] / (by * bys[i])
  /// The sum of `count` rows, each times its weight, in their order; weights may be null, for ones.
  void (*rows)(T* out, const T* const* rows, const T* weights, size_t count, size_t n);
  /// out[o] += weights[i] * x[places[i] - first] for i in [begins[o], begins[o + 1]), ascending; weights may
  /// be null, for ones.
  void (*listed)(T* out, const T* x, int64_t first, const int64_t* begins, const int64_t* places,
                 const T* weights, size_t n);
  /// The same for pixels of `inner` elements each. If `fresh`, sums start at 0, whatever `out` has.
  void (*listed_pixels)(T* out, const T* x, int64_t first, const int64_t* begins, const int64_t* places,
                        const T* weights, size_t inner, size_t n, bool fresh);
  /// The same as listed, for outputs that have `taps` places each, ascending with the output: those of output
  /// o are places[t * row + o], for t ascending. x has `width` elements.
  void (*listed_evenly)(T* out, const T* x, size_t width, Place first, const Place* places, const T* weights,
                        size_t taps, size_t row, size_t n, bool fresh);
};

/// Rows of maxima with their places, which are numbers that grow in the order of elements. NaN is larger than
/// all, and of several NaNs the last counts; of equal values the first.
template <class T, class Place>
struct MaxKernels {
  void (*start)(T* values, Place* places, const T* x, Place place, size_t n);
  /// Starts with two rows, `y` after `x`.
  void (*start_with_two)(T* values, Place* places, const T* x, Place x_place, const T* y, Place y_place,
                         size_t n);
  /// All of `x` come after what has been seen.
  void (*update)(T* values, Place* places, const T* x, Place place, size_t n);
  /// places[i] += add + i
  void (*locate)(Place* places, Place add, size_t n);
  /// In any order; x and its places, to which `add` is added, are `step` elements apart.
  void (*combine)(T* values, Place* places, const T* x, const Place* x_places, Place add, int64_t step,
                  size_t n);
  /// The same for n pixels of `inner` elements each; those of x are `step` pixels apart, and so is what is
  /// added to their places. If `fresh`, they are the first ones, whatever `values` has.
  void (*combine_pixels)(T* values, Place* places, const T* x, const Place* x_places, Place add, int64_t step,
                         size_t inner, size_t n, bool fresh);
};

/// Rows of maxima alone, the same as those of MaxKernels.
template <class T>
struct MaxValueKernels {
  /// out[i] = the maximum of rows[r][first + i * step + t * dilation] for r below `count` and, inside of
  /// that, t below `taps`. If not `fresh`, out[i] comes before them.
  void (*windows)(T* out, const T* const* rows, size_t count, int64_t first, int64_t taps, int64_t dilation,
                  int64_t step, size_t n, bool fresh);
};

struct WindowKernels {
  SumKernels<float> sum_f32;
  SumKernels<double> sum_f64;
  MaxKernels<float, int32_t> max_f32;
  MaxKernels<double, int64_t> max_f64;
  MaxKernels<int64_t, int64_t> max_i64;
  MaxValueKernels<float> max_values_f32;
  MaxValueKernels<double> max_values_f64;
  MaxValueKernels<int64_t> max_values_i64;
};

/// Those of one instruction set, which the machine must have: by default, that which this process runs.
const WindowKernels& window_kernels(CpuTarget target = cpu_target()) noexcept;

}  // namespace tenon::cpu
