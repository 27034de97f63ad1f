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

/// What a node does with its operands, which decides what a compute type means for it.
enum class Computes : uint8_t {
  Numbers,    ///< Operands are converted to the compute type; results are numbers of it.
  Quotients,  ///< The same, but whole numbers have floating-point results.
  Truths,     ///< Comparisons: operands are converted likewise, results are bools.
  Logic,      ///< Operands count as bools, whatever their type.
  Nothing,    ///< Moves or makes elements: there is nothing to convert.
};

/// One kind of node.
struct NodeKind {
  std::string_view name;  ///< "conv_fprop"
  /// "input scale? epsilon#?": names in order. `#` after one that is a number (see `NodeCall::number`), `!`
  /// after one that counts as a bool, `?` after one that may be absent, `*` after a list.
  std::string_view inputs;
  std::string_view attributes;  ///< "padding stride": names, with `!` after one that must be given.
  std::string_view outputs;     ///< "Y": names.
  void (*lower)(NodeCall&);
  Computes computes = Computes::Numbers;
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
/// An input of a kind of node.
struct InputKind {
  std::string_view name;
  bool is_number, is_truth, is_optional, is_list;
};
std::vector<InputKind> inputs_of(const NodeKind& kind);

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
