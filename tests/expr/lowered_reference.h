// A scalar interpreter of lowered expressions, one element at a time, with plain C++ arithmetic in the type
// itself. What the SIMD kernels and the tile interpreter must give bit for bit; shares only the lowering with
// them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "backends/cpu/pointwise/pi_reduce.h"
#include "tenon/expr/function.h"
#include "tenon/expr/lower.h"
#include "tests/expr/random_expression.h"

namespace tenon::expr::testing {

template <class T>
class LoweredReference {
  using U = BitsOf<T>;
  using I = std::make_signed_t<U>;

 public:
  /// Outputs as T; masks as 1 and 0.
  std::vector<T> run(const Lowered& e, const std::vector<T>& inputs, const std::vector<T>& scalars) {
    std::vector<U> v(e.nodes.size());
    for (size_t id = 0; id < e.nodes.size(); ++id) v[id] = value(e, e.nodes[id], v, inputs, scalars);
    std::vector<T> out;
    for (uint32_t id : e.outputs) {
      out.push_back(e.nodes[id].lane == Lane::Mask ? static_cast<T>(v[id]) : std::bit_cast<T>(v[id]));
    }
    return out;
  }

 private:
  U value(const Lowered& e, const LoweredNode& n, const std::vector<U>& v, const std::vector<T>& inputs,
          const std::vector<T>& scalars) {
    const U x = n.arity > 0 ? v[n.args[0]] : 0, y = n.arity > 1 ? v[n.args[1]] : 0,
            z = n.arity > 2 ? v[n.args[2]] : 0;
    switch (n.op) {
      case Op::Literal:
        return static_cast<U>(n.bits);
      case Op::Symbol:
        return std::bit_cast<U>(n.scalar ? scalars[n.bits] : inputs[n.bits]);
      case Op::Call:
        return call(n, e.type, x, y, z);
      case Op::Where:
        return x != 0 ? y : z;
      case Op::And:
        return x & y;
      case Op::Or:
        return x | y;
      case Op::Xor:
        return x ^ y;
      case Op::Not:
        return n.lane == Lane::Mask ? static_cast<U>(x == 0) : static_cast<U>(~x);
      case Op::Bits:
      case Op::FromBits:
        return x;
      case Op::ShiftLeft:
        return static_cast<U>(x << n.bits);
      case Op::ShiftRight:
        return static_cast<U>(static_cast<I>(x) >> n.bits);
      case Op::ShiftRightLogical:
        return x >> n.bits;
      case Op::PiReduce:
        return pi_reduce(std::bit_cast<T>(x), n.bits);
      default:
        break;
    }
    const bool bits = e.nodes[n.args[0]].lane == Lane::Bits;
    if (bits) return arithmetic<I>(n.op, std::bit_cast<I>(x), std::bit_cast<I>(y), std::bit_cast<I>(z));
    return arithmetic<T>(n.op, std::bit_cast<T>(x), std::bit_cast<T>(y), std::bit_cast<T>(z));
  }

  U call(const LoweredNode& n, ComputeType type, U x, U y, U z) {
    auto found = bodies_.find(n.function);
    if (found == bodies_.end()) found = bodies_.emplace(n.function, lower_function(n.function, type)).first;
    const std::vector<T> args = {std::bit_cast<T>(x), std::bit_cast<T>(y), std::bit_cast<T>(z)};
    const T result = run(found->second, args, {})[0];
    return functions()[n.function].mask ? static_cast<U>(result != 0) : std::bit_cast<U>(result);
  }

  static U pi_reduce(T x, uint64_t part) {
    if constexpr (std::is_floating_point_v<T>)
      return std::bit_cast<U>(static_cast<T>(cpu::pi_reduce(x, int(part))));
    else
      std::abort();
  }

  template <class A>
  static U arithmetic(Op op, A x, A y, A z) {
    switch (op) {
      case Op::Eq:
        return x == y;
      case Op::Ne:
        return x != y;
      case Op::Lt:
        return x < y;
      case Op::Le:
        return x <= y;
      case Op::Gt:
        return x > y;
      case Op::Ge:
        return x >= y;
      default:
        break;
    }
    if constexpr (std::is_floating_point_v<A>)
      return std::bit_cast<U>(of_floats(op, x, y, z));
    else
      return std::bit_cast<U>(of_integers(op, x, y, z));
  }

  template <class F>
  static F of_floats(Op op, F x, F y, F z) {
    switch (op) {
      case Op::Add:
        return x + y;
      case Op::Sub:
        return x - y;
      case Op::Mul:
        return x * y;
      case Op::Div:
        return x / y;
      case Op::Fmod:
        return std::fmod(x, y);
      case Op::Neg:
        return -x;
      case Op::Abs:
        return std::abs(x);
      case Op::Sqrt:
        return std::sqrt(x);
      case Op::Fma:
        return std::fma(x, y, z);
      case Op::Min:
        return std::isnan(x) || x < y ? x : y;
      case Op::Max:
        return std::isnan(x) || x > y ? x : y;
      case Op::Floor:
        return std::floor(x);
      case Op::Ceil:
        return std::ceil(x);
      case Op::Trunc:
        return std::trunc(x);
      case Op::Round:
        return std::nearbyint(x);
      default:
        std::abort();
    }
  }

  template <class A>
  static A of_integers(Op op, A x, A y, A z) {
    using W = std::make_unsigned_t<A>;
    const W a = static_cast<W>(x), b = static_cast<W>(y), c = static_cast<W>(z);
    switch (op) {
      case Op::Add:
        return static_cast<A>(a + b);
      case Op::Sub:
        return static_cast<A>(a - b);
      case Op::Mul:
        return static_cast<A>(a * b);
      case Op::Neg:
        return static_cast<A>(0 - a);
      case Op::Abs:
        return x < 0 ? static_cast<A>(0 - a) : x;
      case Op::Fma:
        return static_cast<A>(a * b + c);
      case Op::Min:
        return std::min(x, y);
      case Op::Max:
        return std::max(x, y);
      case Op::TruncDiv:
        return y == 0 ? 0 : y == -1 ? static_cast<A>(0 - a) : x / y;
      case Op::Fmod:
        return y == 0 || y == -1 ? 0 : x % y;
      case Op::IntPow:
        return int_pow(x, y);
      default:
        std::abort();
    }
  }

  template <class A>
  static A int_pow(A x, A y) {
    using W = std::make_unsigned_t<A>;
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
    W result = 1;
    for (int bit = 8 * sizeof(A) - 1; bit >= 0; --bit) {
      result *= result;
      if ((static_cast<W>(y) >> bit & 1) != 0) result *= static_cast<W>(x);
    }
    return static_cast<A>(result);
  }

  std::map<uint16_t, Lowered> bodies_;
};

}  // namespace tenon::expr::testing
