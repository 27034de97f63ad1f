#include "backends/cpu/copy/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "backends/cpu/copy/row_kernels.h"

namespace tenon::cpu {
namespace {

// A conversion is a few steps in a row, through int32 or float32 where there is no direct one: 26 steps for
// the 90 pairs of dtypes. What lies between two steps stays in the L1 cache.
struct Plan {
  std::array<ConversionStep, 4> steps{};
  int count = 0;
  int64_t from_size = 1, to_size = 1;

  constexpr void add(ConversionStep s) { steps[static_cast<size_t>(count++)] = s; }
};

constexpr bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
constexpr bool is_small_integer(DType t) {
  return t == DType::UInt8 || t == DType::Int8 || t == DType::Int16;
}

// `at` is int32, int64, float32 or float64, and `to` another of them.
constexpr void add_between_words(Plan& plan, DType at, DType to) {
  using enum ConversionStep;
  const auto pick = [&](ConversionStep i32, ConversionStep i64, ConversionStep f32, ConversionStep f64) {
    plan.add(at == DType::Int32 ? i32 : at == DType::Int64 ? i64 : at == DType::Float32 ? f32 : f64);
  };
  if (to == DType::Int64 && at == DType::Float32) {
    plan.add(F32_F64);
    plan.add(F64_I64);
  } else if (to == DType::Int32) {
    pick({}, I64_I32, F32_I32, F64_I32);
  } else if (to == DType::Int64) {
    pick(I32_I64, {}, {}, F64_I64);
  } else if (to == DType::Float32) {
    pick(I32_F32, I64_F32, {}, F64_F32);
  } else {
    pick(I32_F64, I64_F64, F32_F64, {});
  }
}

constexpr Plan make_plan(DType from, DType to) {
  using enum ConversionStep;
  Plan plan;
  plan.from_size = static_cast<int64_t>(item_size(from));
  plan.to_size = static_cast<int64_t>(item_size(to));
  DType at = from;
  // bool elements are read as bytes: foreign memory may hold others than 0 and 1.
  if (at == DType::Bool) {
    plan.add(U8_Bool);
    at = DType::UInt8;
    if (to == DType::Bool) return plan;
  }
  if (is_half(at)) {
    plan.add(at == DType::Float16 ? F16_F32 : BF16_F32);
    at = DType::Float32;
  }
  if (to == DType::Bool) {
    plan.add(at == DType::Int16     ? I16_Bool
             : at == DType::Int32   ? I32_Bool
             : at == DType::Int64   ? I64_Bool
             : at == DType::Float32 ? F32_Bool
             : at == DType::Float64 ? F64_Bool
                                    : U8_Bool);
    return plan;
  }
  if (item_size(at) == 1 && item_size(to) == 1) return plan;  // the same bits
  if (is_small_integer(at)) {
    plan.add(at == DType::UInt8 ? U8_I32 : at == DType::Int8 ? I8_I32 : I16_I32);
    at = DType::Int32;
  }
  const DType word = is_half(to) ? DType::Float32 : is_small_integer(to) ? DType::Int32 : to;
  if (at != word) add_between_words(plan, at, word);
  if (is_half(to)) plan.add(to == DType::Float16 ? F32_F16 : F32_BF16);
  if (is_small_integer(to)) plan.add(to == DType::Int16 ? I32_I16 : I32_I8);
  return plan;
}

// Elements of a piece of a conversion: 2 KB of the widest.
constexpr int64_t kPiece = 256;
struct Piece {
  alignas(64) char bytes[kPiece * 8];
};

void run_steps(const RowKernels& kernels, const Plan& plan, char* dst, const char* src, int64_t n) {
  Piece between[2];
  if (plan.count == 0) {
    std::memcpy(dst, src, static_cast<size_t>(n));
    return;
  }
  for (int s = 0; s < plan.count; ++s) {
    char* to = s + 1 == plan.count ? dst : between[s % 2].bytes;
    kernels.steps[static_cast<size_t>(plan.steps[static_cast<size_t>(s)])](to, src, static_cast<size_t>(n));
    src = to;
  }
}

// `rows` rows of n elements, no more than a piece of them in all.
void convert_piece(const RowKernels& kernels, const Plan& plan, char* dst, BlockStrides ds, const char* src,
                   BlockStrides ss, int64_t n, int64_t rows) {
  Piece packed, converted;
  const auto width = static_cast<size_t>(n);
  const bool one = rows == 1;
  const char* in = src;
  if (!(ss.inner == plan.from_size && (one || ss.outer == n * plan.from_size))) {
    const auto pack = kernels.pack[element_size_index(plan.from_size)];
    for (int64_t j = 0; j < rows; ++j)
      pack(packed.bytes + j * n * plan.from_size, src + j * ss.outer, ss.inner, width);
    in = packed.bytes;
  }
  const bool dense = ds.inner == plan.to_size && (one || ds.outer == n * plan.to_size);
  char* out = dense ? dst : converted.bytes;
  run_steps(kernels, plan, out, in, n * rows);
  if (dense) return;
  const auto unpack = kernels.unpack[element_size_index(plan.to_size)];
  for (int64_t j = 0; j < rows; ++j) unpack(dst + j * ds.outer, out + j * n * plan.to_size, ds.inner, width);
}

void convert_block(const Plan& plan, void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0,
                   int64_t n1) {
  const RowKernels& kernels = row_kernels();
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  // Short rows go together.
  const int64_t rows = std::clamp<int64_t>(kPiece / std::max<int64_t>(n0, 1), 1, std::max<int64_t>(n1, 1));
  for (int64_t j = 0; j < n1; j += rows) {
    const int64_t m = std::min(rows, n1 - j);
    if (m == 1 && ss.inner == 0 && ds.inner == plan.to_size && n0 > 1) {
      Piece one;
      run_steps(kernels, plan, one.bytes, s + j * ss.outer, 1);
      kernels.fill[element_size_index(plan.to_size)](d + j * ds.outer, one.bytes, static_cast<size_t>(n0));
      continue;
    }
    for (int64_t i = 0; i < n0; i += kPiece) {
      convert_piece(kernels, plan, d + j * ds.outer + i * ds.inner, ds, s + j * ss.outer + i * ss.inner, ss,
                    std::min(kPiece, n0 - i), m);
    }
  }
}

// Elements of one size, whatever they mean.
template <int64_t kSize>
void copy_block(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  constexpr size_t kIndex = element_size_index(kSize);
  const RowKernels& kernels = row_kernels();
  const auto n = static_cast<size_t>(n0);
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
constexpr Plan kPlan = make_plan(kFrom, kTo);
template <DType kFrom, DType kTo>
void convert_real(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  convert_block(kPlan<kFrom, kTo>, dst, ds, src, ss, n0, n1);
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

// The dtypes whose elements are real numbers of a C++ type, in the order of the tables below.
constexpr DType kReal[] = {DType::Bool,  DType::UInt8,   DType::Int8,     DType::Int16,   DType::Int32,
                           DType::Int64, DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};
constexpr size_t kNumReal = std::size(kReal);
// Of each code, its place in the list; kNumReal for any other.
constexpr auto kPosition = [] {
  std::array<uint8_t, 256> positions{};
  positions.fill(kNumReal);
  for (size_t i = 0; i < kNumReal; ++i) positions[static_cast<uint8_t>(kReal[i])] = static_cast<uint8_t>(i);
  return positions;
}();
size_t position(DType t) noexcept { return kPosition[static_cast<uint8_t>(t)]; }

template <size_t From, size_t To>
constexpr ConvertFn entry() {
  if constexpr (From == To && kReal[From] != DType::Bool)
    return nullptr;
  else
    return &convert_real<kReal[From], kReal[To]>;
}

using Row = std::array<ConvertFn, kNumReal>;
template <size_t From, size_t... To>
constexpr Row row(std::index_sequence<To...>) {
  return {entry<From, To>()...};
}
template <size_t... From>
constexpr std::array<Row, kNumReal> table(std::index_sequence<From...> all) {
  return {row<From>(all)...};
}
constexpr auto kTable = table(std::make_index_sequence<kNumReal>());

template <DType kPart, size_t... From>
constexpr Row complex_row(std::index_sequence<From...>) {
  return {&convert_to_complex<kPart, kReal[From]>...};
}
constexpr Row kToComplex64 = complex_row<DType::Float32>(std::make_index_sequence<kNumReal>());
constexpr Row kToComplex128 = complex_row<DType::Float64>(std::make_index_sequence<kNumReal>());

// Of two dtypes that differ, at least one of them complex.
ConvertFn complex_fn(DType from, DType to) {
  if (!is_complex(from)) {
    const size_t f = position(from);
    if (f == kNumReal) return nullptr;
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
  if (from != to && (is_complex(from) || is_complex(to))) return complex_fn(from, to);
  const size_t f = position(from), t = position(to);
  if (f < kNumReal && t < kNumReal && kTable[f][t]) return kTable[f][t];
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
