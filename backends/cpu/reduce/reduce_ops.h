// The scalar form of each reduction's operation; its bits are those of the vector form in
// reduce_kernels-inl.h. Used by the files of this folder.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/reduce/reduce.h"

namespace tenon::cpu::detail {

/// `earlier` op `later`.
template <class T>
inline T combine(ReduceOp op, T earlier, T later) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    // Products are taken in 64 bits: a narrow unsigned type would promote to int, which may overflow.
    switch (op) {
      case ReduceOp::Sum:
        return static_cast<T>(static_cast<U>(earlier) + static_cast<U>(later));
      case ReduceOp::Prod:
        return static_cast<T>(static_cast<uint64_t>(earlier) * static_cast<uint64_t>(later));
      case ReduceOp::Max:
        return earlier > later ? earlier : later;
      case ReduceOp::Min:
        return earlier < later ? earlier : later;
    }
  } else {
    switch (op) {
      case ReduceOp::Sum:
        return earlier + later;
      case ReduceOp::Prod:
        return earlier * later;
      case ReduceOp::Max:
      case ReduceOp::Min: {
        if (std::isnan(earlier) || std::isnan(later)) return std::numeric_limits<T>::quiet_NaN();
        const bool max = op == ReduceOp::Max;
        if (earlier == later) return std::signbit(earlier) == max ? later : earlier;  // zeros of either sign
        return (earlier > later) == max ? earlier : later;
      }
    }
  }
  return later;
}

template <class T>
inline T identity(ReduceOp op) {
  constexpr bool kBool = std::is_same_v<T, uint8_t>;
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::Sum:
      return T(0);
    case ReduceOp::Prod:
      return T(1);
    case ReduceOp::Max:
      return kBool ? T(0) : Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceOp::Min:
      return kBool ? T(1) : Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return T(0);
}

}  // namespace tenon::cpu::detail
