#include "backends/cpu/lapack/spectra.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cpu/lapack/library.h"
#include "tenon/core/strict.h"

namespace tenon::cpu::lapack {
namespace {

/// The letter that names of functions begin with.
template <class S>
constexpr char kLetter = std::is_same_v<S, float>                 ? 's'
                         : std::is_same_v<S, double>              ? 'd'
                         : std::is_same_v<S, std::complex<float>> ? 'c'
                                                                  : 'z';
/// What Fortran wants to know of a letter.
constexpr size_t kOneLetter = 1;

/// A function of the library with these arguments; each is by reference, but for the lengths of letters.
template <class... A>
using Function = void (*)(A...);

template <class F, class S>
F function_of(const char* name) {
  return reinterpret_cast<F>(library().function((kLetter<S> + std::string(name)).c_str()));
}

/// Numbers as many as a query asks for, which in float32 may say so rounded down.
template <class S>
std::vector<S> workspace(S asked) {
  return std::vector<S>(static_cast<size_t>(std::real(asked) * typename RealOf<S>::type(1.01)) + 1);
}

template <class I, class S>
bool hermitian(int64_t size, S* a, typename RealOf<S>::type* values, bool vectors) {
  using T = typename RealOf<S>::type;
  const I n = static_cast<I>(size);
  // Its columns are the rows of `a`, so that the triangle is the upper one, and the matrix the conjugate.
  const char job = vectors ? 'V' : 'N', triangle = 'U';
  I info = 0;
  const auto call = [&](S* work, I works, T* reals, I num_reals, I* integers, I num_integers) {
    if constexpr (kIsComplex<S>) {
      static const auto run = function_of<Function<const char*, const char*, const I*, S*, const I*, T*, S*,
                                                   const I*, T*, const I*, I*, const I*, I*, size_t, size_t>,
                                          S>("heevd");
      run(&job, &triangle, &n, a, &n, values, work, &works, reals, &num_reals, integers, &num_integers, &info,
          kOneLetter, kOneLetter);
    } else {
      static const auto run = function_of<Function<const char*, const char*, const I*, S*, const I*, T*, S*,
                                                   const I*, I*, const I*, I*, size_t, size_t>,
                                          S>("syevd");
      run(&job, &triangle, &n, a, &n, values, work, &works, integers, &num_integers, &info, kOneLetter,
          kOneLetter);
    }
  };
  S works{};
  T reals{};
  I integers = 0;
  call(&works, -1, &reals, -1, &integers, -1);
  std::vector<S> work = workspace(works);
  std::vector<T> real_work = workspace(reals);
  std::vector<I> integer_work(static_cast<size_t>(integers) + 1);
  call(work.data(), static_cast<I>(work.size()), real_work.data(), static_cast<I>(real_work.size()),
       integer_work.data(), static_cast<I>(integer_work.size()));
  if (vectors && kIsComplex<S>) std::transform(a, a + size * size, a, [](S x) { return conjugate(x); });
  return info == 0;
}

template <class I, class S>
bool svd(int64_t rows, int64_t columns, S* a, typename RealOf<S>::type* values, S* u, S* v) {
  using T = typename RealOf<S>::type;
  const I m = static_cast<I>(rows), n = static_cast<I>(columns), one = 1;
  const char job = u ? 'S' : 'N';
  const auto most = static_cast<size_t>(columns);
  std::vector<I> integers(8 * most);
  // What the reference asks for, with and without vectors.
  std::vector<T> reals(
      kIsComplex<S>
          ? (u ? most * std::max(5 * most + 7, 2 * static_cast<size_t>(rows) + 2 * most + 1) : 7 * most) + 1
          : 0);
  std::vector<S> adjoint(u ? most * most : 1);
  I info = 0;
  const auto call = [&](S* work, I works) {
    const I *const ldu = u ? &m : &one, *const ldv = u ? &n : &one;
    S* const left = u ? u : adjoint.data();
    if constexpr (kIsComplex<S>) {
      static const auto run = function_of<Function<const char*, const I*, const I*, S*, const I*, T*, S*,
                                                   const I*, S*, const I*, S*, const I*, T*, I*, I*, size_t>,
                                          S>("gesdd");
      run(&job, &m, &n, a, &m, values, left, ldu, adjoint.data(), ldv, work, &works, reals.data(),
          integers.data(), &info, kOneLetter);
    } else {
      static const auto run = function_of<Function<const char*, const I*, const I*, S*, const I*, T*, S*,
                                                   const I*, S*, const I*, S*, const I*, I*, I*, size_t>,
                                          S>("gesdd");
      run(&job, &m, &n, a, &m, values, left, ldu, adjoint.data(), ldv, work, &works, integers.data(), &info,
          kOneLetter);
    }
  };
  S works{};
  call(&works, -1);
  std::vector<S> work = workspace(works);
  call(work.data(), static_cast<I>(work.size()));
  if (u)
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t k = 0; k < columns; ++k)
        v[i * columns + k] = conjugate(adjoint[static_cast<size_t>(k * columns + i)]);
  return info == 0;
}

template <class I, class S>
bool general(int64_t size, S* a, std::complex<typename RealOf<S>::type>* values,
             std::complex<typename RealOf<S>::type>* vectors) {
  using T = typename RealOf<S>::type;
  const I n = static_cast<I>(size), one = 1;
  const char left = 'N', right = vectors ? 'V' : 'N';
  const auto order = static_cast<size_t>(size);
  I info = 0;
  S works{};
  // Values as LAPACK has them: real and imaginary parts apart where `a` is real.
  std::vector<T> parts(2 * order);
  std::vector<S> columns(vectors && !kIsComplex<S> ? order * order : 1);
  const auto call = [&](S* work, I num_works) {
    if constexpr (kIsComplex<S>) {
      static const auto run =
          function_of<Function<const char*, const char*, const I*, S*, const I*, S*, S*, const I*, S*,
                               const I*, S*, const I*, T*, I*, size_t, size_t>,
                      S>("geev");
      run(&left, &right, &n, a, &n, values, columns.data(), &one, vectors ? vectors : columns.data(),
          vectors ? &n : &one, work, &num_works, parts.data(), &info, kOneLetter, kOneLetter);
    } else {
      static const auto run =
          function_of<Function<const char*, const char*, const I*, S*, const I*, T*, T*, S*, const I*, S*,
                               const I*, S*, const I*, I*, size_t, size_t>,
                      S>("geev");
      S unused;
      run(&left, &right, &n, a, &n, parts.data(), parts.data() + order, &unused, &one, columns.data(),
          vectors ? &n : &one, work, &num_works, &info, kOneLetter, kOneLetter);
    }
  };
  call(&works, -1);
  std::vector<S> work = workspace(works);
  call(work.data(), static_cast<I>(work.size()));
  if constexpr (!kIsComplex<S>) {
    for (size_t i = 0; i < order; ++i) values[i] = {parts[i], parts[order + i]};
    // Of a pair of conjugate values the first column has the real part of the first one's vector, the second
    // the imaginary.
    for (size_t i = 0; vectors && i < order; ++i) {
      const bool pair = values[i].imag() > 0 && i + 1 < order;
      for (size_t k = 0; k < order; ++k) {
        const T real = columns[i * order + k], imag = pair ? columns[(i + 1) * order + k] : T(0);
        vectors[i * order + k] = {real, imag};
        if (pair) vectors[(i + 1) * order + k] = {real, -imag};
      }
      i += pair;
    }
  }
  return info == 0;
}

/// Who has set the library's number of threads, and what it was.
struct {
  std::mutex mutex;
  int users = 0, before = 0;
} g_threads;

}  // namespace

bool is_used() { return !is_strict() && library().handle != nullptr; }

Threads::Threads(int count) {
  if (!library().set_threads) return;
  const std::lock_guard lock(g_threads.mutex);
  if (g_threads.users++ == 0) g_threads.before = library().set_threads(count);
}
Threads::~Threads() {
  if (!library().set_threads) return;
  const std::lock_guard lock(g_threads.mutex);
  if (--g_threads.users == 0) library().set_threads(g_threads.before);
}

template <class S>
bool solve_hermitian(int64_t n, S* a, typename RealOf<S>::type* values, bool vectors) {
  return library().wide ? hermitian<int64_t>(n, a, values, vectors)
                        : hermitian<int32_t>(n, a, values, vectors);
}

template <class S>
bool solve_svd(int64_t m, int64_t n, S* a, typename RealOf<S>::type* values, S* u, S* v) {
  return library().wide ? svd<int64_t>(m, n, a, values, u, v) : svd<int32_t>(m, n, a, values, u, v);
}

template <class S>
bool solve_general(int64_t n, S* a, std::complex<typename RealOf<S>::type>* values,
                   std::complex<typename RealOf<S>::type>* vectors) {
  return library().wide ? general<int64_t>(n, a, values, vectors) : general<int32_t>(n, a, values, vectors);
}

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
template bool solve_hermitian(int64_t, float*, float*, bool);
template bool solve_hermitian(int64_t, double*, double*, bool);
template bool solve_hermitian(int64_t, ComplexFloat*, float*, bool);
template bool solve_hermitian(int64_t, ComplexDouble*, double*, bool);
template bool solve_svd(int64_t, int64_t, float*, float*, float*, float*);
template bool solve_svd(int64_t, int64_t, double*, double*, double*, double*);
template bool solve_svd(int64_t, int64_t, ComplexFloat*, float*, ComplexFloat*, ComplexFloat*);
template bool solve_svd(int64_t, int64_t, ComplexDouble*, double*, ComplexDouble*, ComplexDouble*);
template bool solve_general(int64_t, float*, ComplexFloat*, ComplexFloat*);
template bool solve_general(int64_t, double*, ComplexDouble*, ComplexDouble*);
template bool solve_general(int64_t, ComplexFloat*, ComplexFloat*, ComplexFloat*);
template bool solve_general(int64_t, ComplexDouble*, ComplexDouble*, ComplexDouble*);

}  // namespace tenon::cpu::lapack
