// Arguments of Fourier transforms: dtypes, sizes, dimensions and norms, checked and resolved. Used by the
// files of this folder.
#pragma once

#include <optional>
#include <string_view>

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// What the operators with kernels call `normalization`.
enum class FftNorm : int64_t { None, ByRoot, ByNumber };
inline int64_t number(FftNorm norm) { return static_cast<int64_t>(norm); }

/// `norm` of a transform in that direction; throws Error{Value} for another name.
FftNorm fft_norm(std::optional<std::string_view> norm, bool forward, const char* op);

/// As the transforms compute: integers in the default floating dtype, half types in float32; with `complex`
/// as complex numbers.
Tensor fft_operand(const Tensor& self, bool complex, const char* op);

/// Throws Error{Type} for complex tensors.
void check_real(const Tensor& self, const char* op);

/// Dimensions and the sizes that they have in the transform.
struct FftSizes {
  Dims dims, sizes;
};
/// `dim` of `self` with `n` elements, or those that it has; `half`: n is that of real results, by default
/// twice as many, less two.
FftSizes fft_sizes(const Tensor& self, std::optional<int64_t> n, int64_t dim, bool half, const char* op);
/// The same of several dimensions; `half` is about the last one. `some`: there must be one.
FftSizes fft_sizes(const Tensor& self, std::optional<IntArrayRef> s, std::optional<IntArrayRef> dim,
                   bool half, bool some, const char* op);

/// `self` with these sizes: cut off, or with zeros at the end.
Tensor fft_resized(const Tensor& self, IntArrayRef dims, IntArrayRef sizes);

}  // namespace tenon::ops
