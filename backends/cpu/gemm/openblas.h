// The interface to OpenBLAS: which products it accepts, the call, and the choice between it and Tenon's own
// product. Used by the matmul family. Only this file knows the rules of BLAS for strides and integer sizes.
#pragma once

#include <string_view>

#include "backends/cpu/gemm/gemm.h"

namespace tenon::cpu {

/// Whose kernel computed a product.
enum class GemmBy : uint8_t { Tenon, OpenBlas };
/// "tenon" or "openblas".
std::string_view name(GemmBy by) noexcept;

/// Whether there is an OpenBLAS that Tenon takes; looks for it the first time.
bool has_blas();

/// Whether BLAS accepts these operands without a copy. Every size must fit a 32-bit int, and each matrix must
/// have one unit stride and another stride of at least the matching size (and at least 1): row-major, or
/// column-major, which is passed as a transposed operand. Negative and zero strides are refused, and so are k
/// = 0 and alpha = 0, for which BLAS does not read A and B and would lose their NaNs.
template <class T>
bool blas_accepts(const GemmArgs<T>& args) noexcept;

/// Whether BLAS was measured to be faster for this size (docs/decisions/0003-gemm-order.md).
template <class T>
bool blas_pays(const GemmArgs<T>& args) noexcept;

/// The product through BLAS. Its bits depend on the library, the CPU, the threads and the shape.
/// Throws Error{NotImplemented} without OpenBLAS, Error{Value} unless blas_accepts(args).
template <class T>
void blas_gemm(const GemmArgs<T>& args);

/// Computes the product with whichever is faster, or with Tenon's own if `strict`; returns which it was. T:
/// float, double.
template <class T>
GemmBy gemm_by_best(const GemmArgs<T>& args, bool strict);

extern template bool blas_accepts(const GemmArgs<float>&) noexcept;
extern template bool blas_accepts(const GemmArgs<double>&) noexcept;
extern template bool blas_pays(const GemmArgs<float>&) noexcept;
extern template bool blas_pays(const GemmArgs<double>&) noexcept;
extern template void blas_gemm(const GemmArgs<float>&);
extern template void blas_gemm(const GemmArgs<double>&);
extern template GemmBy gemm_by_best(const GemmArgs<float>&, bool strict);
extern template GemmBy gemm_by_best(const GemmArgs<double>&, bool strict);

}  // namespace tenon::cpu
