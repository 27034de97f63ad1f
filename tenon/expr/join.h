// Joiner: several typed expressions as one, which computes the same bits (docs/decisions/0015): the load of a
// value that an earlier expression stores is replaced by the node under that store, which the dtype holds
// exactly (rules L8, L9 of spec.h). Used by whatever fuses operators into regions. Knows no tensors: values
// and numbers have names of the caller's.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tenon/expr/builder.h"

namespace tenon::expr {

/// What a slot of an added expression reads or stores: the same name is the same elements at the same places.
using ValueName = uint32_t;

/// An input of an added expression, and how it varies where no added expression has stored it.
struct JoinInput {
  ValueName name = 0;
  Rank rank = Rank::Element;
};

/// What was joined. Slots are numbered in the order of their first use; operands as slots are, save that both
/// parts of a complex value are one operand.
struct Joined {
  ExpressionPtr expression;
  std::vector<ValueName> inputs;   ///< By operand.
  std::vector<uint32_t> numbers;   ///< By slot.
  std::vector<ValueName> outputs;  ///< By operand.
};

/// Expressions are added in the order in which they would run one by one. A name is stored at most once, and
/// not after it was read.
class Joiner {
 public:
  /// `relaxed`: values are not rounded to half types but where they are stored.
  explicit Joiner(bool relaxed = false) : relaxed_(relaxed) {}

  /// Adds a typed expression. `inputs` and `outputs` have an entry for each of its slots (the parts of a
  /// complex value have the same name), `numbers` the number of the region that each of its number slots is.
  /// Throws Error{Internal} for lists of other lengths, for a name of another dtype than before and for one
  /// that is stored twice.
  void add(const Expression& e, std::span<const JoinInput> inputs, std::span<const uint32_t> numbers,
           std::span<const ValueName> outputs);

  /// The joined expression, in canonical form, that stores the listed values, each of them stored by an
  /// added expression. Dead values are dropped. Throws Error{Value} where it breaks a rule of
  /// spec.h: in practice L14, too many slots or nodes.
  Joined finish(std::span<const ValueName> wanted);

 private:
  using Key = std::pair<ValueName, Part>;
  /// The slot and node of one part of a value, or of one number, in the builder.
  struct Source {
    Slot slot;
    uint32_t name;
    NodeId node;
  };

  NodeId input(const Slot& slot, const JoinInput& from);
  NodeId number(const Slot& slot, uint32_t name);
  NodeId operation(Node n);

  bool relaxed_;
  Builder g_;
  std::vector<Source> inputs_, numbers_;  // by the number that their leaves have in g_
  std::map<Key, size_t> read_;            // of inputs_
  std::map<Key, std::pair<Slot, NodeId>> stored_;
  std::vector<Slot> slots_;  // those of inputs_, as `holds` takes them
};

}  // namespace tenon::expr
