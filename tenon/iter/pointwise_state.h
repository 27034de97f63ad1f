// PointwiseState: what one pointwise operator has worked out so far. Internal to tenon/iter.
// Made at an operator's first call and never freed; every member is read without a lock.
#pragma once

#include <atomic>

#include "tenon/iter/host.h"
#include "tenon/iter/pointwise.h"

namespace tenon {
class TensorIterator;
}

namespace tenon::detail {

/// A kernel over contiguous blocks: compiled, or a program of the interpreter.
struct BlockKernel {
  PointwiseBlockFn compiled = nullptr;
  const HostProgram* program = nullptr;

  void operator()(void* const* ptrs, size_t n, const void* numbers) const {
    if (compiled)
      compiled(ptrs, n, numbers);
    else
      program->run(ptrs, n, numbers);
  }
};

/// What a call brings that decides which expression runs, packed: the compute type, the dtypes of operands
/// and of what is computed, which numbers are complex. Two calls with equal bindings run the same instance.
struct Binding {
  expr::Type type;
  DType inputs[PointwiseInfo::kMaxTensors];
  DType computed;
  uint32_t complex_numbers = 0;

  uint64_t packed(size_t num_inputs) const noexcept {
    uint64_t bits = static_cast<uint64_t>(compute_index(type)) | static_cast<uint64_t>(computed) << 2;
    for (size_t i = 0; i < num_inputs; ++i) bits |= static_cast<uint64_t>(inputs[i]) << (8 + 6 * i);
    return bits | static_cast<uint64_t>(complex_numbers) << 56;
  }
};
static_assert(kNumDTypes <= 64 && PointwiseInfo::kMaxTensors <= 8 && PointwiseInfo::kMaxScalars <= 8);

/// An operator's typed expression for calls of one binding, and its program. Slots are dense in the compute
/// type. Kept in a list that only grows.
struct Instance {
  uint64_t binding;
  expr::ExpressionPtr expression;
  std::unique_ptr<const HostProgram> program;
  const Instance* next = nullptr;
};

/// Most numbers of an instance: each with two parts, or in two types.
inline constexpr size_t kMaxNumbers = 2 * PointwiseInfo::kMaxScalars;

struct PointwiseState {
  PointwiseBlockFn compiled[expr::kNumComputeTypes] = {};
  std::atomic<const HostProgram*> programs[expr::kNumComputeTypes] = {};
  std::atomic<const Instance*> instances{nullptr};
  /// Points to `kNoDerivative` where the derivative is zero, null where nobody asked yet.
  std::atomic<const PointwiseDerivative*> derivatives[PointwiseInfo::kMaxTensors] = {};
};

extern const PointwiseDerivative kNoDerivative;

/// Makes the state at the first call.
PointwiseState& make_state(const PointwiseInfo& info);
inline PointwiseState& state_of(const PointwiseInfo& info) {
  PointwiseState* state = info.state.load(std::memory_order_acquire);
  if (!state) [[unlikely]]
    return make_state(info);
  return *state;
}

/// Compiles the expression for the interpreter at the first call. Throws Error{Type} when it cannot run in
/// `type`.
const HostProgram& program_of(const PointwiseInfo& info, expr::Type type);

inline BlockKernel kernel_of(const PointwiseInfo& info, expr::Type type) {
  PointwiseState& state = state_of(info);
  const auto t = static_cast<size_t>(compute_index(type));
  if (PointwiseBlockFn f = state.compiled[t]) return {f, nullptr};
  const HostProgram* program = state.programs[t].load(std::memory_order_acquire);
  return {nullptr, program ? program : &program_of(info, type)};
}

/// The instance for calls of one binding: over real and imaginary parts where operands are complex, rounding
/// where the text says stored(x). Made at the first such call. Throws Error{NotImplemented} for what complex
/// numbers do not have.
const Instance& instance_of(const PointwiseInfo& info, const Binding& binding);

/// The expression's symbols and root in `g`.
struct ParsedPointwise {
  expr::NodeId root;
  SmallVector<expr::NodeId, PointwiseInfo::kMaxTensors> tensors;
  SmallVector<expr::NodeId, PointwiseInfo::kMaxScalars> scalars;
};
ParsedPointwise parse_pointwise(expr::Builder& g, const PointwiseInfo& info);

/// Sets what follows from the expression: numbers_as_computed, asks_dtypes.
void set_what_it_asks(PointwiseInfo& info, const expr::Expression& written);

/// Tells kernel_report.h what ran: "simd:AVX2", "interpreter:AVX2".
void report_block_kernel(const PointwiseInfo& info, const BlockKernel& kernel);

/// The loop over an iterator's operands in tiles; pointwise_tiles.cc. `result` is the dtype of the operator's
/// result, which an `out` of another one is converted from.
void run_tiles(const TensorIterator& iter, const BlockKernel& kernel, expr::Type type, DType result,
               const void* scalars);

}  // namespace tenon::detail
