// What the iterator has from the backend of the host: conversions of elements, programs of expressions.
// A table that the backend fills in as constant data, so that no room below it includes it. Used by
// pointwise calls and by users' kernels through cpu_kernel. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tenon/core/dtype.h"

namespace tenon {

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

/// An expression that the interpreter runs.
class HostProgram {
 public:
  virtual ~HostProgram() = default;
  /// As HostKernel's call.
  virtual void run(void* const* ptrs, size_t n, const void* numbers) const = 0;
};

/// What the host runs a typed expression with: a kernel that the build printed, or a program. The call goes
/// to a printed kernel directly.
struct HostKernel {
  using Function = void (*)(void* const* ptrs, size_t n, const void* numbers);
  Function compiled = nullptr;
  std::unique_ptr<const HostProgram> program = nullptr;  ///< Where `compiled` is null.

  /// `ptrs`: outputs, then inputs, each `n` contiguous elements of their slot's dtype; `numbers`: 8 bytes
  /// each. Safe to call from many threads at once.
  void operator()(void* const* ptrs, size_t n, const void* numbers) const {
    if (compiled)
      compiled(ptrs, n, numbers);
    else
      program->run(ptrs, n, numbers);
  }
};

struct HostBackend {
  /// As backends/cpu/copy/convert.h says; null where there is no conversion.
  ConvertFn (*convert)(DType from, DType to) noexcept;
  /// The kernel that the build printed for a written expression in one compute type, by expr::in_type; null
  /// where it printed none.
  HostKernel::Function (*find)(const expr::Key& key);
  /// Compiles a typed expression.
  std::unique_ptr<const HostProgram> (*compile)(const expr::Expression& e);
  /// "AVX2": the instruction set that runs.
  std::string_view (*target)();
};
/// Defined by the backend, backends/cpu/host.cc.
extern const HostBackend kHost;

}  // namespace tenon
