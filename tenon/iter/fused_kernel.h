// FusedKernel: a typed expression, run over tensors of any geometry: several outputs, mixed dtypes, up to 64
// slots. What several recorded operators become (tenon/expr/join.h); an expression of one operator gives that
// operator's bits. Flat expressions are computed element by element, those over rows a row at a time. Used by
// plans of recorded calls. Knows no operators.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tenon/core/tensor.h"
#include "tenon/expr/expression.h"
#include "tenon/iter/host.h"
#include "tenon/iter/loop_geometry.h"

namespace tenon {

namespace detail {
class RowsLoop;
}

/// Safe to run from many threads at once.
class FusedKernel {
 public:
  /// A flat expression.
  explicit FusedKernel(expr::ExpressionPtr expression, std::string name = "region",
                       const HostProgramOptions& options = {});
  /// An expression over rows, which are made of the dimensions of the loop that have 1 in `over`.
  FusedKernel(expr::ExpressionPtr expression, const Dims& over, std::string name = "region");
  ~FusedKernel();
  FusedKernel(const FusedKernel&) = delete;

  const expr::Expression& expression() const noexcept { return *expression_; }
  /// For reports.
  const char* name() const noexcept { return name_; }
  /// How many operands the output (input) slots have: both parts of a complex one are slots of one.
  size_t num_outputs() const noexcept { return num_outputs_; }
  size_t num_inputs() const noexcept { return num_inputs_; }

  /// Stores the outputs, by operand; `numbers` are by slot, 8 bytes each. Outputs of elements all have one
  /// shape, to which the inputs are broadcast; values of rows are as large as the rows' dimensions, with or
  /// without those of `over`, of size 1. An output of elements may be the very same view as an input;
  /// otherwise outputs share no memory with inputs or each other. From several threads where an operator uses
  /// them.
  void run(std::span<const Tensor> outputs, std::span<const Tensor> inputs, const uint64_t* numbers) const;

  // What loops over it use.

  bool is_over_rows() const noexcept { return over_rows_; }
  const Dims& over() const noexcept { return over_; }
  const HostKernel& kernel() const noexcept { return kernel_; }
  std::atomic<void*>& made() const noexcept { return made_; }

 private:
  expr::ExpressionPtr expression_;
  const char* name_;  // lasting_text
  size_t num_outputs_ = 0, num_inputs_ = 0;
  HostKernel kernel_;  // of a flat expression
  bool over_rows_ = false;
  Dims over_;
  mutable std::atomic<void*> made_{nullptr};  // of one over rows: see HostBackend::prepare_rows
};

/// A region over operands of known geometry: what does not change from one run to the next is decided once.
/// Immutable; the region must outlive it.
class FusedLoop : detail::LoopGeometry {
 public:
  /// Throws Error{Shape} where the operands do not fit each other, Error{Type} for another dtype than the
  /// slot's. `streams`: whether results go past the caches, where they can; by default those that would not
  /// stay there.
  FusedLoop(const FusedKernel& region, std::span<const FusedOperand> outputs,
            std::span<const FusedOperand> inputs, std::optional<bool> streams = {});
  ~FusedLoop();

  /// `addresses` are those of the operands' elements at index [0, ..., 0]: outputs, then inputs.
  void run(char* const* addresses, const uint64_t* numbers) const;
  /// Of the loop.
  int64_t numel() const noexcept { return numel_; }
  bool can_stream() const noexcept { return can_stream_; }
  bool streams() const noexcept { return streams_; }

 private:
  void choose_tile(std::optional<bool> streams);
  void run_range(char* const* bases, const uint64_t* numbers, int64_t begin, int64_t end) const;
  void run_block(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const;
  void long_rows(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const;
  void short_rows(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const;
  void run_streaming(char* const* bases, const uint64_t* numbers) const;

  const FusedKernel& region_;
  const HostKernel& kernel_;
  std::unique_ptr<const detail::RowsLoop> rows_;  // in place of what follows
  size_t num_output_slots_;
  SmallVector<ConvertFn, 8> copies_;  // by slot: to and from tiles
  int64_t tile_ = 0;                  // elements
  bool can_stream_ = false, streams_ = false;
  bool is_direct_ = false;  // one piece of contiguous elements: the kernel takes the operands
  bool turns_ = false;      // an operand is transposed to the loop
};

}  // namespace tenon
