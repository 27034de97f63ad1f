#include "backends/cpu/copy/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/copy/row_kernels.h"
#include "tenon/expr/scalar.h"

namespace tenon::cpu {
namespace {

// A conversion is one kernel, or a few in a row: through int32 or float32 where narrow elements become 8
// bytes long or the reverse. Elements between two kernels stay in the L1 cache.
struct Conversion {
  struct Step {
    uint8_t from, to;  // real_index
  };
  std::array<Step, 3> steps{};
  int count = 0;
  int64_t from_size = 1, to_size = 1;
};

constexpr bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
// What a dtype passes through.
constexpr DType word_of(DType t) {
  return item_size(t) >= 4 ? t : is_half(t) ? DType::Float32 : DType::Int32;
}

constexpr Conversion make_conversion(DType from, DType to) {
  Conversion conversion;
  conversion.from_size = static_cast<int64_t>(item_size(from));
  conversion.to_size = static_cast<int64_t>(item_size(to));
  const bool same_bits = item_size(from) == 1 && item_size(to) == 1 && !converts_directly(from, to);
  for (DType at = from; at != to || (conversion.count == 0 && at == DType::Bool);) {
    if (same_bits) break;
    DType next = to;
    if (!converts_directly(at, next)) next = word_of(at) != at ? word_of(at) : word_of(to);
    if (!converts_directly(at, next)) next = DType::Float64;  // float32 to int64
    conversion.steps[static_cast<size_t>(conversion.count++)] = {static_cast<uint8_t>(real_index(at)),
                                                                 static_cast<uint8_t>(real_index(next))};
    at = next;
  }
  return conversion;
}

// Elements of a piece of a conversion: 2 KB of the widest.
constexpr int64_t kPiece = 256;
struct Piece {
  alignas(64) char bytes[kPiece * 8];
};

void run_steps(const RowKernels& kernels, const Conversion& conversion, char* dst, const char* src,
               int64_t n) {
  Piece between[2];
  if (conversion.count == 0) {
    std::memcpy(dst, src, static_cast<size_t>(n));
    return;
  }
  for (int s = 0; s < conversion.count; ++s) {
    const Conversion::Step step = conversion.steps[static_cast<size_t>(s)];
    char* to = s + 1 == conversion.count ? dst : between[s % 2].bytes;
    kernels.convert[step.from][step.to](to, src, static_cast<size_t>(n));
    src = to;
  }
}

// `rows` rows of n elements, no more than a piece of them in all.
void convert_piece(const RowKernels& kernels, const Conversion& conversion, char* dst, BlockStrides ds,
                   const char* src, BlockStrides ss, int64_t n, int64_t rows) {
  Piece packed, converted;
  const auto width = static_cast<size_t>(n);
  const bool one = rows == 1;
  const char* in = src;
  if (!(ss.inner == conversion.from_size && (one || ss.outer == n * conversion.from_size))) {
    const auto pack = kernels.pack[element_size_index(conversion.from_size)];
    for (int64_t j = 0; j < rows; ++j)
      pack(packed.bytes + j * n * conversion.from_size, src + j * ss.outer, ss.inner, width);
    in = packed.bytes;
  }
  const bool dense = ds.inner == conversion.to_size && (one || ds.outer == n * conversion.to_size);
  char* out = dense ? dst : converted.bytes;
  run_steps(kernels, conversion, out, in, n * rows);
  if (dense) return;
  const auto unpack = kernels.unpack[element_size_index(conversion.to_size)];
  for (int64_t j = 0; j < rows; ++j)
    unpack(dst + j * ds.outer, out + j * n * conversion.to_size, ds.inner, width);
}

void convert_block(const Conversion& conversion, void* dst, BlockStrides ds, const void* src, BlockStrides ss,
                   int64_t n0, int64_t n1) {
  const RowKernels& kernels = row_kernels();
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  if (conversion.count <= 1 && ss.inner == conversion.from_size && ds.inner == conversion.to_size) {
    const bool one = ss.outer == n0 * ss.inner && ds.outer == n0 * ds.inner;
    if (one) n0 *= std::exchange(n1, 1);
    for (int64_t j = 0; j < n1; ++j) run_steps(kernels, conversion, d + j * ds.outer, s + j * ss.outer, n0);
    return;
  }
  // Short rows go together.
  const int64_t rows = std::clamp<int64_t>(kPiece / std::max<int64_t>(n0, 1), 1, std::max<int64_t>(n1, 1));
  for (int64_t j = 0; j < n1; j += rows) {
    const int64_t m = std::min(rows, n1 - j);
    if (m == 1 && ss.inner == 0 && ds.inner == conversion.to_size && n0 > 1) {
      Piece one;
      run_steps(kernels, conversion, one.bytes, s + j * ss.outer, 1);
      kernels.fill[element_size_index(conversion.to_size)](d + j * ds.outer, one.bytes,
                                                           static_cast<size_t>(n0));
      continue;
    }
    for (int64_t i = 0; i < n0; i += kPiece) {
      convert_piece(kernels, conversion, d + j * ds.outer + i * ds.inner, ds, s + j * ss.outer + i * ss.inner,
                    ss, std::min(kPiece, n0 - i), m);
    }
  }
}

// Elements of one size, whatever they mean.
template <int64_t kSize>
void copy_block(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  constexpr size_t kIndex = element_size_index(kSize);
  const RowKernels& kernels = row_kernels();
  const auto n = static_cast<size_t>(n0);
  if (ss.inner == 0 && ds.inner == kSize && ds.outer == n0 * kSize)
    return kernels.spread[kIndex](dst, src, ss.outer, n, static_cast<size_t>(n1));
  for (int64_t j = 0; j < n1; ++j) {
    char* d = static_cast<char*>(dst) + j * ds.outer;
    const char* s = static_cast<const char*>(src) + j * ss.outer;
    if (ds.inner == kSize && ss.inner == kSize) {
      std::memmove(d, s, n * kSize);
    } else if (ds.inner == kSize && ss.inner == 0) {
      if (n0 > 0) kernels.fill[kIndex](d, s, n);
    } else if (ds.inner == kSize) {
      kernels.pack[kIndex](d, s, ss.inner, n);
    } else {
      for (int64_t i = 0; i < n0; ++i, d += ds.inner, s += ss.inner) std::memcpy(d, s, kSize);
    }
  }
}

template <DType kFrom, DType kTo>
constexpr Conversion kConversion = make_conversion(kFrom, kTo);
template <DType kFrom, DType kTo>
void convert_real(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  convert_block(kConversion<kFrom, kTo>, dst, ds, src, ss, n0, n1);
}

// Complex elements are their parts side by side: the real ones have the stride of the whole.
template <DType kPart>
constexpr int64_t kPartSize = static_cast<int64_t>(item_size(kPart));

template <DType kPart, DType kFrom>
void convert_to_complex(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0,
                        int64_t n1) {
  const double zero = 0;
  convert_fn(kFrom, kPart)(dst, ds, src, ss, n0, n1);
  copy_block<kPartSize<kPart>>(static_cast<char*>(dst) + kPartSize<kPart>, ds, &zero, {}, n0, n1);
}

template <DType kFrom, DType kTo>
void convert_complex(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  constexpr int64_t kFromSize = kPartSize<kFrom>, kToSize = kPartSize<kTo>;
  if (ds.inner == 2 * kToSize && ss.inner == 2 * kFromSize) {
    convert_real<kFrom, kTo>(dst, {kToSize, ds.outer}, src, {kFromSize, ss.outer}, 2 * n0, n1);
    return;
  }
  convert_real<kFrom, kTo>(dst, ds, src, ss, n0, n1);
  convert_real<kFrom, kTo>(static_cast<char*>(dst) + kToSize, ds, static_cast<const char*>(src) + kFromSize,
                           ss, n0, n1);
}

template <class Part>
void convert_complex_to_bool(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0,
                             int64_t n1) {
  for (int64_t j = 0; j < n1; ++j) {
    char* d = static_cast<char*>(dst) + j * ds.outer;
    const char* s = static_cast<const char*>(src) + j * ss.outer;
    for (int64_t i = 0; i < n0; ++i, d += ds.inner, s += ss.inner) {
      Part parts[2];
      std::memcpy(parts, s, sizeof parts);
      *d = parts[0] != 0 || parts[1] != 0;
    }
  }
}

// The place of each dtype in kRealDTypes, by its code.
constexpr auto kPosition = [] {
  std::array<uint8_t, 256> positions{};
  positions.fill(kNumRealDTypes);
  for (const DType t : kRealDTypes) positions[static_cast<uint8_t>(t)] = static_cast<uint8_t>(real_index(t));
  return positions;
}();
size_t position(DType t) noexcept { return kPosition[static_cast<uint8_t>(t)]; }

// The wider unsigned integers have no kernels of their own: elements go by way of int64, of uint64 to and
// from floats by way of a float.

constexpr bool is_wide_unsigned(DType t) {
  return t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64;
}

// n elements, `step` bytes apart on either side.
template <class To, class From>
void convert_each(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i, dst += dst_step, src += src_step) {
    From from;
    std::memcpy(&from, src, sizeof from);
    To to;
    if constexpr (std::is_same_v<From, double>)
      to = expr::convert_scalar(std::bit_cast<uint64_t>(from), expr::Type::F64, expr::Type::U64);
    else
      to = static_cast<To>(from);
    std::memcpy(dst, &to, sizeof to);
  }
}

constexpr DType between(DType unsigned_one, DType other) {
  const DType part = real_dtype(other);
  if (unsigned_one != DType::UInt64 || !is_floating_point(part)) return DType::Int64;
  return part == DType::Float64 ? DType::Float64 : DType::Float32;
}

void from_unsigned(DType from, DType mid, char* dst, const char* src, int64_t step, int64_t n) {
  if (mid == DType::Float32) return convert_each<float, uint64_t>(dst, 4, src, step, n);
  if (mid == DType::Float64) return convert_each<double, uint64_t>(dst, 8, src, step, n);
  if (from == DType::UInt16) return convert_each<int64_t, uint16_t>(dst, 8, src, step, n);
  if (from == DType::UInt32) return convert_each<int64_t, uint32_t>(dst, 8, src, step, n);
  convert_each<int64_t, uint64_t>(dst, 8, src, step, n);
}

void to_unsigned(DType mid, DType to, char* dst, int64_t step, const char* src, int64_t n) {
  if (mid == DType::Float64) return convert_each<uint64_t, double>(dst, step, src, 8, n);
  if (to == DType::UInt16) return convert_each<uint16_t, int64_t>(dst, step, src, 8, n);
  if (to == DType::UInt32) return convert_each<uint32_t, int64_t>(dst, step, src, 8, n);
  convert_each<uint64_t, int64_t>(dst, step, src, 8, n);
}

void convert_unsigned(DType from, DType to, void* dst, BlockStrides ds, const void* src, BlockStrides ss,
                      int64_t n0, int64_t n1) {
  const bool loads = is_wide_unsigned(from), stores = is_wide_unsigned(to);
  // What is loaded as, and what is stored from; a float32 goes to uint64 by way of float64.
  const DType first = loads ? between(from, to) : from;
  const DType last = !stores ? to : is_floating_point(between(to, from)) ? DType::Float64 : DType::Int64;
  const auto first_size = static_cast<int64_t>(item_size(first));
  const ConvertFn convert = convert_fn(first, last);
  Piece loaded, converted;
  for (int64_t j = 0; j < n1; ++j) {
    const char* s = static_cast<const char*>(src) + j * ss.outer;
    char* d = static_cast<char*>(dst) + j * ds.outer;
    for (int64_t i = 0; i < n0; i += kPiece) {
      const int64_t n = std::min(kPiece, n0 - i);
      const char* at = s + i * ss.inner;
      int64_t step = ss.inner;
      if (loads) {
        from_unsigned(from, first, loaded.bytes, at, step, n);
        at = loaded.bytes, step = first_size;
      }
      char* const target = d + i * ds.inner;
      if (!stores) {
        convert(target, {ds.inner, 0}, at, {step, 0}, n, 1);
        continue;
      }
      convert(converted.bytes, {8, 0}, at, {step, 0}, n, 1);
      to_unsigned(last, to, target, ds.inner, converted.bytes, n);
    }
  }
}

template <DType kFrom, DType kTo>
void convert_wide_unsigned(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0,
                           int64_t n1) {
  convert_unsigned(kFrom, kTo, dst, ds, src, ss, n0, n1);
}

// By code: quantized dtypes and 8-bit floats have none.
template <size_t kPair>
constexpr ConvertFn unsigned_entry() {
  constexpr auto kFrom = static_cast<DType>(kPair / kNumDTypes), kTo = static_cast<DType>(kPair % kNumDTypes);
  constexpr bool kOne = is_wide_unsigned(kFrom) || is_wide_unsigned(kTo);
  if constexpr (!kOne || kFrom == kTo || !has_arithmetic(kFrom) || !has_arithmetic(kTo))
    return nullptr;
  else
    return &convert_wide_unsigned<kFrom, kTo>;
}
template <size_t... kPairs>
constexpr std::array<ConvertFn, sizeof...(kPairs)> unsigned_entries(std::index_sequence<kPairs...>) {
  return {unsigned_entry<kPairs>()...};
}
constexpr auto kUnsigned = unsigned_entries(std::make_index_sequence<size_t{kNumDTypes} * kNumDTypes>());

template <size_t From, size_t To>
constexpr ConvertFn entry() {
  if constexpr (From == To && kRealDTypes[From] != DType::Bool)
    return nullptr;
  else
    return &convert_real<kRealDTypes[From], kRealDTypes[To]>;
}

using Row = std::array<ConvertFn, kNumRealDTypes>;
template <size_t From, size_t... To>
constexpr Row row(std::index_sequence<To...>) {
  return {entry<From, To>()...};
}
template <size_t... From>
constexpr std::array<Row, kNumRealDTypes> table(std::index_sequence<From...> all) {
  return {row<From>(all)...};
}
constexpr auto kTable = table(std::make_index_sequence<kNumRealDTypes>());

template <DType kPart, size_t... From>
constexpr Row complex_row(std::index_sequence<From...>) {
  return {&convert_to_complex<kPart, kRealDTypes[From]>...};
}
constexpr Row kToComplex64 = complex_row<DType::Float32>(std::make_index_sequence<kNumRealDTypes>());
constexpr Row kToComplex128 = complex_row<DType::Float64>(std::make_index_sequence<kNumRealDTypes>());

// Of two dtypes that differ, at least one of them complex.
ConvertFn complex_fn(DType from, DType to) {
  if (!is_complex(from)) {
    const size_t f = position(from);
    if (f == kNumRealDTypes) return nullptr;
    return (to == DType::Complex64 ? kToComplex64 : kToComplex128)[f];
  }
  if (is_complex(to)) {
    return from == DType::Complex64 ? &convert_complex<DType::Float32, DType::Float64>
                                    : &convert_complex<DType::Float64, DType::Float32>;
  }
  if (to == DType::Bool)
    return from == DType::Complex64 ? &convert_complex_to_bool<float> : &convert_complex_to_bool<double>;
  return convert_fn(real_dtype(from), to);  // the imaginary part is dropped
}

}  // namespace

ConvertFn convert_fn(DType from, DType to) noexcept {
  if (from != to && (is_wide_unsigned(from) || is_wide_unsigned(to)))
    return kUnsigned[static_cast<size_t>(from) * kNumDTypes + static_cast<size_t>(to)];
  if (from != to && (is_complex(from) || is_complex(to))) return complex_fn(from, to);
  const size_t f = position(from), t = position(to);
  if (f < kNumRealDTypes && t < kNumRealDTypes && kTable[f][t]) return kTable[f][t];
  if (from != to) return nullptr;
  switch (item_size(from)) {
    case 1:
      return &copy_block<1>;
    case 2:
      return &copy_block<2>;
    case 4:
      return &copy_block<4>;
    case 8:
      return &copy_block<8>;
    default:
      return &copy_block<16>;
  }
}

}  // namespace tenon::cpu
