// PointwiseState: what one pointwise operator has worked out so far. Internal to tenon/iter.
// Made at an operator's first call and never freed; every member is read without a lock.
#pragma once

#include <atomic>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/complex.h"
#include "tenon/iter/pointwise.h"

namespace tenon {
class TensorIterator;
}

namespace tenon::detail {

inline constexpr int kNumComputeTypes = 4;

/// A kernel over contiguous blocks: compiled, or a program of the interpreter.
struct BlockKernel {
  PointwiseBlockFn compiled = nullptr;
  const cpu::Program* program = nullptr;

  void operator()(void* const* ptrs, size_t n, const void* scalars) const {
    if (compiled)
      compiled(ptrs, n, scalars);
    else
      program->run(ptrs, n, scalars);
  }
};

/// The program of an operator for operands of which some are complex. Kept in a list that only grows.
struct ComplexProgram {
  expr::ComputeType type;
  expr::ComplexOperands which;
  cpu::Program program;
  const ComplexProgram* next = nullptr;
};

struct PointwiseState {
  PointwiseBlockFn compiled[kNumComputeTypes] = {};
  std::atomic<const cpu::Program*> programs[kNumComputeTypes] = {};
  std::atomic<const ComplexProgram*> complex_programs{nullptr};
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
const cpu::Program& program_of(const PointwiseInfo& info, expr::ComputeType type);

inline BlockKernel kernel_of(const PointwiseInfo& info, expr::ComputeType type) {
  PointwiseState& state = state_of(info);
  const auto t = static_cast<size_t>(type);
  if (PointwiseBlockFn f = state.compiled[t]) return {f, nullptr};
  const cpu::Program* program = state.programs[t].load(std::memory_order_acquire);
  return {nullptr, program ? program : &program_of(info, type)};
}

/// The program over real and imaginary parts; its type is that of a part. Compiled at the first call with
/// such operands. Throws Error{NotImplemented} for what complex numbers do not have.
const cpu::Program& complex_program_of(const PointwiseInfo& info, expr::ComputeType type,
                                       const expr::ComplexOperands& which);

/// The expression's symbols and root in `g`.
struct ParsedPointwise {
  expr::NodeId root;
  SmallVector<expr::NodeId, PointwiseInfo::kMaxTensors> tensors;
  SmallVector<expr::NodeId, PointwiseInfo::kMaxScalars> scalars;
};
ParsedPointwise parse_pointwise(expr::Graph& g, const PointwiseInfo& info);

/// Tells kernel_report.h what ran: "simd:AVX2", "interpreter:AVX2".
void report_block_kernel(const PointwiseInfo& info, const BlockKernel& kernel);

/// The loop over an iterator's operands in tiles; pointwise_tiles.cc. `result` is the dtype of the operator's
/// result, which an `out` of another one is converted from.
void run_tiles(const TensorIterator& iter, const BlockKernel& kernel, expr::ComputeType type, DType result,
               const void* scalars);

}  // namespace tenon::detail
