#include "tenon/core/dtype.h"

#include <fmt/core.h>

#include <atomic>
#include <utility>

#include "tenon/core/error.h"

namespace tenon {
namespace {

constexpr std::string_view kNames[kNumDTypes] = {
    "bool",    "uint8",   "int8",      "int16",      "int32", "int64",  "float16",       "bfloat16",
    "float32", "float64", "complex64", "complex128", "qint8", "quint8", "float8_e4m3fn", "float8_e5m2"};

std::atomic<DType> g_default_dtype{DType::Float32};

// 0 bool, 1 integer, 2 real, 3 complex: a higher category wins a promotion outright.
int category(DType t) {
  if (t == DType::Bool) return 0;
  if (is_integral(t, false)) return 1;
  return is_complex(t) ? 3 : 2;
}

}  // namespace

std::string_view name(DType t) noexcept { return kNames[static_cast<int>(t)]; }

std::optional<DType> parse_dtype(std::string_view text) noexcept {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kNames[i] == text) return static_cast<DType>(i);
  }
  constexpr std::pair<std::string_view, DType> kAliases[] = {
      {"float", DType::Float32},    {"double", DType::Float64},    {"half", DType::Float16},
      {"int", DType::Int32},        {"long", DType::Int64},        {"short", DType::Int16},
      {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};
  for (const auto& [alias, dtype] : kAliases) {
    if (alias == text) return dtype;
  }
  return std::nullopt;
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const auto stands_alone = [](DType t) { return is_quantized(t) || t >= DType::Float8E4M3FN; };
  TENON_CHECK(
      !stands_alone(a) && !stands_alone(b), Type,
      fmt::format("promote_types: {} and {} do not promote; convert one with .to()", name(a), name(b)));
  if (static_cast<int>(a) > static_cast<int>(b)) std::swap(a, b);
  const int ca = category(a), cb = category(b);
  if (ca != cb) {
    // A complex result must still hold a float64 part.
    if (cb == 3 && a == DType::Float64) return DType::Complex128;
    return b;
  }
  // Neither half type holds the other; uint8 and a signed type meet in the next wider signed type.
  if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  return b;
}

bool can_cast(DType from, DType to) noexcept { return category(from) <= category(to); }

DType default_dtype() noexcept { return g_default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType t) {
  TENON_CHECK(t >= DType::Float16 && t <= DType::Float64, Type,
              fmt::format("set_default_dtype: only floating-point types are allowed, got {}", name(t)));
  g_default_dtype.store(t, std::memory_order_relaxed);
}

}  // namespace tenon
