// Passes of transforms: in rows, vectors go along the places of a butterfly, in panels along the rows of the
// panel. Per target; included by kernels-inl.h.
#include <algorithm>

#include "backends/cpu/fft/butterflies-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

/// The transpose of a square of blocks of 16 bytes: block g of rows[c + b * kStep] from block b of those with
/// g.
template <int kBlocks, int kStep, class D, class V>
HWY_INLINE void transpose_blocks(D d, V* rows, int c) {
  V& a = rows[c];
  if constexpr (kBlocks == 2) {
    V& b = rows[c + kStep];
    const V first = a;
    a = hn::ConcatLowerLower(d, b, first);
    b = hn::ConcatUpperUpper(d, b, first);
  } else if constexpr (kBlocks == 4) {
    V &b = rows[c + kStep], &e = rows[c + 2 * kStep], &f = rows[c + 3 * kStep];
    const V p = hn::ConcatLowerLower(d, e, a), q = hn::ConcatLowerLower(d, f, b);
    const V s = hn::ConcatUpperUpper(d, e, a), t = hn::ConcatUpperUpper(d, f, b);
    a = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(q), p);
    b = hn::OddEvenBlocks(q, hn::SwapAdjacentBlocks(p));
    e = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(t), s);
    f = hn::OddEvenBlocks(t, hn::SwapAdjacentBlocks(s));
  }
}

/// A square of as many rows, `from_step` apart, as a vector has lanes.
template <class T>
HWY_INLINE void transpose_square(const T* HWY_RESTRICT from, size_t from_step, T* HWY_RESTRICT to,
                                 size_t step) {
  constexpr hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kRows = hn::MaxLanes(d), kInBlock = 16 / sizeof(T);
  V rows[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) rows[i] = hn::LoadU(d, from + static_cast<size_t>(i) * from_step);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; i += 2) {
    const V a = rows[i], b = rows[i + 1];
    rows[i] = hn::InterleaveLower(d, a, b);
    rows[i + 1] = hn::InterleaveUpper(d, a, b);
  }
  if constexpr (sizeof(T) == 4) {
    // Rows i to i + 3: pairs of elements of four rows, for columns 0 to 3 of each block.
    const hn::Repartition<double, decltype(d)> wide;
#pragma GCC unroll 4
    for (int i = 0; i < kRows; i += 4) {
      const auto a = hn::BitCast(wide, rows[i]), b = hn::BitCast(wide, rows[i + 1]);
      const auto c = hn::BitCast(wide, rows[i + 2]), e = hn::BitCast(wide, rows[i + 3]);
      rows[i] = hn::BitCast(d, hn::InterleaveLower(wide, a, c));
      rows[i + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, a, c));
      rows[i + 2] = hn::BitCast(d, hn::InterleaveLower(wide, b, e));
      rows[i + 3] = hn::BitCast(d, hn::InterleaveUpper(wide, b, e));
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kInBlock; ++c) transpose_blocks<kRows / kInBlock, kInBlock>(d, rows, c);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) hn::StoreU(rows[i], d, to + static_cast<size_t>(i) * step);
}

/// [lanes of a vector, R] to R vectors that are `step` apart.
template <class T, int R>
HWY_INLINE void transposed(const T* HWY_RESTRICT from, T* HWY_RESTRICT to, size_t step) {
  constexpr hn::ScalableTag<T> d;
  const size_t n = hn::Lanes(d);
  hn::Vec<decltype(d)> a, b, c, e;
  if constexpr (R >= 8 && R % hn::MaxLanes(d) == 0) {
    for (size_t i = 0; i < R; i += n) transpose_square(from + i, R, to + i * step, step);
  } else if constexpr (R == 2) {
    hn::LoadInterleaved2(d, from, a, b);
    hn::StoreU(a, d, to);
    hn::StoreU(b, d, to + step);
  } else if constexpr (R == 4) {
    hn::LoadInterleaved4(d, from, a, b, c, e);
    hn::StoreU(a, d, to);
    hn::StoreU(b, d, to + step);
    hn::StoreU(c, d, to + 2 * step);
    hn::StoreU(e, d, to + 3 * step);
  } else {
    // Fours of neighbours first, then those of one place in their four.
    constexpr size_t kFours = R / 4;
    alignas(64) T quarters[4 * kFours * kFftLanes<T>];
    for (size_t j = 0; j < kFours; ++j) {
      hn::LoadInterleaved4(d, from + j * 4 * n, a, b, c, e);
      hn::StoreU(a, d, quarters + j * n);
      hn::StoreU(b, d, quarters + (kFours + j) * n);
      hn::StoreU(c, d, quarters + (2 * kFours + j) * n);
      hn::StoreU(e, d, quarters + (3 * kFours + j) * n);
    }
    for (size_t q = 0; q < 4; ++q) {
      if constexpr (R == 8) {
        hn::LoadInterleaved2(d, quarters + q * kFours * n, a, b);
      } else {
        hn::LoadInterleaved4(d, quarters + q * kFours * n, a, b, c, e);
        hn::StoreU(c, d, to + (8 + q) * step);
        hn::StoreU(e, d, to + (12 + q) * step);
      }
      hn::StoreU(a, d, to + q * step);
      hn::StoreU(b, d, to + (4 + q) * step);
    }
  }
}

template <class T, int R>
class Pass {
 public:
  static void run(const FftPass& pass, const T* table, FftPlanes<const T> in, FftPlanes<T> out,
                  int64_t lanes) {
    const Pass p{pass, table + pass.twiddles, table + pass.roots, R > 0 ? R : pass.radix};
    if (pass.inner == 1)
      lanes == 1 ? p.last_of_row(in, out) : p.last_of_panel(in, out, lanes);
    else if (lanes != 1)
      p.panel(in, out, lanes);
    else
      p.row(in, out);
  }

 private:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int kMost = R > 0 ? R : static_cast<int>(kFftLargestPrime);
  static constexpr int64_t kTile = kFftLanes<T>;

  Pass(const FftPass& pass, const T* twiddles, const T* roots, int64_t radix)
      : pass_(pass), twiddles_(twiddles), roots_(roots), radix_(radix) {}

  HWY_INLINE void load(FftPlanes<const T> from, int64_t step, Parts<V>* x) const {
    const int r = R > 0 ? R : static_cast<int>(radix_);
#pragma GCC unroll 16
    for (int b = 0; b < r; ++b)
      x[b] = {hn::LoadU(D(), from.re + b * step), hn::LoadU(D(), from.im + b * step)};
    Butterfly<R>::run(D(), x, roots_, radix_);
  }

  /// Without twiddles: from elements `step` apart to elements `to_step` apart.
  HWY_NOINLINE void plain(FftPlanes<const T> from, int64_t step, FftPlanes<T> to, int64_t to_step) const {
    const int r = R > 0 ? R : static_cast<int>(radix_);
    Parts<V> x[kMost];
    load(from, step, x);
#pragma GCC unroll 16
    for (int c = 0; c < r; ++c) {
      hn::StoreU(x[c].re, D(), to.re + c * to_step);
      hn::StoreU(x[c].im, D(), to.im + c * to_step);
    }
  }

  HWY_NOINLINE void panel(FftPlanes<const T> in, FftPlanes<T> out, int64_t lanes) const {
    const int64_t inner = pass_.inner, step = inner * lanes, to_step = step * pass_.groups;
    const int r = R > 0 ? R : static_cast<int>(radix_);
    for (int64_t k = 0; k < pass_.groups; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t from = k * radix_ * step + i * lanes, to = k * step + i * lanes;
        for (int64_t v = 0; v < lanes; v += static_cast<int64_t>(hn::Lanes(D()))) {
          Parts<V> x[kMost];
          load({in.re + from + v, in.im + from + v}, step, x);
          hn::StoreU(x[0].re, D(), out.re + to + v);
          hn::StoreU(x[0].im, D(), out.im + to + v);
#pragma GCC unroll 16
          for (int c = 1; c < r; ++c) {
            const T* w = twiddles_ + (c - 1) * 2 * inner + i;
            const Parts<V> y = times(x[c], {hn::Set(D(), w[0]), hn::Set(D(), w[inner])});
            hn::StoreU(y.re, D(), out.re + to + v + c * to_step);
            hn::StoreU(y.im, D(), out.im + to + v + c * to_step);
          }
        }
      }
    }
  }

  HWY_NOINLINE void row(FftPlanes<const T> in, FftPlanes<T> out) const {
    const int64_t inner = pass_.inner, end = inner * pass_.groups;
    const auto n = static_cast<int64_t>(hn::Lanes(D()));
    const int r = R > 0 ? R : static_cast<int>(radix_);
    alignas(64) T spare_re[kMost * kTile], spare_im[kMost * kTile];
    for (int64_t k = 0; k < pass_.groups; ++k) {
      for (int64_t next = 0; next < inner; next += n) {
        // The last vector overlaps the one before it. That of a short row, whose further elements are those
        // of the next groups, or of the padding, is followed by those groups; at the end it goes elsewhere
        // first.
        const int64_t i = HWY_MAX(HWY_MIN(next, inner - n), 0), from = k * radix_ * inner + i,
                      to = k * inner + i;
        const bool apart = to + n > end;
        T *re = apart ? spare_re : out.re + to, *im = apart ? spare_im : out.im + to;
        const int64_t step = apart ? kTile : end;
        Parts<V> x[kMost];
        load({in.re + from, in.im + from}, inner, x);
        hn::StoreU(x[0].re, D(), re);
        hn::StoreU(x[0].im, D(), im);
#pragma GCC unroll 16
        for (int c = 1; c < r; ++c) {
          const T* w = twiddles_ + (c - 1) * 2 * inner + i;
          const Parts<V> y = times(x[c], {hn::LoadU(D(), w), hn::LoadU(D(), w + inner)});
          hn::StoreU(y.re, D(), re + c * step);
          hn::StoreU(y.im, D(), im + c * step);
        }
        for (int64_t c = 0; apart && c < radix_; ++c) {
          std::copy_n(spare_re + c * kTile, inner, out.re + to + c * end);
          std::copy_n(spare_im + c * kTile, inner, out.im + to + c * end);
        }
      }
    }
  }

  void last_of_panel(FftPlanes<const T> in, FftPlanes<T> out, int64_t lanes) const {
    for (int64_t k = 0; k < pass_.groups; ++k) {
      for (int64_t v = 0; v < lanes; v += static_cast<int64_t>(hn::Lanes(D()))) {
        const int64_t from = k * radix_ * lanes + v, to = k * lanes + v;
        plain({in.re + from, in.im + from}, lanes, {out.re + to, out.im + to}, lanes * pass_.groups);
      }
    }
  }

  /// Vectors go along the groups, whose elements are transposed first.
  void last_of_row(FftPlanes<const T> in, FftPlanes<T> out) const {
    const auto n = static_cast<int64_t>(hn::Lanes(D()));
    if (pass_.groups == 1) {
      // Only the first lane of vectors that begin at each element matters; what the others write past the
      // result of each is overwritten, or is in the padding.
      return plain(in, 1, out, 1);
    }
    alignas(64) T re[kMost * kTile], im[kMost * kTile];
    if (pass_.groups < n) {
      few_transposed(in.re, re);
      few_transposed(in.im, im);
      return plain({re, im}, n, out, pass_.groups);
    }
    for (int64_t next = 0; next < pass_.groups; next += n) {
      const int64_t k = HWY_MIN(next, pass_.groups - n);
      transpose(in.re + k * radix_, re, static_cast<size_t>(n));
      transpose(in.im + k * radix_, im, static_cast<size_t>(n));
      plain({re, im}, n, {out.re + k, out.im + k}, pass_.groups);
    }
  }

  /// [groups, radix] to [radix, lanes of a vector], with zeros in the other lanes.
  void few_transposed(const T* from, T* to) const {
    const size_t n = hn::Lanes(D());
    for (int64_t b = 0; b < radix_; ++b) hn::StoreU(hn::Zero(D()), D(), to + static_cast<size_t>(b) * n);
    for (int64_t k = 0; k < pass_.groups; ++k) {
      for (int64_t b = 0; b < radix_; ++b)
        to[static_cast<size_t>(b) * n + static_cast<size_t>(k)] = from[k * radix_ + b];
    }
  }

  void transpose(const T* from, T* to, size_t step) const {
    if constexpr (R == 2 || R == 4 || R == 8 || R == 16) {
      transposed<T, R>(from, to, step);
    } else {
      for (size_t b = 0; b < static_cast<size_t>(radix_); ++b) {
        for (size_t k = 0; k < step; ++k) to[b * step + k] = from[k * static_cast<size_t>(radix_) + b];
      }
    }
  }

  const FftPass& pass_;
  const T* twiddles_;
  const T* roots_;
  int64_t radix_;
};

template <class T>
void run_pass(const FftPass& pass, const T* table, FftPlanes<const T> in, FftPlanes<T> out, int64_t lanes) {
  switch (pass.radix) {
    case 2:
      return Pass<T, 2>::run(pass, table, in, out, lanes);
    case 3:
      return Pass<T, 3>::run(pass, table, in, out, lanes);
    case 4:
      return Pass<T, 4>::run(pass, table, in, out, lanes);
    case 5:
      return Pass<T, 5>::run(pass, table, in, out, lanes);
    case 8:
      return Pass<T, 8>::run(pass, table, in, out, lanes);
    case 16:
      return Pass<T, 16>::run(pass, table, in, out, lanes);
    default:
      return Pass<T, 0>::run(pass, table, in, out, lanes);
  }
}

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
