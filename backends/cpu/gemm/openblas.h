// The border to OpenBLAS: which products it takes, and the call. With it, the choice between it and Tenon's
// own product. Used by the matmul family. The only place that knows the rules of BLAS for strides and integer
// sizes.
#pragma once

#include <string_view>

#include "backends/cpu/gemm/gemm.h"

namespace tenon::cpu {

/// Whose kernel computed a product.
enum class GemmBy : uint8_t { Tenon, OpenBlas };
/// "tenon" or "openblas".
std::string_view name(GemmBy by) noexcept;

/// Whether this build has OpenBLAS.
bool has_blas() noexcept;

/// Whether BLAS takes these operands where they lie. It wants every size within a 32-bit int, and each matrix
/// with one unit stride and the other at least the matching size (and at least 1): row-major, or
/// column-major, which reaches it as a transposed operand, uncopied. Negative and zero strides are refused;
/// so are k = 0 and alpha = 0, for which BLAS does not read A and B (and so loses their NaNs).
template <class T>
bool blas_accepts(const GemmArgs<T>& args) noexcept;

/// Whether BLAS was measured to be faster for this size (docs/decisions/0003-gemm-order.md).
template <class T>
bool blas_pays(const GemmArgs<T>& args) noexcept;

/// The product through BLAS. Its bits depend on the library, the CPU, the threads and the shape.
/// Throws Error{NotImplemented} without OpenBLAS, Error{Value} unless blas_accepts(args).
template <class T>
void blas_gemm(const GemmArgs<T>& args);

/// The product by whoever is faster, or by Tenon whenever `strict`; says who it was. T: float, double.
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
