#include "tenon/core/dtype.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "tenon/core/error.h"
#include "tenon/core/recording.h"

namespace tenon {
namespace {

std::atomic<DType> g_default_dtype{DType::Float32};

constexpr std::optional<DType> find_signed(DTypeCategory category, int rank) {
  for (const DType t : kDTypes) {
    const DTypeInfo& row = dtype_info(t);
    if (row.category == category && row.rank == rank && row.is_signed) return t;
  }
  return std::nullopt;
}

constexpr std::optional<DType> promoted(DType a, DType b) {
  if (a == b) return a;
  const DTypeInfo &x = dtype_info(a), &y = dtype_info(b);
  if (x.rank == 0 || y.rank == 0) return std::nullopt;
  if (x.category == y.category) {
    const DTypeInfo& more = x.rank > y.rank ? x : y;
    const bool mixed = x.is_signed != y.is_signed && !more.is_signed;
    return mixed || x.rank == y.rank ? find_signed(x.category, more.rank + 1) : more.code;
  }
  const DTypeInfo& low = x.category < y.category ? x : y;
  const DTypeInfo& high = x.category < y.category ? y : x;
  if (high.category == DTypeCategory::Complex && low.category == DTypeCategory::Float)
    return find_signed(high.category, std::max(high.rank, low.rank));
  return high.code;
}

using Promoted = std::array<std::array<std::optional<DType>, kNumDTypes>, kNumDTypes>;
constexpr Promoted kPromoted = [] {
  Promoted table{};
  for (int a = 0; a < kNumDTypes; ++a) {
    for (int b = 0; b < kNumDTypes; ++b) table[a][b] = promoted(kDTypes[a], kDTypes[b]);
  }
  return table;
}();

}  // namespace

void throw_unknown_dtype(DType t) {
  throw_error(ErrorKind::Type, fmt::format("{} is the code of no dtype; those of Tenon are 0 to {}",
                                           static_cast<int>(t), kNumDTypes - 1));
}

std::optional<DType> parse_dtype(std::string_view text) noexcept {
  for (const DType t : kDTypes) {
    if (name(t) == text) return t;
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
  check_known(a);
  check_known(b);
  const std::optional<DType> both = kPromoted[static_cast<uint8_t>(a)][static_cast<uint8_t>(b)];
  TENON_CHECK(
      both, Type,
      fmt::format("promote_types: {} and {} do not promote; convert one with .to()", name(a), name(b)));
  return *both;
}

bool can_cast(DType from, DType to) noexcept {
  if (!is_known(from) || !is_known(to)) return false;
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating_point(from) && is_integral(to, false)) return false;
  return from == DType::Bool || to != DType::Bool;
}

DType default_dtype() noexcept { return g_default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType t) {
  check_known(t);
  TENON_CHECK(is_floating_point(t) && has_arithmetic(t), Type,
              fmt::format("set_default_dtype: only floating-point types are allowed, got {}", name(t)));
  note_switch();
  g_default_dtype.store(t, std::memory_order_relaxed);
}

}  // namespace tenon
