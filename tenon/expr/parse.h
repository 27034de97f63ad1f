// The parser's inner face: text over names that are already nodes. Used by `parse`, derivative rules and
// definitions.
#pragma once

#include <span>
#include <string_view>

#include "tenon/expr/expr.h"

namespace tenon::expr {

struct Binding {
  std::string_view name;
  NodeId node;
};

/// As `parse`, with names bound to nodes of `g` instead of symbols, and internal functions allowed.
NodeId parse_bound(Builder& g, std::string_view text, std::span<const Binding> names);

}  // namespace tenon::expr
