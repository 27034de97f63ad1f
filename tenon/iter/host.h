// What the host's backend provides to the iterator: conversions of elements, and kernels for expressions. It
// is a table that the backend defines as constant data, so that tenon/iter need not include the backend. Used
// by pointwise calls, and through cpu_kernel by users' kernels. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tenon/core/dtype.h"

namespace tenon {

struct RowsLaunch;

namespace expr {
struct Expression;
struct Key;
}  // namespace expr

/// Strides in bytes of a block of `n1` rows of `n0` elements: `inner` from element to element, `outer` from
/// row to row.
struct BlockStrides {
  int64_t inner = 0;
  int64_t outer = 0;
};

/// Reads n1 x n0 elements at `src` and stores them converted at `dst`; the two do not overlap unless they are
/// the same elements of the same size. Any stride, negative and zero included.
using ConvertFn = void (*)(void* dst, BlockStrides dst_strides, const void* src, BlockStrides src_strides,
                           int64_t n0, int64_t n1);

/// An expression that the interpreter runs, or machine code that was made of it.
class HostProgram {
 public:
  virtual ~HostProgram() = default;
  /// Whether the next call runs machine code; for reports.
  virtual bool is_machine_code() const noexcept = 0;
  /// Takes the same arguments as a HostKernel's call.
  virtual void run(void* const* ptrs, size_t n, const void* numbers) const = 0;
};

/// Runs a typed expression on the host: a kernel that was printed and compiled at build time, or a program
/// for the interpreter. A call goes directly to a printed kernel.
struct HostKernel {
  using Function = void (*)(void* const* ptrs, size_t n, const void* numbers, uint32_t repeated);
  /// The most bytes that a kernel reads of a repeated element: of a complex one, two vectors.
  static constexpr size_t kRepeatedBytes = 128;

  Function compiled = nullptr;
  std::unique_ptr<const HostProgram> program = nullptr;  ///< Where `compiled` is null.

  /// `ptrs`: outputs, then inputs, each `n` contiguous elements of their slot's dtype; `numbers`: 8 bytes
  /// each. `repeated`, for compiled kernels of several inputs alone: bit i is set where pointer i is that of
  /// an input which is one element, kRepeatedBytes full of it. Safe to call from many threads at once.
  void operator()(void* const* ptrs, size_t n, const void* numbers, uint32_t repeated = 0) const {
    if (compiled)
      compiled(ptrs, n, numbers, repeated);
    else
      program->run(ptrs, n, numbers);
  }
};

/// How an expression runs that was not printed, or whose printed kernel is not wanted.
struct HostProgramOptions {
  enum class Kind : uint8_t {
    Any,  ///< Interpreted, until machine code has paid for its making.
    Interpreter,
    MachineCode,  ///< From the first run on; interpreted, where the system lets no memory be executed.
  };
  Kind kind = Kind::Any;
  size_t tile = 0;  ///< Elements that the interpreter computes at once; 0: as it chooses.
  int vectors = 0;  ///< That go through machine code side by side; 0: as its emitter chooses.
};

/// A call over rows of known geometry, ready to run at addresses again and again.
class HostRows {
 public:
  virtual ~HostRows() = default;
  /// `data`: the address of each slot's elements, inputs first; `numbers` by slot, 8 bytes each. Safe to call
  /// from many threads at once.
  virtual void run(char* const* data, const uint64_t* numbers) const = 0;
};

struct HostBackend {
  /// The conversion between two dtypes, as backends/cpu/copy/convert.h defines it; null if there is none.
  ConvertFn (*convert)(DType from, DType to) noexcept;
  /// The kernel that was printed at build time for an expression in one compute type (expr::in_type); null if
  /// there is none.
  HostKernel::Function (*find)(const expr::Key& key);
  /// Compiles a typed expression.
  std::unique_ptr<const HostProgram> (*compile)(const expr::Expression& e, const HostProgramOptions& options);
  /// Whether a program may become machine code; TENON_JIT=0 leaves all to the interpreter.
  bool (*makes_machine_code)() noexcept;
  /// The name of the instruction set in use, such as "AVX2".
  std::string_view (*target)();
  /// Bytes of a call from which its result had better not go through the caches: it would not stay there, and
  /// memory would be read in order to be written.
  size_t (*streams_from)() noexcept;
  /// Runs a kernel with one output that is none of its `count` - 1 inputs, all dense, with elements of `item`
  /// bytes; the results go past the caches.
  void (*run_streaming)(const HostKernel& kernel, void* const* ptrs, size_t count, size_t item, size_t n,
                        const void* numbers);
  /// n pairs of elements of `item` bytes (the parts of complex numbers, 4 or 8 bytes each) to two rows.
  void (*split_pairs)(void* first, void* second, const void* src, size_t n, size_t item);
  /// The reverse.
  void (*join_pairs)(void* dst, const void* first, const void* second, size_t n, size_t item);
  /// Element c of row r at `src` becomes element r of row c at `dst`; rows are strides (in bytes) apart,
  /// their elements, of `item` bytes, are adjacent.
  void (*transpose)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, size_t rows,
                    size_t columns, size_t item);
  /// Decides how an expression over rows runs. The launch has no addresses and no numbers; what it refers to
  /// outlives the result, and what is made of the expression goes to its `made`.
  std::unique_ptr<const HostRows> (*prepare_rows)(const RowsLaunch& launch);
  /// Frees that, where an expression does not live as long as the process.
  void (*free_rows)(void* made);
};
/// Defined by the backend, backends/cpu/host.cc.
extern const HostBackend kHost;

}  // namespace tenon
