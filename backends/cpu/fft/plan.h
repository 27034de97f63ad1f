// FftPlan: how the discrete Fourier transform of one length is computed, with its tables. Real lengths have a
// table more. Plans depend on the length and the type alone, and so do the bits of a result. Used by
// transform.cc; plans are kept in a cache that all threads share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::cpu {

/// Transforms that go together in one panel: 64 bytes of parts.
template <class T>
inline constexpr int64_t kFftLanes = 64 / static_cast<int64_t>(sizeof(T));

/// Elements that kernels may read after the last one of a plane or of a table.
inline constexpr int64_t kFftPadding = 64;
/// The largest prime factor that a pass handles; lengths with larger ones use a chirp.
inline constexpr int64_t kFftLargestPrime = 61;

/// A pass of Stockham's algorithm: `groups` butterflies of `radix` elements for each of `inner` places.
struct FftPass {
  int64_t radix = 1, groups = 1, inner = 1;
  size_t twiddles = 0;  ///< In the plan's table: for c from 1: `inner` real parts, `inner` imaginary ones.
  size_t roots = 0;     ///< cos and sin of 2 pi j / radix: `radix` each, of odd radices.
};

enum class FftKind : uint8_t {
  Passes,   ///< One pass for each factor.
  Blocked,  ///< A matrix of `first` x `second`: its columns, twiddles, its rows.
  Chirp,    ///< Bluestein's convolution, of the length of `first`.
};

template <class T>
struct FftPlan {
  FftKind kind = FftKind::Passes;
  int64_t n = 1;
  std::vector<FftPass> passes;
  std::vector<T> table;
  std::shared_ptr<const FftPlan> first, second;

  /// Elements of a plane that the transform needs: those of whole tiles, of a matrix.
  int64_t capacity() const {
    if (kind == FftKind::Passes) return n;
    return kind == FftKind::Chirp ? first->capacity() : (panels() * first->n + kFftLanes<T>)*kFftLanes<T>;
  }
  /// Whether transforms side by side may go in panels.
  bool in_panels() const {
    return kind == FftKind::Passes || (kind == FftKind::Chirp && first->kind == FftKind::Passes);
  }
  size_t bytes() const { return sizeof(*this) + table.size() * sizeof(T); }

  // Blocked: for each row of `first`, roots of the places in a panel, then of the first places of panels.
  const T* within(int64_t row) const { return table.data() + 2 * row * kFftLanes<T>; }
  const T* of_panels(int64_t row) const {
    return table.data() + 2 * (first->n * kFftLanes<T> + row * panels());
  }
  int64_t panels() const { return (second->n + kFftLanes<T> - 1) / kFftLanes<T>; }

  // Chirp: n values, real then imaginary parts; then the transform of its conjugate over the inner length,
  // divided by that length, likewise.
  const T* chirp() const { return table.data(); }
  const T* spectrum() const { return table.data() + 2 * (n + kFftPadding); }
};

/// A real transform of an even length: the complex one of half of it, and exp(-2 pi i k / n) for k up to
/// n / 2, real parts then imaginary ones. Of an odd length: the complex one.
template <class T>
struct RealFftPlan {
  std::shared_ptr<const FftPlan<T>> half;
  std::vector<T> table;

  int64_t capacity() const { return half->capacity() + 1; }
  bool in_panels() const { return half->in_panels(); }
  size_t bytes() const { return sizeof(*this) + table.size() * sizeof(T); }
};

/// From the cache, or made; n > 0. The cache is bounded in bytes and drops what was used longest ago.
template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);
template <class T>
std::shared_ptr<const RealFftPlan<T>> real_fft_plan(int64_t n);

}  // namespace tenon::cpu
