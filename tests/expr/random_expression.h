// Seeded random expressions over inputs x, y, m (a mask) and the scalar s, and values to run them on: for
// tests that want expressions no build has seen.
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/primitives.h"

namespace tenon::expr::testing {

/// Two outputs: an expression of about `size` nodes that runs in `type` and one of its
/// parts, from every op and function that does.
inline std::vector<NodeId> random_outputs(Builder& g, uint64_t seed, Type type, int size = 12) {
  std::mt19937_64 rng(seed);
  const auto below = [&rng](size_t n) { return static_cast<size_t>(rng() % n); };
  std::vector<NodeId> pool = {g.symbol("x"), g.symbol("y"), g.symbol("m", SymbolKind::MaskTensor),
                              g.symbol("s", SymbolKind::Scalar)};
  pool.push_back(is_floating(type) ? g.literal(0.1 + static_cast<double>(below(40)) / 10)
                                   : g.literal(static_cast<int>(below(9))));
  // Functions are many, and each hides what its operands are: every other time it is an operation, dealt in
  // turn, so that a few seeds have them all.
  std::vector<Primitive> all, operations;
  for (const Primitive& p : primitives()) {
    if (p.type != type) continue;
    // Short forms are right to the last place of float32 alone.
    if (p.op == Op::Call && functions()[p.function].internal) continue;
    all.push_back(p);
    if (p.op != Op::Call) operations.push_back(p);
  }
  for (int i = 0; i < size; ++i) {
    const size_t turn = (seed * static_cast<size_t>(size) + static_cast<size_t>(i)) / 2;
    const Primitive& p = i % 2 == 0 ? operations[turn % operations.size()] : all[below(all.size())];
    const size_t arity = p.op == Op::Call ? functions()[p.function].arity : info(p.op).arity;
    NodeId args[3];
    for (size_t a = 0; a < arity; ++a) {
      // Recent nodes are likelier operands, so that the expression gets deep.
      const NodeId operand = pool[pool.size() - 1 - below(std::min<size_t>(pool.size(), 6))];
      const bool bitwise = info(p.op).rule == TypeRule::Bitwise;
      args[a] = p.on_masks ? g.as_mask(operand) : bitwise ? g.as_number(operand) : operand;
    }
    // Which sign a NaN has is not part of the promise, and copysign would show it.
    if (p.op == Op::Call && functions()[p.function].name == "copysign")
      args[1] = g.make(Op::Where, {g.call("isnan", {args[1]}), g.literal(1), args[1]});
    const std::span<const NodeId> list(args, arity);
    pool.push_back(p.op == Op::Call ? g.call(functions()[p.function].name, list) : g.make(p.op, list));
  }
  return {pool.back(), pool[pool.size() - 3]};
}

/// The same as a typed expression.
inline ExpressionPtr random_typed(Builder& g, const std::vector<NodeId>& outputs, Type type) {
  return instantiate(*g.finish(outputs), {.compute = type});
}

/// A number as kernels take it.
template <class T>
uint64_t as_number(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// Signs and payloads of NaN are not part of the promise.
template <class T>
bool same_bits(T a, T b) {
  return (a != a && b != b) || std::bit_cast<BitsOf<T>>(a) == std::bit_cast<BitsOf<T>>(b);
}

/// Mostly numbers in [-3, 3], some of every other kind.
template <class T>
std::vector<T> random_values(size_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> values(n);
  for (T& v : values) {
    if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      constexpr T kSpecial[] = {0, T(-0.0), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                1, -1,      Limits::max(),      Limits::denorm_min()};
      const T uniform = static_cast<T>(static_cast<double>(rng() >> 11) * 0x1p-53);
      v = rng() % 8 == 0   ? kSpecial[rng() % std::size(kSpecial)]
          : rng() % 8 == 0 ? std::bit_cast<T>(static_cast<BitsOf<T>>(rng()))
                           : 6 * uniform - 3;
    } else {
      v = rng() % 4 == 0 ? static_cast<T>(rng()) : static_cast<T>(static_cast<int>(rng() % 21) - 10);
    }
  }
  return values;
}

/// The kernels that tests/expr/print_random_kernels.cc has compiled: how many of each type, and their seeds.
inline constexpr int kPrintedPerType = 10;
constexpr uint64_t printed_seed(Type type, int i) {
  return 5000 + 100 * static_cast<uint64_t>(type) + static_cast<uint64_t>(i);
}

}  // namespace tenon::expr::testing
