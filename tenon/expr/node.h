// Node and Slot: the two records that every expression is made of, as plain data.
// Written expressions, typed ones, launches for devices and constants of the build are all these; the plug-in
// ABI passes them as they are.
#pragma once

#include <cstdint>
#include <string_view>

#include "tenon/expr/op.h"
#include "tenon/expr/type.h"

namespace tenon::expr {

/// Index of a node in its expression. A node's operands always have smaller indices.
using NodeId = uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};

/// What a Reduce makes of a row, from the identity on, by the tree of docs/decisions/0004-reduction-tree.md.
/// Max, Min: NaN if any is one. ArgMax, ArgMin: the first place, NaN counts as most extreme. First has two
/// operands: the second where the first, a mask, is true for the first time; 0 where it never is. ProdRe and
/// ProdIm are the parts of a product of complex numbers, whose parts the operands are: from 1 + 0i on, in
/// logical order and not by the tree, x * y = (xr * yr - xi * yi) + (xr * yi + xi * yr) i.
enum class ReduceKind : uint8_t { Sum, Prod, Max, Min, Any, All, ArgMax, ArgMin, First, ProdRe, ProdIm };
inline constexpr int kNumReduceKinds = static_cast<int>(ReduceKind::ProdIm) + 1;
/// "sum", ...: as texts have it.
std::string_view name(ReduceKind kind) noexcept;
/// How many operands it takes.
constexpr int num_operands(ReduceKind kind) noexcept { return kind >= ReduceKind::First ? 2 : 1; }
/// Whether it gives places of the row, int64.
constexpr bool gives_place(ReduceKind kind) noexcept {
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
}
/// Whether its first operand is a mask.
constexpr bool takes_mask(ReduceKind kind) noexcept {
  return kind == ReduceKind::Any || kind == ReduceKind::All || kind == ReduceKind::First;
}
/// What an Iota counts; elements and rows are reserved.
enum class IotaKind : uint8_t { Element, Position, Row };

/// One operation, with the type of its value. Unused operands are kNoNode.
struct Node {
  Op op = Op::Literal;
  Type type = Type::Open;
  uint8_t arity = 0;
  uint8_t flags = 0;  ///< The rank in the low two bits; kWhole.
  NodeId args[3] = {kNoNode, kNoNode, kNoNode};
  /// Of Literal: its bits in its type (of an open one: an int64 with kWhole, else a double). Of Load and
  /// Number: the slot. Of Given: the argument. Of Call: the function's number, function.h. Of shifts: the
  /// count. Of Reduce and Iota: the kind. Of PiReduce: the part. Of RoundTo: the dtype (of a written one:
  /// kOfResult, or the operand whose dtype it is).
  uint64_t bits = 0;

  static constexpr uint8_t kRank = 3;
  static constexpr uint8_t kReversed = 4;  ///< Reserved for scans.
  static constexpr uint8_t kWhole = 8;     ///< Of an open literal: an integer.
  static constexpr uint64_t kOfResult = ~uint64_t{0};
  /// Given counts inputs from 0 and numbers from here.
  static constexpr uint64_t kFirstNumber = 64;

  Rank rank() const noexcept { return static_cast<Rank>(flags & kRank); }
  bool operator==(const Node&) const noexcept = default;
};
static_assert(sizeof(Node) == 24);

/// What of an operand's elements a slot reads or writes.
enum class Part : uint8_t { Whole, Re, Im };
/// How an output's values meet where it has stride zero. All but None are reserved.
enum class Reduces : uint8_t { None, Sum, Max, Min };

/// One input, number or output of an expression.
struct Slot {
  DType dtype = DType::Float32;  ///< Of the stored elements; of a number, that of its type.
  Rank rank = Rank::Element;
  Part part = Part::Whole;
  Reduces reduces = Reduces::None;
  uint16_t operand = 0;   ///< Which operand, argument or result of the call it is.
  uint16_t flags = 0;     ///< 0.
  NodeId node = kNoNode;  ///< The Load or Number; kNoNode where nothing reads it. Of an output: its value.
  uint32_t reserved = 0;  ///< 0.

  bool operator==(const Slot&) const noexcept = default;
};
static_assert(sizeof(Slot) == 16);

}  // namespace tenon::expr
