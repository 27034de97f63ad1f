// Accumulator: one reducer of a row expression while its rows, one after another or side by side, go by.
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
  /// Further places of the first `rows` rows, in order: row r's `places` times as many elements as there are
  /// lanes from elements[r] on. `firsts` are the first operands of reducers of two: of First, int32 that is
  /// not zero where true; of ProdRe and ProdIm, the real parts. `last`: no more places come.
  virtual void feed(const void* const* elements, const void* const* firsts, size_t rows, size_t places,
                    bool last) = 0;
  /// In place of `feed`, of sums along rows: the sum of the next chunk of each of the first `rows` rows.
  /// `only`: the rows have no more.
  virtual void feed_chunks(const float* chunks, size_t rows, bool only);
  /// One value for each lane of each of the first `rows` rows, in the type of the row value.
  virtual void result(void* values, size_t rows) const = 0;
};

/// The reducer of a kind over elements of a compute type. Any and All take int32 1 and 0 and give the same.
/// Either up to `rows` rows of one lane, in order, or one row of `lanes`; all give the bits of
/// reduce.h.
std::unique_ptr<Accumulator> make_accumulator(expr::ReduceKind kind, expr::Type type, size_t lanes,
                                              size_t rows);

}  // namespace tenon::cpu
