// How the SIMD printer writes types, and the operations of an expression. Used by print_simd.cc alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// "float", and "F32": Highway's tag of its vectors.
std::string_view element_name(Type t);
std::string_view tag(Type t);
/// The tag of the integers as wide as the type.
std::string_view bits_tag(Type t);

/// Prints the nodes of one expression as declarations `const auto v3 = ...;`.
class SimdBody {
 public:
  /// `load`: what a load is, with `{}` for its slot.
  SimdBody(const Expression& e, Type main, std::string load);

  std::string declaration(NodeId id) const;
  /// What a store of node `id` takes.
  std::string stored(NodeId id) const;

 private:
  std::string arg(const Node& n, int i) const;
  std::string choice(NodeId id, const Node& n) const;
  std::string arg_or_zero(const Node& n, int i) const;
  std::string as_number(const Node& n) const;
  std::string value(const Node& n) const;
  std::string call(std::string_view function, const Node& n, std::string_view first) const;
  std::string fma(const Node& n, std::string_view d) const;
  bool on_bits(const Node& n) const;
  bool is_limit(NodeId id) const;
  std::string compare(std::string_view function, const Node& n) const;
  std::string at_most(const Node& n, std::string_view of_floats, std::string_view opposite) const;

  const Expression& e_;
  Type main_;
  std::string load_;
  std::vector<bool> chosen_;  // costly calls that one choice alone uses
};

}  // namespace tenon::expr
