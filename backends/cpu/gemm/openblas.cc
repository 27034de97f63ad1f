#include "backends/cpu/gemm/openblas.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>

#include "backends/cpu/gemm/openblas_library.h"
#include "tenon/core/error.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// A matrix as BLAS sees it from row-major order.
struct BlasMatrix {
  bool accepted = false;
  bool transposed = false;
  int64_t leading = 1;
};

BlasMatrix blas_matrix(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto leads = [](int64_t stride, int64_t count, int64_t length) {
    // A dimension of one element is never stepped over: its stride may be anything, and is replaced.
    return count == 1 ? std::max<int64_t>(1, length) : stride;
  };
  if (column == 1 || columns == 1) {
    const int64_t leading = leads(row, rows, columns);
    if (leading >= std::max<int64_t>(1, columns) && leading <= kMost) return {true, false, leading};
  }
  if (row == 1 || rows == 1) {
    const int64_t leading = leads(column, columns, rows);
    if (leading >= std::max<int64_t>(1, rows) && leading <= kMost) return {true, true, leading};
  }
  return {};
}

// OpenBLAS frees its buffers when the process ends, also under threads that still multiply. Products that run
// by then are waited for, a while, and later ones are Tenon's own.
std::atomic<int> g_running{0};
std::atomic<bool> g_ending{false};

class BlasUse {
 public:
  BlasUse() noexcept { ++g_running; }
  ~BlasUse() { --g_running; }
  BlasUse(const BlasUse&) = delete;
  BlasUse& operator=(const BlasUse&) = delete;
  bool allowed() const noexcept { return !g_ending; }
};

const struct AtEnd {
  ~AtEnd() {
    g_ending = true;
    // A forked child has its parent's count, and no thread that would lower it.
    for (int ms = 0; ms < 5000 && g_running != 0 && !in_forked_child(); ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
} g_at_end;

bool fits(int64_t size) { return size >= 1 && size <= std::numeric_limits<int32_t>::max(); }

template <class T>
constexpr const char* type_name() {
  return std::is_same_v<T, float> ? "float32" : "float64";
}

}  // namespace

std::string_view name(GemmBy by) noexcept { return by == GemmBy::Tenon ? "tenon" : "openblas"; }

bool has_blas() { return openblas() != nullptr; }

template <class T>
bool blas_accepts(const GemmArgs<T>& g) noexcept {
  return fits(g.m) && fits(g.n) && fits(g.k) && g.alpha != T(0) &&
         blas_matrix(g.m, g.k, g.a_row, g.a_col).accepted &&
         blas_matrix(g.k, g.n, g.b_row, g.b_col).accepted && blas_matrix(g.m, g.n, g.c_row, g.c_col).accepted;
}

template <class T>
bool blas_pays(const GemmArgs<T>& g) noexcept {
  constexpr int64_t kWork = int64_t{512} * 512 * 512;
  return g.m >= 32 && g.n >= 32 && g.k >= 32 && g.m * g.n >= kWork / g.k;
}

template <class T>
void blas_gemm(const GemmArgs<T>& g) {
  const OpenBlas* blas = openblas();
  if (blas == nullptr) {
    throw_error(ErrorKind::NotImplemented,
                fmt::format("blas_gemm: no OpenBLAS for {} products, which are {}; use gemm", type_name<T>(),
                            openblas_description()));
  }
  TENON_CHECK(
      blas_accepts(g), Value,
      fmt::format("blas_gemm: expected positive sizes and row- or column-major {} operands, got strides that "
                  "BLAS does not take; use gemm",
                  type_name<T>()));
  BlasMatrix a = blas_matrix(g.m, g.k, g.a_row, g.a_col), b = blas_matrix(g.k, g.n, g.b_row, g.b_col);
  const BlasMatrix c = blas_matrix(g.m, g.n, g.c_row, g.c_col);
  const T *first = g.a, *second = g.b;
  int64_t rows = g.m, columns = g.n;
  if (c.transposed) {  // C^T = B^T A^T
    std::swap(a, b), std::swap(first, second), std::swap(rows, columns);
    a.transposed = !a.transposed, b.transposed = !b.transposed;
  }
  const auto flag = [](const BlasMatrix& x) {
    return x.transposed ? OpenBlas::kTranspose : OpenBlas::kNoTranspose;
  };
  const auto i = [](int64_t x) { return static_cast<int>(x); };
  // OpenBLAS asks OpenMP for the number of threads at each product, unless it was started with one.
  const OpenMpThreads threads;
  if (threads.count() > 1 && blas->get_num_threads() == 1) blas->set_num_threads(threads.count());
  OpenBlas::Gemm<T> product;
  if constexpr (std::is_same_v<T, float>) {
    product = blas->sgemm;
  } else {
    product = blas->dgemm;
  }
  product(OpenBlas::kRowMajor, flag(a), flag(b), i(rows), i(columns), i(g.k), g.alpha, first, i(a.leading),
          second, i(b.leading), g.beta, g.c, i(c.leading));
}

/// Whether OpenBLAS finds its buffers, 128 MiB for each thread of a product. It asks for ever where a limit
/// of the address space refuses them.
bool blas_has_room() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  const size_t bytes = (size_t{128} << 20) * static_cast<size_t>(num_threads() + 1);
  void* probe = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, bytes);
  return true;
}

template <class T>
GemmBy gemm_by_best(const GemmArgs<T>& g, bool strict) {
  if (!strict && !in_forked_child() && blas_pays(g) && blas_accepts(g) && blas_has_room() && has_blas()) {
    if (const BlasUse use; use.allowed()) {
      blas_gemm(g);
      return GemmBy::OpenBlas;
    }
  }
  gemm(g);
  return GemmBy::Tenon;
}

template bool blas_accepts(const GemmArgs<float>&) noexcept;
template bool blas_accepts(const GemmArgs<double>&) noexcept;
template bool blas_pays(const GemmArgs<float>&) noexcept;
template bool blas_pays(const GemmArgs<double>&) noexcept;
template void blas_gemm(const GemmArgs<float>&);
template void blas_gemm(const GemmArgs<double>&);
template GemmBy gemm_by_best(const GemmArgs<float>&, bool strict);
template GemmBy gemm_by_best(const GemmArgs<double>&, bool strict);

}  // namespace tenon::cpu
