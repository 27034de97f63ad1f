// Machine code for typed expressions, made while the process runs: what the tile interpreter takes often
// enough runs without its instructions' calls, with the same bits. Emitted on the calling thread in some 20
// to 130 us. Knows no tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "backends/cpu/cpu_target.h"
#include "tenon/expr/expression.h"

namespace tenon::cpu {

/// Why no code is made of a typed expression for an instruction set: a sentence, or empty where it is.
std::string jit_refusal(const expr::Expression& e, CpuTarget target);
/// Why machine code is possible and yet slower than the interpreter; empty if it pays.
std::string jit_loss(const expr::Expression& e, CpuTarget target);
/// The same of code that adds up some outputs, JitKernel::make_sums.
std::string jit_sum_refusal(const expr::Expression& e, CpuTarget target, uint32_t summed);

/// The code of one expression. Immutable and safe to run from many threads at once.
class JitKernel {
 public:
  /// Null where the system lets no memory be executed. `e` must not be refused. `vectors`: how many go
  /// through the code side by side; 0: as many as find registers for their values.
  static std::unique_ptr<const JitKernel> make(const expr::Expression& e, CpuTarget target, int vectors = 0);
  /// Code that adds up the outputs whose bit `summed` has, float32: each is one float, the sum of at most
  /// kReduceChunk elements, with the bits of backends/cpu/reduce/reduce.h. Others are stored.
  static std::unique_ptr<const JitKernel> make_sums(const expr::Expression& e, CpuTarget target,
                                                    uint32_t summed);
  virtual ~JitKernel() = default;

  /// As Program::run: outputs, then inputs, each `n` contiguous elements of their slot's dtype, of any
  /// alignment; an output may be exactly an input.
  void run(void* const* ptrs, size_t n, const void* numbers) const { function_(ptrs, n, numbers); }

 protected:
  using Function = void (*)(void* const* ptrs, size_t n, const void* numbers);
  Function function_ = nullptr;
};

}  // namespace tenon::cpu
