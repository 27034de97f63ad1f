// OpenBLAS as a library that is looked for when the first large product needs it: nothing is linked, so that
// Tenon runs where there is none. Used by openblas.cc, which knows when a product goes there.
#pragma once

#include <string>

namespace tenon::cpu {

/// What Tenon calls of OpenBLAS, by the C interface of BLAS with 32-bit integers.
struct OpenBlas {
  template <class T>
  using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a,
                        int lda, const T* b, int ldb, T beta, T* c, int ldc);
  static constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  int (*get_num_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
};

/// The library, opened by the first call; null where there is none that Tenon takes. TENON_OPENBLAS names the
/// only file to try; "none" tries nothing. Never closed.
const OpenBlas* openblas();

/// Version and file of the library, or a sentence on why there is none. Opens it, as openblas() does.
const std::string& openblas_description();

}  // namespace tenon::cpu
