// A row expression cut into passes over the row: what each reducer needs, what is one value of each row, and
// what is stored, as flat expressions that any consumer of those can run. Used by what runs rows.
#pragma once

#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// How the flat expressions of a pass see what is the same along a row.
enum class RowForm : uint8_t {
  Along,   ///< One row at a time: as numbers of the call.
  Across,  ///< Several rows side by side: as inputs, repeated along the rows by who runs it.
};

/// Where the values of a slot of a flat expression come from, or go to.
struct RowPlace {
  enum class Kind : uint8_t {
    Operand,   ///< Element `index` of the operands of the row expression's input slots.
    Value,     ///< Row value `index`.
    Kept,      ///< What an earlier pass kept of all elements, `index`.
    Position,  ///< The number of the place in the row, int64.
    Number,    ///< Number slot `index` of the row expression.
    Length,    ///< How long a row is, int64.
    Reducer,   ///< The operand of reducer `index` of the pass.
    Output,    ///< Output slot `index` of the row expression.
  };
  Kind kind = Kind::Operand;
  uint16_t index = 0;
  bool operator==(const RowPlace&) const noexcept = default;
};

/// A flat expression, and what its slots are. Nothing is computed where `flat` is null.
struct RowStep {
  ExpressionPtr flat;
  std::vector<RowPlace> inputs, numbers, outputs;
};

/// One reducer of a pass: `from` is an operand or a kept value that is reduced unchanged, or Reducer: what
/// the pass computes for it. Truth is reduced as the numbers 1 and 0: any is their largest, all the smallest.
struct RowReducer {
  ReduceKind kind = ReduceKind::Sum;
  Type type = Type::F32;  ///< Of what is reduced.
  RowPlace from;
  RowPlace first;      ///< Of two operands: where the first one is (of First: a mask, i32 1 and 0).
  uint16_t value = 0;  ///< Which row value it makes.
};

struct RowPass {
  RowStep elements;
  std::vector<RowReducer> reducers;
  RowStep rows;  ///< Over row values and operands that are values of rows: run when the row is reduced.
};

/// Whether all that the pass computes of elements is the operands of float32 sums: then a kernel may add up
/// what it computes, and store nothing.
bool is_summed(const RowPass& pass);

/// What later passes find in memory of the row, rather than compute it again.
enum class Keep : uint8_t {
  Nothing,
  Dear,     ///< What holds a call, a division or a root.
  Reduced,  ///< And what a reducer takes, which is stored for it in any case.
};

/// A row expression as passes. The first has no elements: it makes row values of operands alone. Elements are
/// stored by the last, or, where none of them waits for a row value, by the one that reduces them. What a
/// later pass needs again is kept or computed again.
struct RowPasses {
  std::vector<RowPass> passes;
  std::vector<Type> values;  ///< The row values' types; masks are i32 1 and 0.
  std::vector<Type> kept;
};

/// Cuts a typed row expression. The flat expressions have its dtypes in their slots.
RowPasses cut_passes(const Expression& e, RowForm form, Keep keep);

}  // namespace tenon::expr
