#include "backends/cpu/ops/indexed_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backends/cpu/copy/row_kernels.h"
#include "tenon/core/dispatch_dtype.h"

namespace tenon::cpu {
namespace {

using ops::Combine;

// Rows of one element, where one side is regular: the loops that most calls spend their time in.

template <class T>
T load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}
template <class T>
void store(char* p, T value) {
  std::memcpy(p, &value, sizeof(T));
}

/// Elements read at positions become contiguous elements: four are checked, then loaded, then
/// stored.
template <class T, class Place>
bool copy_to_row(char* to, const char* from, const RowPlaces& places, int64_t n, Place&& place) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const int64_t* p = places.positions;
  const auto last = static_cast<uint64_t>(places.last);  // the largest number where there is nothing to check
  const auto outside = [&](int64_t j) { return static_cast<uint64_t>(p[j]) > last; };
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    if (outside(j) || outside(j + 1) || outside(j + 2) || outside(j + 3)) return false;
    const T four[] = {load<T>(from + place(j)), load<T>(from + place(j + 1)), load<T>(from + place(j + 2)),
                      load<T>(from + place(j + 3))};
    std::memcpy(to + j * kItem, four, sizeof(four));
  }
  for (; j < n; ++j) {
    if (outside(j)) return false;
    store(to + j * kItem, load<T>(from + place(j)));
  }
  return true;
}

template <class T, bool kTo, bool kFrom>
bool copy_elements(const IndexedRows& r) {
  char* to = r.to;
  const char* from = r.from;
  const RowPlaces t = r.to_places, f = r.from_places;
  const int64_t n = r.n;
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  if constexpr (!kTo && kFrom) {
    // Elements that positions count one by one need no product for their addresses.
    if (t.stride == kItem && f.stride == 0 && f.step == kItem)
      return copy_to_row<T>(to, from, f, n, [p = f.positions](int64_t j) { return p[j] * kItem; });
    if (t.stride == kItem)
      return copy_to_row<T>(to, from, f, n,
                            [f](int64_t j) { return f.positions[j] * f.step + j * f.stride; });
  }
  if constexpr (kTo && !kFrom) {
    if (t.stride == 0 && t.step == kItem && f.stride == kItem) {
      const int64_t* p = t.positions;
      for (int64_t j = 0; j < n; ++j) store(to + p[j] * kItem, load<T>(from + j * kItem));
      return true;
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    store(to + (kTo ? t.positions[j] * t.step : 0) + j * t.stride,
          load<T>(from + (kFrom ? f.positions[j] * f.step : 0) + j * f.stride));
  }
  return true;
}

constexpr int64_t kAhead = 6;

/// The first lines of what will be read.
void prefetch(const char* p, size_t nbytes) {
  for (size_t i = 0; i < std::min<size_t>(nbytes, 256); i += 64) __builtin_prefetch(p + i);
}

constexpr int64_t kZeros[kIndexedBlock] = {};

/// With positions on both sides.
IndexedRows with_positions(const IndexedRows& r) {
  IndexedRows rows = r;
  for (RowPlaces* places : {&rows.to_places, &rows.from_places}) {
    if (!places->positions) places->positions = kZeros;
  }
  return rows;
}

template <class T>
bool copy_rows(const IndexedRows& given, const Scalar&) {
  if (given.m == 1 && !(given.to_places.positions && given.from_places.positions)) {
    if (given.from_places.positions) return copy_elements<T, false, true>(given);
    if (given.to_places.positions) return copy_elements<T, true, false>(given);
    return copy_elements<T, false, false>(given);
  }
  const IndexedRows r = with_positions(given);
  if (r.m == 1) return copy_elements<T, true, true>(r);
  const RowPlaces t = r.to_places, f = r.from_places;
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const auto m = static_cast<size_t>(r.m);
  const auto pack = row_kernels().pack[element_size_index(kItem)],
             unpack = row_kernels().unpack[element_size_index(kItem)];
  for (int64_t j = 0; j < r.n; ++j) {
    char* to = r.to + t.positions[j] * t.step + j * t.stride;
    const char* from = r.from + f.positions[j] * f.step + j * f.stride;
    if (r.to_step == kItem && r.from_step == kItem) {
      // Rows at positions are nowhere near each other: the one that comes later is asked for now.
      if (j + kAhead < r.n)
        prefetch(r.from + f.positions[j + kAhead] * f.step + (j + kAhead) * f.stride, m * sizeof(T));
      std::memcpy(to, from, m * sizeof(T));
    } else if (r.to_step == kItem) {
      pack(to, from, r.from_step, m);
    } else if (r.from_step == kItem) {
      unpack(to, from, r.to_step, m);
    } else {
      for (int64_t k = 0; k < r.m; ++k) store(to + k * r.to_step, load<T>(from + k * r.from_step));
    }
  }
  return true;
}

// Arithmetic. Half types compute in float32; integers wrap.

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else if constexpr (kIsHalf<T>)
    return T(static_cast<float>(a) + static_cast<float>(b));
  else
    return a + b;
}

template <class T>
T product(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else if constexpr (kIsHalf<T>)
    return T(static_cast<float>(a) * static_cast<float>(b));
  else if constexpr (kIsComplex<T>)
    // As the pointwise product: std::complex's own repairs NaNs, which takes a branch for each element.
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

/// An element multiplied by a number; real ones scale both parts of a complex element.
template <class T>
T scaled(T a, const Scalar& by) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(by.to_int()));
  else if constexpr (kIsComplex<T>)
    return by.is_complex() ? product(a, T(by.to_complex()))
                           : T(a.real() * static_cast<typename T::value_type>(by.to_double()),
                               a.imag() * static_cast<typename T::value_type>(by.to_double()));
  else if constexpr (kIsHalf<T>)
    return T(static_cast<float>(a) * static_cast<float>(by.to_double()));
  else
    return a * static_cast<T>(by.to_double());
}

/// The larger or smaller of two; NaN where either is, and the first of two that are equal.
template <bool kMax, class T>
T extremum(T a, T b) {
  if constexpr (kIsHalf<T>) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    if (std::isnan(x)) return a;
    return (kMax ? y > x : y < x) || std::isnan(y) ? b : a;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    return (kMax ? b > a : b < a) || std::isnan(b) ? b : a;
  } else {
    return (kMax ? b > a : b < a) ? b : a;
  }
}

template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a;
  } else if constexpr (std::is_integral_v<T>) {
    if (b == 0) return a;
    const int64_t q = static_cast<int64_t>(a) / b;
    return static_cast<T>(q - (static_cast<int64_t>(a) % b != 0 && (a < 0) != (b < 0)));
  } else if constexpr (kIsComplex<T>) {
    return b == T(0) ? a : T(a.real() / b.real(), a.imag() / b.real());  // a mean's count is real
  } else {
    using Compute = std::conditional_t<kIsHalf<T>, float, T>;
    return Compute(b) == 0 ? a : T(Compute(a) / Compute(b));
  }
}

template <class T, Combine kCombine>
T combined(T a, T b) {
  if constexpr (kCombine == Combine::Add)
    return sum(a, b);
  else if constexpr (kCombine == Combine::Mul)
    return product(a, b);
  else if constexpr (kCombine == Combine::Div)
    return quotient(a, b);
  else
    return extremum<kCombine == Combine::Max>(a, b);
}

template <class F, class T>
void each_row(const IndexedRows& given, F&& f) {
  if (given.m == 1 && given.to_places.positions && !given.from_places.positions) {
    char* to = given.to;
    const char* from = given.from;
    const RowPlaces t = given.to_places;
    const int64_t n = given.n, step = given.from_places.stride;
    // Elements that positions count one by one need no product for their addresses.
    if (t.stride == 0 && t.step == sizeof(T) && step == sizeof(T)) {
      T* first = reinterpret_cast<T*>(to);
      const T* source = reinterpret_cast<const T*>(from);
      for (int64_t j = 0; j < n; ++j) first[t.positions[j]] = f(first[t.positions[j]], source[j]);
      return;
    }
    for (int64_t j = 0; j < n; ++j) {
      T& a = *reinterpret_cast<T*>(to + t.positions[j] * t.step + j * t.stride);
      a = f(a, *reinterpret_cast<const T*>(from + j * step));
    }
    return;
  }
  const IndexedRows r = with_positions(given);
  const RowPlaces t = r.to_places, s = r.from_places;
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  for (int64_t j = 0; j < r.n; ++j) {
    char* to = r.to + t.positions[j] * t.step + j * t.stride;
    const char* from = r.from + s.positions[j] * s.step + j * s.stride;
    if (r.m > 1 && r.to_step == kItem && r.from_step == kItem) {
      T* __restrict a = reinterpret_cast<T*>(to);
      const T* __restrict b = reinterpret_cast<const T*>(from);
      for (int64_t k = 0; k < r.m; ++k) a[k] = f(a[k], b[k]);
    } else {
      for (int64_t k = 0; k < r.m; ++k) {
        T& a = *reinterpret_cast<T*>(to + k * r.to_step);
        a = f(a, *reinterpret_cast<const T*>(from + k * r.from_step));
      }
    }
  }
}

template <class T, Combine kCombine>
bool combine_rows(const IndexedRows& r, const Scalar& alpha) {
  const auto plain = [](T a, T b) { return combined<T, kCombine>(a, b); };
  if constexpr (kCombine == Combine::Add) {
    if (!(alpha.is_integral() && alpha.to_int() == 1)) {
      const auto by = [&alpha](T a, T b) { return sum(a, scaled(b, alpha)); };
      each_row<decltype(by)&, T>(r, by);
      return true;
    }
  }
  each_row<decltype(plain)&, T>(r, plain);
  return true;
}

struct Bytes16 {
  uint64_t words[2];
};

IndexedKernel copying_kernel(DType dtype) {
  switch (item_size(dtype)) {
    case 1:
      return &copy_rows<uint8_t>;
    case 2:
      return &copy_rows<uint16_t>;
    case 4:
      return &copy_rows<uint32_t>;
    case 8:
      return &copy_rows<uint64_t>;
    default:
      return &copy_rows<Bytes16>;
  }
}

}  // namespace

IndexedKernel indexed_kernel(DType dtype, Combine combine, const char* op) {
  if (combine == Combine::Set) return copying_kernel(dtype);
  return switch_any_dtype(dtype, op, [&]<class T>() -> IndexedKernel {
    if (combine == Combine::Add) return &combine_rows<T, Combine::Add>;
    if (combine == Combine::Mul) return &combine_rows<T, Combine::Mul>;
    if (combine == Combine::Div) return &combine_rows<T, Combine::Div>;
    if constexpr (kIsComplex<T>)
      throw_error(ErrorKind::NotImplemented, fmt::format("{}: complex numbers have no order", op));
    else
      return combine == Combine::Max ? &combine_rows<T, Combine::Max> : &combine_rows<T, Combine::Min>;
  });
}

}  // namespace tenon::cpu
