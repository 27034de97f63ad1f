// The kinds of nodes of a graph that is being built: a table, from which come the checks of a node's inputs
// and attributes, and what it computes, as calls of operators. Used by graph.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"

namespace tenon::builder {

using Attribute = std::variant<bool, int64_t, double, std::string, Dims>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

class NodeCall;

/// One kind of node.
struct NodeKind {
  std::string_view name;  ///< "conv_fprop"
  std::string_view
      inputs;  ///< "image weight": names in order; `?` behind one that may be absent, `*` for a list.
  std::string_view attributes;  ///< "padding stride": names.
  std::string_view outputs;     ///< "Y": names.
  void (*lower)(NodeCall&);
};

/// All kinds, by family.
std::span<const NodeKind> pointwise_kinds();
std::span<const NodeKind> tensor_kinds();
std::span<const NodeKind> norm_kinds();
/// Throws Error{Value}, with names that are similar, if there is none.
const NodeKind& find_kind(std::string_view name);
/// The names of all kinds, sorted.
std::vector<std::string_view> kind_names();

/// The words of a list of names, separated by spaces.
std::vector<std::string_view> words(std::string_view text);

/// A node of a graph.
struct Node {
  const NodeKind* kind;
  std::string name;
  std::vector<uint32_t> inputs;  ///< Tensors by number; kAbsent.
  std::vector<uint32_t> outputs;
  Attributes attributes;
  std::optional<DType> compute_type;  ///< In which it computes; not set: as the operators do by themselves.
  static constexpr uint32_t kAbsent = ~uint32_t{0};
};

}  // namespace tenon::builder
