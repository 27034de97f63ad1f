// An expression compiled for every instruction set. Used by the measurements of this folder.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"

namespace tenon::accuracy {

/// One expression over `x` and `y` in one compute type, as operators run it.
class Kernel {
 public:
  Kernel(std::string_view text, expr::Type type) : program_(compile(text, type)) {}

  /// `n` elements of the compute type.
  void run(cpu::CpuTarget target, const void* x, const void* y, void* out, size_t n) const {
    void* ptrs[] = {out, const_cast<void*>(x), const_cast<void*>(y)};
    program_.run(ptrs, n, nullptr, target);
  }

 private:
  static cpu::Program compile(std::string_view text, expr::Type type) {
    expr::Builder builder;
    const expr::Symbol symbols[] = {{.name = "x"}, {.name = "y"}};
    const expr::NodeId root = parse(builder, text, symbols);
    return cpu::Program(*expr::instantiate(*builder.finish({root}), {.compute = type}));
  }

  cpu::Program program_;
};

/// The same bits, all NaNs being alike.
template <class T>
bool same_bits(T a, T b) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (a != a && b != b);
}

}  // namespace tenon::accuracy
