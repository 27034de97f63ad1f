// Key: what an expression computes, as a number. Used wherever kernels are found by what they compute.
#pragma once

#include <compare>
#include <cstdint>

namespace tenon::expr {

/// What an expression computes, as 128 bits: equal for equal expressions in every process, however they were
/// built, and different when anything differs that a result could show.
struct Key {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Key&) const noexcept = default;
};

/// The key of a written expression for calls whose operands are all of one compute type, which is given by
/// its place in kComputeTypes: found without making the typed expression.
constexpr Key in_type(const Key& written, int compute_index) noexcept {
  return {written.high ^ (static_cast<uint64_t>(compute_index) + 1) * 0x9E3779B97F4A7C15u, written.low};
}

/// The key of the kernel that adds up what a flat expression computes, where `flat` is that of the kernel
/// that stores it.
constexpr Key summed(const Key& flat) noexcept { return {flat.high ^ 0xD1B54A32D192ED03u, flat.low}; }

}  // namespace tenon::expr
