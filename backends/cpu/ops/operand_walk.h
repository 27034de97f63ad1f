// OperandWalk: a tensor as a plain reduction walks it, with no passes over blocks. Used by reduce.cc and
// arg_extremum.cc. Knows addresses, strides and dtypes; of expressions no more than compute types.
#pragma once

#include "backends/cpu/ops/strided.h"
#include "backends/cpu/reduce/reduce.h"
#include "tenon/expr/type.h"

namespace tenon::cpu {

struct OperandWalk {
  const char* name = "";  ///< Of the operator, for reports and errors.
  const char* base = nullptr;
  DType dtype = DType::Float32;  ///< As stored.
  StridedDims kept, reduced;     ///< What results differ in, and a result's elements, in logical order.

  int64_t item() const noexcept { return static_cast<int64_t>(item_size(dtype)); }
};

/// bool reduces as bytes of 0 and 1.
template <class T>
inline constexpr DType kElement = std::is_same_v<T, uint8_t> ? DType::Bool : dtype_of<T>;

/// Where results go, one after the other in logical order.
struct WalkResults {
  char* data;
  DType dtype;
  int64_t item;

  template <class T>
  void store(const T* values, int64_t n) const {
    convert_fn(kElement<T>, dtype)(data, {item, 0}, values, {sizeof(T), 0}, n, 1);
  }
};

/// The places of the largest or smallest elements, and these themselves unless `elements` is null.
void find_extrema(const OperandWalk& walk, ReduceOp op, expr::Type type, const WalkResults* elements,
                  const WalkResults& places);

}  // namespace tenon::cpu
