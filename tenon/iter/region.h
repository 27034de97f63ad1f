// Region: a typed expression over flat elements, run over tensors of any geometry: several outputs, mixed
// dtypes, up to 64 slots. What several recorded operators become (tenon/expr/join.h); an expression of one
// operator gives that operator's bits. Used by plans of recorded calls. Knows no operators.
#pragma once

#include <span>
#include <string_view>

#include "tenon/core/tensor.h"
#include "tenon/expr/expression.h"
#include "tenon/iter/host.h"

namespace tenon {

/// Immutable and safe to run from many threads at once.
class Region {
 public:
  /// Throws Error{NotImplemented} for an expression over rows.
  explicit Region(expr::ExpressionPtr expression);

  const expr::Expression& expression() const noexcept { return *expression_; }
  /// How many operands the output (input) slots have: both parts of a complex one are slots of one.
  size_t num_outputs() const noexcept { return num_outputs_; }
  size_t num_inputs() const noexcept { return num_inputs_; }
  const HostKernel& kernel() const noexcept { return kernel_; }

  /// Stores the outputs, which all have one shape, to which the inputs are broadcast; by operand. `numbers`
  /// are by slot, 8 bytes each. An output may be the very same view as an input; otherwise it shares no
  /// memory with an input or another output. From several threads where a pointwise operator uses them.
  void run(std::span<const Tensor> outputs, std::span<const Tensor> inputs, const uint64_t* numbers) const;

 private:
  expr::ExpressionPtr expression_;
  HostKernel kernel_;
  size_t num_outputs_ = 0, num_inputs_ = 0;
};

/// Where the elements of an operand lie; as in a tensor's header.
struct RegionOperand {
  DType dtype;
  IntArrayRef sizes, strides;
};

/// A region over operands of known geometry: what does not change from one run to the next is decided once.
/// Immutable; the region must outlive it.
class RegionLoop {
 public:
  /// Throws Error{Shape} where the operands do not fit each other, Error{Type} for another dtype than the
  /// slot's.
  RegionLoop(const Region& region, std::span<const RegionOperand> outputs,
             std::span<const RegionOperand> inputs);

  /// `addresses` are those of the operands' elements at index [0, ..., 0]: outputs, then inputs.
  void run(char* const* addresses, const uint64_t* numbers) const;
  int64_t numel() const noexcept { return numel_; }

 private:
  struct SlotPlace {
    uint16_t operand;  // of addresses
    int64_t offset;    // in bytes: of the part, and of dimensions that are walked backwards
    int64_t item;
    ConvertFn copy;
    bool used;  // by the expression
  };

  void add_slots(std::span<const RegionOperand> operands, std::span<const expr::Slot> slots, size_t before);
  void sort_dimensions();
  void reverse_dimensions();
  void merge_dimensions();
  void choose_tile();
  void run_range(char* const* bases, const uint64_t* numbers, int64_t begin, int64_t end) const;
  void run_block(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const;
  void long_rows(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const;
  void short_rows(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const;
  void run_streaming(char* const* bases, const uint64_t* numbers) const;

  int64_t stride(size_t d, size_t slot) const noexcept { return strides_[d * slots_.size() + slot]; }
  int64_t& stride(size_t d, size_t slot) noexcept { return strides_[d * slots_.size() + slot]; }
  bool dense(size_t slot) const noexcept { return stride(0, slot) == slots_[slot].item; }

  const HostKernel& kernel_;
  size_t num_output_slots_;
  int64_t numel_ = 1;
  SmallVector<SlotPlace, 8> slots_;   // outputs first
  Dims shape_;                        // of the loop, innermost first
  SmallVector<int64_t, 24> strides_;  // [dimension][slot], in bytes
  int64_t tile_ = 0;                  // elements
  bool streams_ = false;
};

}  // namespace tenon
