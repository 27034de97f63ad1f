#include "backends/cpu/copy/convert.h"

#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "backends/cpu/copy/half_bits.h"
#include "tenon/core/dispatch_dtype.h"

namespace tenon::cpu {
namespace {

// bool elements are read as bytes: foreign memory may hold others than 0 and 1. Halves are their bits.
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
using Stored =
    std::conditional_t<std::is_same_v<T, bool>, uint8_t, std::conditional_t<kIsHalf<T>, uint16_t, T>>;

template <class To, class From>
Stored<To> convert_one(Stored<From> v) {
  if constexpr (std::is_same_v<From, Half>) {
    return convert_one<To, float>(std::bit_cast<float>(float_from_half<int32_t, float>(v)));
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return convert_one<To, float>(std::bit_cast<float>(static_cast<uint32_t>(v) << 16));
  } else if constexpr (std::is_same_v<From, bool>) {
    return convert_one<To, int32_t>(v != 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_same_v<To, Half>) {
    return static_cast<uint16_t>(
        half_from_float<int32_t, float>(std::bit_cast<int32_t>(static_cast<float>(v))));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return static_cast<uint16_t>(
        bfloat16_from_float<int32_t, float>(std::bit_cast<int32_t>(static_cast<float>(v))));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const bool fits = v >= From(-0x1p63) && v < From(0x1p63);
    return static_cast<To>(fits ? static_cast<int64_t>(v) : INT64_MIN);
  } else {
    return static_cast<To>(v);
  }
}

// Blocks of a fixed length through local arrays: the compiler sees neither aliasing nor a remainder, and
// vectorises.
constexpr int64_t kBlock = 16;

template <class To, class From>
void convert16(Stored<To> (&out)[kBlock], const Stored<From> (&in)[kBlock]) {
  if constexpr (kIsHalf<From> && !std::is_same_v<To, From>) {
    float wide[kBlock];
    floats_from_halves<std::is_same_v<From, BFloat16>>(wide, in);
    convert16<To, float>(out, wide);
  } else if constexpr (kIsHalf<To> && std::is_same_v<From, float>) {
    halves_from_floats<std::is_same_v<To, BFloat16>>(out, in);
  } else if constexpr (kIsHalf<To> && !kIsHalf<From>) {
    float wide[kBlock];
    convert16<float, From>(wide, in);
    convert16<To, float>(out, wide);
  } else {
    for (int k = 0; k < kBlock; ++k) out[k] = convert_one<To, From>(in[k]);
  }
}

template <class To, class From>
void convert_row(Stored<To>* dst, const Stored<From>* src, int64_t n) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Stored<From> in[kBlock];
    Stored<To> out[kBlock];
    std::memcpy(in, src + i, sizeof in);
    convert16<To, From>(out, in);
    std::memcpy(dst + i, out, sizeof out);
  }
  for (; i < n; ++i) dst[i] = convert_one<To, From>(src[i]);
}

template <class T>
void fill_row(T* dst, T value, int64_t n) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    T block[kBlock];
    for (int k = 0; k < kBlock; ++k) block[k] = value;
    std::memcpy(dst + i, block, sizeof block);
  }
  for (; i < n; ++i) dst[i] = value;
}

template <class T>
T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class To, class From>
void convert_block(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  using In = Stored<From>;
  using Out = Stored<To>;
  for (int64_t j = 0; j < n1; ++j) {
    char* d = static_cast<char*>(dst) + j * ds.outer;
    const char* s = static_cast<const char*>(src) + j * ss.outer;
    if (ds.inner == sizeof(Out) && ss.inner == sizeof(In)) {
      convert_row<To, From>(reinterpret_cast<Out*>(d), reinterpret_cast<const In*>(s), n0);
    } else if (ds.inner == sizeof(Out) && ss.inner == 0) {
      fill_row(reinterpret_cast<Out*>(d), convert_one<To, From>(load<In>(s)), n0);
    } else {
      for (int64_t i = 0; i < n0; ++i, d += ds.inner, s += ss.inner) {
        const Out v = convert_one<To, From>(load<In>(s));
        std::memcpy(d, &v, sizeof v);
      }
    }
  }
}

struct Bytes16 {
  uint64_t low, high;
};

// Elements two apart, in blocks that the compiler vectorises; returns how many it took. Reads nothing behind
// the last.
template <class T>
int64_t every_second(T* dst, const char* src, int64_t n) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    T in[2 * kBlock], out[kBlock];
    std::memcpy(in, src + 2 * i * static_cast<int64_t>(sizeof(T)), sizeof in - sizeof(T));
    for (int k = 0; k < kBlock; ++k) out[k] = in[2 * k];
    std::memcpy(dst + i, out, sizeof out);
  }
  return i;
}

// Elements of one size, whatever they mean.
template <class T>
void copy_block(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t j = 0; j < n1; ++j) {
    char* d = static_cast<char*>(dst) + j * ds.outer;
    const char* s = static_cast<const char*>(src) + j * ss.outer;
    if (ds.inner == kSize && ss.inner == kSize) {
      std::memmove(d, s, static_cast<size_t>(n0 * kSize));
    } else if (ds.inner == kSize && ss.inner == 0) {
      fill_row(reinterpret_cast<T*>(d), load<T>(s), n0);
    } else {
      int64_t i = 0;
      if (sizeof(T) <= 8 && ds.inner == kSize && ss.inner == 2 * kSize) {
        i = every_second(reinterpret_cast<T*>(d), s, n0);
        d += i * ds.inner;
        s += i * ss.inner;
      }
      for (; i < n0; ++i, d += ds.inner, s += ss.inner) std::memcpy(d, s, sizeof(T));
    }
  }
}

// Complex elements are their parts side by side: the real ones have the stride of the whole.
template <class Part>
char* imaginary(void* p) {
  return static_cast<char*>(p) + sizeof(Part);
}
template <class Part>
const char* imaginary(const void* p) {
  return static_cast<const char*>(p) + sizeof(Part);
}

template <class Part, class From>
void convert_to_complex(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0,
                        int64_t n1) {
  const Part zero = 0;
  convert_block<Part, From>(dst, ds, src, ss, n0, n1);
  convert_block<Part, Part>(imaginary<Part>(dst), ds, &zero, {}, n0, n1);
}

template <class To, class From>
void convert_complex(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0, int64_t n1) {
  convert_block<To, From>(dst, ds, src, ss, n0, n1);
  convert_block<To, From>(imaginary<To>(dst), ds, imaginary<From>(src), ss, n0, n1);
}

template <class Part>
void convert_complex_to_bool(void* dst, BlockStrides ds, const void* src, BlockStrides ss, int64_t n0,
                             int64_t n1) {
  for (int64_t j = 0; j < n1; ++j) {
    char* d = static_cast<char*>(dst) + j * ds.outer;
    const char* s = static_cast<const char*>(src) + j * ss.outer;
    for (int64_t i = 0; i < n0; ++i, d += ds.inner, s += ss.inner) {
      *d = load<Part>(s) != 0 || load<Part>(imaginary<Part>(s)) != 0;
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
    return &convert_block<cpp_type<kReal[To]>, cpp_type<kReal[From]>>;
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

template <class Part, size_t... From>
constexpr Row complex_row(std::index_sequence<From...>) {
  return {&convert_to_complex<Part, cpp_type<kReal[From]>>...};
}
constexpr Row kToComplex64 = complex_row<float>(std::make_index_sequence<kNumReal>());
constexpr Row kToComplex128 = complex_row<double>(std::make_index_sequence<kNumReal>());

// Of two dtypes that differ, at least one of them complex.
ConvertFn complex_fn(DType from, DType to) {
  if (!is_complex(from)) {
    const size_t f = position(from);
    if (f == kNumReal) return nullptr;
    return (to == DType::Complex64 ? kToComplex64 : kToComplex128)[f];
  }
  if (is_complex(to))
    return from == DType::Complex64 ? &convert_complex<double, float> : &convert_complex<float, double>;
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
      return &copy_block<uint8_t>;
    case 2:
      return &copy_block<uint16_t>;
    case 4:
      return &copy_block<uint32_t>;
    case 8:
      return &copy_block<uint64_t>;
    default:
      return &copy_block<Bytes16>;
  }
}

}  // namespace tenon::cpu
