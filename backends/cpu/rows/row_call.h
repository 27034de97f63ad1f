// RowCall: what all threads of one row call read: its loop, and how much of it goes at a time.
// Used by run_rows.cc and row_worker.h. Independent of passes and kernels.
#pragma once

#include <vector>

#include "backends/cpu/rows/row_geometry.h"
#include "tenon/expr/passes.h"
#include "tenon/expr/spec.h"

namespace tenon::cpu {

/// Rows whose sums go side by side, where a thread has them.
inline constexpr int64_t kFewRows = 4;
/// Rows that share the work of their row steps, at most.
inline constexpr int64_t kMaxGroup = 64;

/// Whether a slot has one value for each row.
inline bool is_row(const expr::Slot& s) { return !varies_along(s.rank); }

struct RowCall {
  /// Operands that have no address yet are taken for aligned.
  explicit RowCall(const RowsLaunch& launch);
  /// Operands whose elements kernels take one at a time, repeated, where they are the same along a run.
  void repeat(const std::vector<bool>& repeatable);
  /// Makes panels of 64 lanes and more read and write their operands in place, `rounds` times, where the
  /// lanes of a place are side by side in all of them. Returns whether they are. Operands that all lanes
  /// share are repeated, if kernels take that. The width depends on sizes and on how many threads there are;
  /// no bit does.
  bool go_by_places(const std::vector<bool>& repeatable, int rounds);

  const RowsOperand& operand(size_t i) const {
    return i < launch.inputs.size() ? launch.inputs[i] : launch.outputs[i - launch.inputs.size()];
  }
  size_t operands() const { return held.size(); }
  /// Whether an operand has one value for each row.
  bool is_of_rows(size_t i) const {
    return is_row(i < e.num_inputs ? e.inputs()[i] : e.outputs()[i - e.num_inputs]);
  }
  int64_t item(size_t i) const { return static_cast<int64_t>(item_size(held[i])); }
  bool across() const { return form == expr::RowForm::Across; }

  /// Whether operands that are read or written in place are aligned at these addresses; of panels, all.
  bool is_aligned(char* const* data) const {
    for (size_t i = 0; i < operands(); ++i) {
      if ((direct[i] || by_places) &&
          reinterpret_cast<uintptr_t>(data[i]) % static_cast<uintptr_t>(item(i)) != 0)
        return false;
    }
    return true;
  }

  /// Pieces of work that may go on different threads: groups of rows, or panels.
  int64_t panels() const { return (geometry.lanes + panel - 1) / panel; }
  int64_t units() const { return across() ? rows * panels() : (rows + group - 1) / group; }
  /// Elements of one.
  int64_t unit_elements() const { return std::max<int64_t>(1, length * (across() ? panel : group)); }

  const RowsLaunch& launch;
  const expr::Expression& e;
  RowGeometry geometry;
  int64_t length = 1;  ///< Of a row.
  int64_t rows = 1;    ///< Or panels of all lanes, where lanes are split off.
  expr::RowForm form = expr::RowForm::Along;
  int64_t panel = 1;            ///< Lanes at a time.
  int64_t group = 1;            ///< Rows at a time, along.
  bool by_places = false;       ///< Of panels: kernels take one place at a time.
  bool whole = true;            ///< A row's packed operands stay in memory from pass to pass.
  SmallVector<DType, 8> held;   ///< By operand: what its slot is.
  SmallVector<bool, 8> direct;  ///< Its elements are read or written in place.
  SmallVector<bool, 8> same;    ///< Along, all rows have the same elements in it, as in a norm's weights.
  /// A direct output that goes past the caches, unless it shares memory with an input; empty where none does.
  SmallVector<bool, 8> streamed;
  SmallVector<bool, 8> broken;  ///< In runs of the innermost dimension.
  /// In such runs it is one element, which is not spread over memory: the weights of a norm over groups.
  SmallVector<bool, 8> repeated;

 private:
  /// Throws Error{Shape} for more elements than the int64 arithmetic of this struct can count the bytes of.
  void check_countable() const;
  size_t reference() const;
  void choose_form();
  void choose_size();
  void choose_streams();
  bool is_same(size_t i) const;
  bool is_direct(size_t i) const;
};

}  // namespace tenon::cpu
