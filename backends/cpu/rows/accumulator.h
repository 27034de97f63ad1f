// Accumulator: one reducer of a row expression while its row, or a panel of rows side by side, goes by.
// Used by run_rows.cc. Knows blocks of elements; nothing of expressions and tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tenon/expr/node.h"

namespace tenon::cpu {

class Accumulator {
 public:
  virtual ~Accumulator() = default;
  /// Forgets what was fed.
  virtual void reset() = 0;
  /// Further places of the row, in order: `places` times as many elements as there are lanes. `mask` is given
  /// to First alone: int32, not zero where it is true.
  virtual void feed(const void* elements, const void* mask, size_t places) = 0;
  /// One value for each lane, in the type of the row value.
  virtual void result(void* values) const = 0;
};

/// The reducer of a kind over elements of a compute type. Any and All take int32 1 and 0 and give the same.
/// With one lane a row lies in order; all give the bits of reduce.h.
std::unique_ptr<Accumulator> make_accumulator(expr::ReduceKind kind, expr::Type type, size_t lanes);

}  // namespace tenon::cpu
