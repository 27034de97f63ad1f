// The tile interpreter: runs any typed expression, known to the build or not, over contiguous blocks, with no
// compiler. Used for user-written pointwise operators, for operators without a compiled kernel and for fused
// regions. Gives the bits of the printed kernel of the same expression on every instruction set. Knows no
// tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/pointwise/kernel.h"
#include "tenon/expr/expression.h"

namespace tenon::cpu {

/// A compiled expression: a list of instructions over registers, each a tile of elements that stays in the L1
/// cache. Immutable and safe to run from many threads at once.
class Program {
 public:
  /// The elements of a tile are a multiple of this: whole vectors on any target.
  static constexpr size_t kGranule = 16;
  static_assert(kGranule * 4 * 2 >= HostKernel::kRepeatedBytes);

  /// Compiles a typed expression: loads and stores of any dtype that converts, values of several types.
  /// `tile`: how many elements are computed at once; 0: as many as stay in the L1 cache. Throws
  /// Error{NotImplemented} for bit patterns of floats, which only definitions have.
  explicit Program(const expr::Expression& e, size_t tile = 0);

  /// As a PointwiseFn over the expression's slots, on the process's CPU target. Scratch memory is per thread
  /// and kept.
  void run(void* const* ptrs, size_t n, const void* numbers) const { run(ptrs, n, numbers, cpu_target()); }
  /// Runs the program on a given target.
  void run(void* const* ptrs, size_t n, const void* numbers, CpuTarget target) const;
  /// `run` in the shape of a callback with a context: `program` is a `const Program*`.
  static void call(const void* program, void* const* ptrs, size_t n, const void* numbers);

  size_t num_outputs() const noexcept { return num_outputs_; }
  size_t num_inputs() const noexcept { return num_inputs_; }
  /// The instructions, one a line: "r2 = mul(in0, r1)".
  std::string to_string() const;

 private:
  /// An operand: an index into the table of pointers that `run` makes for each tile. Registers come first,
  /// then the caller's inputs, then its outputs.
  using Place = uint16_t;

  struct Instruction {
    uint16_t number = 0;  ///< Of the primitive, or of the conversion.
    bool converts = false;
    uint8_t arity = 0;
    Place to = 0;
    Place from[3] = {};
    uint32_t repeated = 0;          ///< What the kernel gets: operands that are the same in all elements.
    const void* context = nullptr;  ///< What the kernel gets as its numbers.
    PointwiseFn kernels[kNumCpuTargets] = {};
  };
  /// A register that holds one value in all elements: a literal's bits, or a number of the call.
  struct Constant {
    Place to = 0;
    bool is_number = false;
    uint8_t item_size = 4;
    uint64_t bits_or_index = 0;
  };
  /// What is stored at the end of a tile: converted, or copied as it is.
  struct Store {
    Place from = 0;
    Place to = 0;
    const void* conversion = nullptr;
  };
  friend class ProgramBuilder;

  static void execute(const std::vector<Instruction>& list, void* const* places, size_t n, CpuTarget target);
  size_t register_bytes() const noexcept;
  void fill_constants(std::byte* registers, const void* numbers) const;

  uint16_t num_inputs_ = 0;
  uint16_t num_outputs_ = 0;
  uint16_t num_registers_ = 0;
  uint8_t register_item_size_ = 4;   // the widest value's
  size_t tile_ = 0;                  // elements of a register
  size_t uniform_elements_ = 0;      // how many a register has of what is the same in all
  std::vector<uint8_t> item_sizes_;  // of the inputs' elements, then the outputs'
  std::vector<Constant> constants_;
  std::vector<Instruction> uniform_;  // over constants only: run once a call
  std::vector<Instruction> body_;     // run once a tile
  std::vector<Store> stores_;         // outputs that no instruction writes in place
};

}  // namespace tenon::cpu
