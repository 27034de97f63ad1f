// Expression: an immutable DAG of scalar maths over a loop, closed: it lists its inputs, numbers and outputs.
// What printers, the interpreter, launches for devices and fused regions take. Holds no addresses, sizes,
// strides, threads or names: one block of memory, which may be in constant data, a file or a launch.
//
// The same nodes have three levels, each with more rules (spec.h): a written expression has the types of its
// text, a typed one those of a call, and a primitive one no functions but operations alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/expr/key.h"
#include "tenon/expr/node.h"

namespace tenon::expr {

enum class Level : uint8_t { Written, Typed, Primitive };

/// 32 hexadecimal digits.
std::string to_string(const Key& key);

/// The head of the block; slots and nodes follow it. Made by Builder::finish, never copied.
struct Expression {
  Key key;
  Level level = Level::Typed;
  bool relaxed = false;  ///< Rounding to half types between operators was dropped.
  uint16_t num_inputs = 0;
  uint16_t num_numbers = 0;
  uint16_t num_outputs = 0;
  uint32_t num_nodes = 0;
  uint32_t reserved = 0;

  std::span<const Slot> inputs() const noexcept { return {slots(), num_inputs}; }
  std::span<const Slot> numbers() const noexcept { return {slots() + num_inputs, num_numbers}; }
  std::span<const Slot> outputs() const noexcept { return {slots() + num_inputs + num_numbers, num_outputs}; }
  /// In an order in which operands come first.
  std::span<const Node> nodes() const noexcept {
    return {reinterpret_cast<const Node*>(slots() + num_inputs + num_numbers + num_outputs), num_nodes};
  }
  const Node& operator[](NodeId id) const noexcept { return nodes()[id]; }

 private:
  const Slot* slots() const noexcept { return reinterpret_cast<const Slot*>(this + 1); }
};
static_assert(sizeof(Expression) == 32);

/// The same block as constant data: what the build prints.
template <size_t kSlots, size_t kNodes>
struct ExpressionData {
  Expression head;
  Slot slots[kSlots];
  Node nodes[kNodes];
};
static_assert(sizeof(ExpressionData<1, 1>) == sizeof(Expression) + sizeof(Slot) + sizeof(Node));

struct ExpressionDeleter {
  void operator()(const Expression* e) const noexcept;
};
using ExpressionPtr = std::unique_ptr<const Expression, ExpressionDeleter>;

/// Everything that an expression is made of, in vectors.
struct ExpressionParts {
  Level level = Level::Typed;
  bool relaxed = false;
  std::vector<Slot> inputs = {};
  std::vector<Slot> numbers = {};
  std::vector<Slot> outputs = {};
  std::vector<Node> nodes = {};
};

/// One block with these parts as they are, and their key. Checks nothing: `check` does.
ExpressionPtr make_expression(const ExpressionParts& parts);
/// The reverse.
ExpressionParts parts_of(const Expression& e);

/// Whether both are the same, field by field.
bool operator==(const Expression& a, const Expression& b) noexcept;

}  // namespace tenon::expr
