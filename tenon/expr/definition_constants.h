// The named constants of definitions: what float32 and float64 differ in, so that one text serves both.
// Used by functions_*.cc (by name, in their texts) and bound by lower.cc. Not in the language that users
// write.
#pragma once

#include <span>
#include <string_view>

#include "tenon/expr/expr.h"

namespace tenon::expr {

struct DefinitionConstant {
  std::string_view name;
  Literal f32;
  Literal f64;
};

std::span<const DefinitionConstant> definition_constants() noexcept;

}  // namespace tenon::expr
