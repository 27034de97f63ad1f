// FallbackPolicy: what of a device's missing operators, stubs and expressions runs on host copies instead.
// Used when tables are computed, by calls of stubs and of expressions, and by who sets it
// (ops/fallback/cpu_fallback.h). Independent of how such a call runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/device.h"

namespace tenon {

/// A name in these lists is that of one overload ("aten::sub.Tensor") or of all overloads ("aten::sub"); a
/// name without a namespace is aten's. An in-place operator has a name of its own ("abs_").
struct FallbackPolicy {
  enum class Kind : uint8_t {
    Never,   ///< What the device lacks is an error.
    All,     ///< Everything that it lacks falls back.
    Listed,  ///< Operators in `listed` do.
  };
  Kind kind = Kind::Never;
  std::vector<std::string> listed = {};
  std::vector<std::string> blocked = {};  ///< These do not, whatever `kind` says.

  bool takes(std::string_view full_name) const noexcept;
};

/// Replaces the policy of a backend; tables are computed again. A backend has Never until it is set.
void set_fallback_policy(Backend backend, FallbackPolicy policy);
/// Whether an operator of this name falls back on a backend; false for cpu and meta.
bool falls_back(Backend backend, std::string_view full_name) noexcept;
/// Whether a stub ("reduce") or an expression ("add"), which is part of an operator that the device has, may
/// run on host copies where the device declines it. Only Never and `blocked` forbid it.
bool part_falls_back(Backend backend, std::string_view name) noexcept;

}  // namespace tenon
