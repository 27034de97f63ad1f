// The kernels of copies and conversions, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/copy/row_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cpu/copy/half-inl.h"
#include "backends/cpu/copy/row_kernels.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Conversions. A kernel is a function of a vector's tag: with as many lanes as there are, then with one.

template <class Lane, class Kernel, class To, class From>
HWY_INLINE void for_lanes(Kernel kernel, To* dst, const From* src, size_t n) {
  const hn::ScalableTag<Lane> d;
  const hn::CappedTag<Lane, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) kernel(d, dst + i, src + i);
  for (; i < n; ++i) kernel(one, dst + i, src + i);
}

template <class To, class From>
void widen(void* dst, const void* src, size_t n) {
  for_lanes<To>(
      [](auto d, To* out, const From* in)
          HWY_ATTR { hn::StoreU(hn::PromoteTo(d, hn::LoadU(hn::Rebind<From, decltype(d)>(), in)), d, out); },
      static_cast<To*>(dst), static_cast<const From*>(src), n);
}

// To and From are unsigned.
template <class To, class From>
void cut(void* dst, const void* src, size_t n) {
  for_lanes<From>(
      [](auto d, To* out, const From* in) HWY_ATTR {
        const hn::Rebind<To, decltype(d)> narrow;
        hn::StoreU(hn::TruncateTo(narrow, hn::LoadU(d, in)), narrow, out);
      },
      static_cast<To*>(dst), static_cast<const From*>(src), n);
}

// Integers to floats of the same size.
template <class To, class From>
void to_float(void* dst, const void* src, size_t n) {
  for_lanes<To>(
      [](auto d, To* out, const From* in)
          HWY_ATTR { hn::StoreU(hn::ConvertTo(d, hn::LoadU(hn::Rebind<From, decltype(d)>(), in)), d, out); },
      static_cast<To*>(dst), static_cast<const From*>(src), n);
}

void float32_from_float64(void* dst, const void* src, size_t n) {
  for_lanes<double>(
      [](auto d, float* out, const double* in) HWY_ATTR {
        const hn::Rebind<float, decltype(d)> narrow;
        hn::StoreU(hn::DemoteTo(narrow, hn::LoadU(d, in)), narrow, out);
      },
      static_cast<float*>(dst), static_cast<const double*>(src), n);
}

// Highway has no such conversion. Of a loop of a fixed length the compiler makes vectors where there are
// some.
void float32_from_int64(void* dst, const void* src, size_t n) {
  constexpr size_t kBlock = 16;
  const auto* in = static_cast<const int64_t*>(src);
  auto* out = static_cast<float*>(dst);
  size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int64_t from[kBlock];
    float to[kBlock];
    std::memcpy(from, in + i, sizeof from);
    for (size_t k = 0; k < kBlock; ++k) to[k] = static_cast<float>(from[k]);
    std::memcpy(out + i, to, sizeof to);
  }
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}

template <class T>
int64_t truncated(T v) {
  const bool fits = v >= T(-0x1p63) && v < T(0x1p63);
  return fits ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

// Vectors whose lanes all fit into To, which is nearly always so; else lane by lane.
template <class To, class From>
void to_integer(void* dst, const void* src, size_t n) {
  for_lanes<From>(
      [](auto d, To* out, const From* in) HWY_ATTR {
        constexpr From kLimit = sizeof(To) == 4 ? From(0x1p31) : From(0x1p63);
        const hn::Rebind<To, decltype(d)> di;
        const auto v = hn::LoadU(d, in);
        if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(v), hn::Set(d, kLimit))))) {
          if constexpr (sizeof(To) < sizeof(From))
            hn::StoreU(hn::DemoteTo(di, v), di, out);
          else
            hn::StoreU(hn::ConvertTo(di, v), di, out);
          return;
        }
        From lanes[hn::MaxLanes(d)];
        hn::StoreU(v, d, lanes);
        for (size_t k = 0; k < hn::Lanes(d); ++k) out[k] = static_cast<To>(truncated(lanes[k]));
      },
      static_cast<To*>(dst), static_cast<const From*>(src), n);
}

// Anything but zero is true, NaN included.
template <class From>
void to_bool(void* dst, const void* src, size_t n) {
  for_lanes<From>(
      [](auto d, uint8_t* out, const From* in) HWY_ATTR {
        const hn::RebindToUnsigned<decltype(d)> du;
        const hn::Rebind<uint8_t, decltype(d)> d8;
        const auto zero = hn::RebindMask(du, hn::Eq(hn::LoadU(d, in), hn::Zero(d)));
        const auto truth = hn::IfThenZeroElse(zero, hn::Set(du, 1));
        if constexpr (sizeof(From) == 1)
          hn::StoreU(truth, d8, out);
        else
          hn::StoreU(hn::TruncateTo(d8, truth), d8, out);
      },
      static_cast<uint8_t*>(dst), static_cast<const From*>(src), n);
}

// Pairs of dtypes of at most four bytes: while they are in a register, elements are int32 or float32.

template <DType kType>
using Memory = std::conditional_t<
    kType == DType::Bool || kType == DType::UInt8, uint8_t,
    std::conditional_t<kType == DType::Int8, int8_t,
                       std::conditional_t<kType == DType::Int16, int16_t,
                                          std::conditional_t<kType == DType::Int32, int32_t,
                                                             std::conditional_t<kType == DType::Float32,
                                                                                float, uint16_t>>>>>;
template <DType kType>
using Lane = std::conditional_t<is_integral(kType, true), int32_t, float>;

template <DType kType, class D>
HWY_INLINE hn::Vec<D> load_lanes(D d, const Memory<kType>* p) {
  if constexpr (kType == DType::Float16) {
    return load_float16(d, p);
  } else if constexpr (kType == DType::BFloat16) {
    return load_bfloat16(d, p);
  } else if constexpr (sizeof(Memory<kType>) == 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Rebind<Memory<kType>, D> narrow;
    const auto v = hn::LoadU(narrow, p);
    // Foreign memory may hold other truths than 1.
    return hn::PromoteTo(d, kType == DType::Bool ? hn::Min(v, hn::Set(narrow, 1)) : v);
  }
}

// Vectors whose lanes all fit, which is nearly always so; else lane by lane.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> to_int32(D d, hn::Vec<D> v) {
  const hn::RebindToSigned<D> di;
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(v), hn::Set(d, 0x1p31f))))) return hn::ConvertTo(di, v);
  float lanes[hn::MaxLanes(d)];
  int32_t out[hn::MaxLanes(d)];
  hn::StoreU(v, d, lanes);
  for (size_t k = 0; k < hn::Lanes(d); ++k) out[k] = static_cast<int32_t>(truncated(lanes[k]));
  return hn::LoadU(di, out);
}

template <DType kType, class D>
HWY_INLINE void store_lanes(D d, hn::Vec<D> v, Memory<kType>* p) {
  using From = hn::TFromD<D>;
  if constexpr (kType == DType::Bool) {
    const hn::RebindToUnsigned<D> du;
    const auto zero = hn::RebindMask(du, hn::Eq(v, hn::Zero(d)));
    hn::StoreU(hn::TruncateTo(hn::Rebind<uint8_t, D>(), hn::IfThenZeroElse(zero, hn::Set(du, 1))),
               hn::Rebind<uint8_t, D>(), p);
  } else if constexpr (!std::is_same_v<From, Lane<kType>>) {
    if constexpr (std::is_same_v<From, float>) {
      store_lanes<kType>(hn::RebindToSigned<D>(), to_int32(d, v), p);
    } else {
      const hn::RebindToFloat<D> df;
      store_lanes<kType>(df, hn::ConvertTo(df, v), p);
    }
  } else if constexpr (kType == DType::Float16) {
    store_float16(d, v, p);
  } else if constexpr (kType == DType::BFloat16) {
    store_bfloat16(d, v, p);
  } else if constexpr (sizeof(Memory<kType>) == 4) {
    hn::StoreU(v, d, p);
  } else {
    using Bits = std::make_unsigned_t<Memory<kType>>;
    const hn::Rebind<Bits, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(hn::RebindToUnsigned<D>(), v)), narrow,
               reinterpret_cast<Bits*>(p));
  }
}

template <DType kFrom, DType kTo>
void convert_lanes(void* dst, const void* src, size_t n) {
  for_lanes<Lane<kFrom>>([](auto d, Memory<kTo>* out, const Memory<kFrom>* in)
                             HWY_ATTR { store_lanes<kTo>(d, load_lanes<kFrom>(d, in), out); },
                         static_cast<Memory<kTo>*>(dst), static_cast<const Memory<kFrom>*>(src), n);
}

// The bits of a NaN stay.
void float32_from_float16(void* dst, const void* src, size_t n) {
  for_lanes<float>([](auto d, float* out, const uint16_t* in)
                       HWY_ATTR { hn::StoreU(load_float16_exactly(d, in), d, out); },
                   static_cast<float*>(dst), static_cast<const uint16_t*>(src), n);
}

void int16_from_bool(void* dst, const void* src, size_t n) {
  for_lanes<int16_t>(
      [](auto d, int16_t* out, const uint8_t* in) HWY_ATTR {
        const hn::Rebind<uint8_t, decltype(d)> d8;
        hn::StoreU(hn::PromoteTo(d, hn::Min(hn::LoadU(d8, in), hn::Set(d8, 1))), d, out);
      },
      static_cast<int16_t*>(dst), static_cast<const uint8_t*>(src), n);
}

template <DType kFrom, DType kTo>
constexpr RowKernels::Step conversion() {
  using enum DType;
  constexpr auto is = [](DType from, DType to) { return kFrom == from && kTo == to; };
  if constexpr (!converts_directly(kFrom, kTo)) {
    return nullptr;
  } else if constexpr (kTo == Bool && item_size(kFrom) == 8) {
    return kFrom == Int64 ? &to_bool<int64_t> : &to_bool<double>;
  } else if constexpr (item_size(kTo) == 1 && item_size(kFrom) == 1) {
    return &to_bool<uint8_t>;
  } else if constexpr (is(Int16, Bool)) {
    return &to_bool<int16_t>;
  } else if constexpr (is(Bool, Int16)) {
    return &int16_from_bool;
  } else if constexpr (is(UInt8, Int16)) {
    return &widen<int16_t, uint8_t>;
  } else if constexpr (is(Int8, Int16)) {
    return &widen<int16_t, int8_t>;
  } else if constexpr (is(Int16, UInt8) || is(Int16, Int8)) {
    return &cut<uint8_t, uint16_t>;
  } else if constexpr (is(Float16, Float32)) {
    return &float32_from_float16;
  } else if constexpr (item_size(kFrom) <= 4 && item_size(kTo) <= 4) {
    return &convert_lanes<kFrom, kTo>;
  } else if constexpr (is(Int32, Int64)) {
    return &widen<int64_t, int32_t>;
  } else if constexpr (is(Int64, Int32)) {
    return &cut<uint32_t, uint64_t>;
  } else if constexpr (is(Int32, Float64)) {
    return &widen<double, int32_t>;
  } else if constexpr (is(Int64, Float32)) {
    return &float32_from_int64;
  } else if constexpr (is(Int64, Float64)) {
    return &to_float<double, int64_t>;
  } else if constexpr (is(Float32, Float64)) {
    return &widen<double, float>;
  } else if constexpr (is(Float64, Float32)) {
    return &float32_from_float64;
  } else if constexpr (is(Float64, Int32)) {
    return &to_integer<int32_t, double>;
  } else {
    static_assert(is(Float64, Int64));
    return &to_integer<int64_t, double>;
  }
}

struct Conversions {
  RowKernels::Step all[kNumRealDTypes][kNumRealDTypes];
};
template <size_t... kPairs>
constexpr Conversions conversions(std::index_sequence<kPairs...>) {
  Conversions c{};
  ((c.all[kPairs / kNumRealDTypes][kPairs % kNumRealDTypes] =
        conversion<kRealDTypes[kPairs / kNumRealDTypes], kRealDTypes[kPairs % kNumRealDTypes]>()),
   ...);
  return c;
}

// Rows of elements of one size, whatever they mean.

struct Bytes16 {
  uint64_t low, high;
};

template <class T>
HWY_INLINE T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Elements kStep apart, vector by vector, as long as another element follows the last of a vector: nothing
// after the last is read. Returns how many it took.
template <int kStep, class T>
HWY_INLINE size_t pack_steps(T* dst, const T* src, size_t n) {
  const hn::ScalableTag<T> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) < n; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> first, b, c, e;
    if constexpr (kStep == 2)
      hn::LoadInterleaved2(d, src + kStep * i, first, b);
    else if constexpr (kStep == 3)
      hn::LoadInterleaved3(d, src + kStep * i, first, b, c);
    else
      hn::LoadInterleaved4(d, src + kStep * i, first, b, c, e);
    hn::StoreU(first, d, dst + i);
  }
  return i;
}

template <class T>
HWY_INLINE size_t pack_reversed(T* dst, const T* src, size_t n) {
  // Highway reverses no bytes; a table of 16 does.
  using D = std::conditional_t<sizeof(T) == 1, hn::Full128<T>, hn::ScalableTag<T>>;
  const D d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, src - i - (hn::Lanes(d) - 1));
    if constexpr (sizeof(T) == 1)
      hn::StoreU(hn::TableLookupBytes(v, hn::Sub(hn::Set(d, 15), hn::Iota(d, 0))), d, dst + i);
    else
      hn::StoreU(hn::Reverse(d, v), d, dst + i);
  }
  return i;
}

template <class T>
void pack(void* dst, const void* src, int64_t stride, size_t n) {
  auto* out = static_cast<T*>(dst);
  const auto* in = static_cast<const char*>(src);
  size_t i = 0;
  if constexpr (!std::is_same_v<T, Bytes16>) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const auto* elements = static_cast<const T*>(src);
    if (stride == -kSize)
      i = pack_reversed(out, elements, n);
    else if (stride == 2 * kSize)
      i = pack_steps<2>(out, elements, n);
    else if (stride == 3 * kSize)
      i = pack_steps<3>(out, elements, n);
    else if (stride == 4 * kSize)
      i = pack_steps<4>(out, elements, n);
  }
  in += static_cast<int64_t>(i) * stride;
  for (; i + 4 <= n; i += 4, in += 4 * stride) {
    const T a = load<T>(in), b = load<T>(in + stride), c = load<T>(in + 2 * stride),
            e = load<T>(in + 3 * stride);
    std::memcpy(out + i, &a, sizeof a);
    std::memcpy(out + i + 1, &b, sizeof b);
    std::memcpy(out + i + 2, &c, sizeof c);
    std::memcpy(out + i + 3, &e, sizeof e);
  }
  for (; i < n; ++i, in += stride) std::memcpy(out + i, in, sizeof(T));
}

template <class T>
void unpack(void* dst, const void* src, int64_t stride, size_t n) {
  auto* out = static_cast<char*>(dst);
  const auto* in = static_cast<const char*>(src);
  for (size_t i = 0; i < n; ++i, out += stride, in += sizeof(T)) std::memcpy(out, in, sizeof(T));
}

template <class T>
void fill(void* dst, const void* value, size_t n) {
  auto* out = static_cast<T*>(dst);
  const T v = load<T>(static_cast<const char*>(value));
  size_t i = 0;
  if constexpr (std::is_same_v<T, Bytes16>) {
    for (; i < n; ++i) std::memcpy(out + i, &v, sizeof v);
  } else {
    const hn::ScalableTag<T> d;
    const auto all = hn::Set(d, v);
    for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) hn::StoreU(all, d, out + i);
    for (; i < n; ++i) std::memcpy(out + i, &v, sizeof v);
  }
}

// A vector more than a row has may be stored, as long as it ends within the rows: the next row, or another
// vector of the same one, is stored over what was too much.
template <class T>
void spread(void* dst, const void* src, int64_t stride, size_t n, size_t rows) {
  auto* out = static_cast<T*>(dst);
  const auto* in = static_cast<const char*>(src);
  if constexpr (!std::is_same_v<T, Bytes16>) {
    const hn::ScalableTag<T> d;
    const T* const end = out + n * rows;
    for (; rows > 0 && n + hn::Lanes(d) <= static_cast<size_t>(end - out) + 1; --rows, in += stride) {
      const auto all = hn::Set(d, load<T>(in));
      for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::StoreU(all, d, out + i);
      out += n;
    }
  }
  for (; rows > 0; --rows, in += stride, out += n) fill<T>(out, in, n);
}

// 16 bytes each of as many rows as vectors have blocks of 16 bytes, `step` bytes apart.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const char* src, int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(src));
  } else {
    const hn::Half<D> half;
    constexpr auto kBlocks = static_cast<int64_t>(hn::MaxLanes(half) * sizeof(hn::TFromD<D>) / 16);
    return hn::Combine(d, load_blocks(half, src + kBlocks * step, step), load_blocks(half, src, step));
  }
}

// Vectors for transpose_square: with 16 rows at most.
template <class T>
using SquareTag = hn::CappedTag<T, sizeof(T) == 8 ? 8 : 16>;

// Squares of 16 x 16 bytes and so on, one below the other in the blocks of vectors. Each round interleaves
// the first half of a square's rows with the second, which shuffles the bits of an element's row and column
// by one; after log2(rows) rounds they have changed places.
template <class T, class D>
HWY_INLINE void transpose_square(D d, char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  constexpr size_t kRows = 16 / sizeof(T);
  hn::Vec<D> v[kRows], w[kRows];
  // Every loop over vectors is unrolled: one that is not keeps them in memory.
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
    v[r] =
        load_blocks(d, src + static_cast<int64_t>(r) * src_stride, static_cast<int64_t>(kRows) * src_stride);
#pragma GCC unroll 4
  for (size_t round = 1; round < kRows; round *= 2) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows / 2; ++r) {
      w[2 * r] = hn::InterleaveLower(d, v[r], v[r + kRows / 2]);
      w[2 * r + 1] = hn::InterleaveUpper(d, v[r], v[r + kRows / 2]);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) v[r] = w[r];
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r)
    hn::StoreU(v[r], d, reinterpret_cast<T*>(dst + static_cast<int64_t>(r) * dst_stride));
}

template <class T>
HWY_INLINE void transpose_elements(char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                                   size_t rows, size_t columns) {
  for (size_t c = 0; c < columns; ++c, dst += dst_stride, src += sizeof(T)) {
    const char* in = src;
    for (size_t r = 0; r < rows; ++r, in += src_stride) std::memcpy(dst + r * sizeof(T), in, sizeof(T));
  }
}

// In blocks of 16 rows of 256 bytes: few enough rows that their lines do not drive each other out of the
// cache where rows are a power of two apart, long enough that the processor fetches ahead.
template <class T>
void transpose(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, size_t rows,
               size_t columns) {
  constexpr size_t kRows = 16, kColumns = 256 / sizeof(T), kSquare = 16 / sizeof(T);
  const auto at = [&](size_t r, size_t c) {
    return static_cast<const char*>(src) + static_cast<int64_t>(r) * src_stride + c * sizeof(T);
  };
  const auto to = [&](size_t r, size_t c) {
    return static_cast<char*>(dst) + static_cast<int64_t>(c) * dst_stride + r * sizeof(T);
  };
  for (size_t c0 = 0; c0 < columns; c0 += kColumns) {
    const size_t c1 = std::min(columns, c0 + kColumns);
    for (size_t r0 = 0; r0 < rows; r0 += kRows) {
      const size_t r1 = std::min(rows, r0 + kRows);
      for (size_t c = c0; c < c1; c += kSquare) {
        size_t r = r0;
        const size_t width = std::min(kSquare, c1 - c);
        if constexpr (kSquare > 1) {
          const SquareTag<T> tall;
          const hn::Full128<T> d;
          constexpr size_t kTall = hn::MaxLanes(SquareTag<T>());
          for (; width == kSquare && r + kTall <= r1; r += kTall)
            transpose_square<T>(tall, to(r, c), dst_stride, at(r, c), src_stride);
          for (; width == kSquare && r + kSquare <= r1; r += kSquare)
            transpose_square<T>(d, to(r, c), dst_stride, at(r, c), src_stride);
        }
        if (r < r1) transpose_elements<T>(to(r, c), dst_stride, at(r, c), src_stride, r1 - r, width);
      }
    }
  }
}

template <class T>
void split_pairs(void* first, void* second, const void* src, size_t n) {
  const hn::ScalableTag<T> d;
  auto *one = static_cast<T*>(first), *other = static_cast<T*>(second);
  const auto* in = static_cast<const T*>(src);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    // The pairs that a caller who works in tiles splits next: other rows come in between, so that no hardware
    // fetches them ahead.
    constexpr size_t kLine = 64 / sizeof(T);
    for (size_t k = 0; k < 2 * hn::Lanes(d); k += kLine) hwy::Prefetch(in + 2 * (i + n) + k);
    hn::Vec<decltype(d)> v, w;
    hn::LoadInterleaved2(d, in + 2 * i, v, w);
    hn::StoreU(v, d, one + i);
    hn::StoreU(w, d, other + i);
  }
  for (; i < n; ++i) one[i] = in[2 * i], other[i] = in[2 * i + 1];
}

template <class T>
void join_pairs(void* dst, const void* first, const void* second, size_t n) {
  const hn::ScalableTag<T> d;
  const auto *one = static_cast<const T*>(first), *other = static_cast<const T*>(second);
  auto* out = static_cast<T*>(dst);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreInterleaved2(hn::LoadU(d, one + i), hn::LoadU(d, other + i), d, out + 2 * i);
  for (; i < n; ++i) out[2 * i] = one[i], out[2 * i + 1] = other[i];
}

void stream(void* dst, const void* src, size_t bytes) {
  if (bytes == 0) return;
  constexpr size_t kLine = 64;
  const hn::CappedTag<uint8_t, kLine> d;
  auto* out = static_cast<uint8_t*>(dst);
  const auto* in = static_cast<const uint8_t*>(src);
  const size_t head = std::min((kLine - reinterpret_cast<uintptr_t>(out) % kLine) % kLine, bytes);
  std::memcpy(out, in, head);
  size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    for (size_t v = 0; v < kLine; v += hn::Lanes(d)) hn::Stream(hn::LoadU(d, in + i + v), d, out + i + v);
  }
  std::memcpy(out + i, in + i, bytes - i);
}

void end_stream() { hwy::FlushStream(); }

constexpr RowKernels with_conversions(RowKernels kernels) {
  constexpr Conversions c = conversions(std::make_index_sequence<kNumRealDTypes * kNumRealDTypes>());
  for (size_t f = 0; f < kNumRealDTypes; ++f)
    for (size_t t = 0; t < kNumRealDTypes; ++t) kernels.convert[f][t] = c.all[f][t];
  return kernels;
}

constexpr RowKernels kRowKernels = with_conversions({
    .convert = {},
    .pack = {&pack<uint8_t>, &pack<uint16_t>, &pack<uint32_t>, &pack<uint64_t>, &pack<Bytes16>},
    .unpack = {&unpack<uint8_t>, &unpack<uint16_t>, &unpack<uint32_t>, &unpack<uint64_t>, &unpack<Bytes16>},
    .fill = {&fill<uint8_t>, &fill<uint16_t>, &fill<uint32_t>, &fill<uint64_t>, &fill<Bytes16>},
    .spread = {&spread<uint8_t>, &spread<uint16_t>, &spread<uint32_t>, &spread<uint64_t>, &spread<Bytes16>},
    .transpose = {&transpose<uint8_t>, &transpose<uint16_t>, &transpose<uint32_t>, &transpose<uint64_t>,
                  &transpose<Bytes16>},
    .split_pairs = {&split_pairs<uint32_t>, &split_pairs<uint64_t>},
    .join_pairs = {&join_pairs<uint32_t>, &join_pairs<uint64_t>},
    .stream = &stream,
    .end_stream = &end_stream,
});

}  // namespace

constexpr const RowKernels* kTable = &kRowKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const RowKernels& row_kernels(CpuTarget target) noexcept {
  static constexpr const RowKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

const RowKernels& row_kernels() {
  static const RowKernels& kernels = row_kernels(cpu_target());
  return kernels;
}

}  // namespace tenon::cpu
#endif
