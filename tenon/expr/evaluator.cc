#include "tenon/expr/evaluator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "tenon/core/error.h"
#include "tenon/expr/definition.h"
#include "tenon/expr/pi_reduce.h"
#include "tenon/expr/scalar.h"

namespace tenon::expr {

namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
T value_of(uint64_t bits) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(bits));
}
template <class T>
uint64_t bits_of(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

template <class T>
bool compared(Op op, T x, T y) {
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
    default:
      return x >= y;
  }
}

template <class F>
F of_floats(Op op, F x, F y, F z) {
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
      return x != x || x < y ? x : y;
    case Op::Max:
      return x != x || x > y ? x : y;
    case Op::Floor:
      return std::floor(x);
    case Op::Ceil:
      return std::ceil(x);
    case Op::Trunc:
      return std::trunc(x);
    case Op::Round:
      return std::nearbyint(x);
    default:
      throw_error(ErrorKind::Internal, "evaluate: no operation of floats");
  }
}

template <class I>
I power(I x, I y) {
  using U = std::make_unsigned_t<I>;
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  U result = 1;
  for (int bit = 8 * static_cast<int>(sizeof(I)) - 1; bit >= 0; --bit) {
    result *= result;
    if ((static_cast<U>(y) >> bit & 1) != 0) result *= static_cast<U>(x);
  }
  return static_cast<I>(result);
}

// Wrapping arithmetic is that of the unsigned numbers.
template <class I>
I of_integers(Op op, I x, I y, I z) {
  using U = std::make_unsigned_t<I>;
  const U a = static_cast<U>(x), b = static_cast<U>(y), c = static_cast<U>(z);
  switch (op) {
    case Op::Add:
      return static_cast<I>(a + b);
    case Op::Sub:
      return static_cast<I>(a - b);
    case Op::Mul:
      return static_cast<I>(a * b);
    case Op::Neg:
      return static_cast<I>(0 - a);
    case Op::Abs:
      return x < 0 ? static_cast<I>(0 - a) : x;
    case Op::Fma:
      return static_cast<I>(a * b + c);
    case Op::Min:
      return std::min(x, y);
    case Op::Max:
      return std::max(x, y);
    case Op::TruncDiv:
      return y == 0 ? 0 : y == -1 ? static_cast<I>(0 - a) : x / y;
    case Op::Fmod:
      return y == 0 || y == -1 ? 0 : x % y;
    case Op::IntPow:
      return power(x, y);
    case Op::And:
      return x & y;
    case Op::Or:
      return x | y;
    case Op::Xor:
      return x ^ y;
    case Op::Not:
      return ~x;
    default:
      throw_error(ErrorKind::Internal, "evaluate: no operation of integers");
  }
}

template <class T>
uint64_t operated(const Node& n, uint64_t x, uint64_t y, uint64_t z) {
  const T a = value_of<T>(x), b = value_of<T>(y), c = value_of<T>(z);
  if (info(n.op).rule == TypeRule::Compare) return compared(n.op, a, b);
  if constexpr (std::is_floating_point_v<T>) {
    if (n.op == Op::PiReduce) return bits_of(pi_reduce(a, static_cast<int>(n.bits)));
    return bits_of(of_floats(n.op, a, b, c));
  } else {
    using U = std::make_unsigned_t<T>;
    if (n.op == Op::ShiftLeft) return bits_of(static_cast<T>(static_cast<U>(a) << n.bits));
    if (n.op == Op::ShiftRight) return bits_of(static_cast<T>(a >> n.bits));
    if (n.op == Op::ShiftRightLogical) return bits_of(static_cast<T>(static_cast<U>(a) >> n.bits));
    return bits_of(of_integers(n.op, a, b, c));
  }
}

uint64_t of_masks(Op op, uint64_t x, uint64_t y) {
  switch (op) {
    case Op::And:
      return x & y;
    case Op::Or:
      return x | y;
    case Op::Xor:
      return x ^ y;
    default:
      return x == 0;
  }
}

// Values of all nodes for one element; `input(slot)` gives what a Load gives.
template <class Input>
std::vector<uint64_t> values(const Expression& e, const Input& input, const uint64_t* numbers);

uint64_t called(const Node& n, Type type, const uint64_t* args) {
  const Expression& body = definition(static_cast<uint16_t>(n.bits), type);
  const auto all = values(
      body, [args](uint64_t slot) { return args[slot]; }, nullptr);
  return all[body.outputs()[0].node];
}

uint64_t value(const Expression& e, const Node& n, const uint64_t* args) {
  const Type type = n.arity > 0 ? e[n.args[0]].type : n.type;
  switch (n.op) {
    case Op::Call:
      return called(n, type, args);
    case Op::Where:
      return args[0] != 0 ? args[1] : args[2];
    case Op::Bits:
    case Op::FromBits:
      return args[0];
    case Op::Cast:
      return convert_scalar(args[0], type, n.type);
    case Op::RoundTo:
      return round_scalar(args[0], static_cast<DType>(n.bits));
    default:
      break;
  }
  switch (type) {
    case Type::Mask:
      return of_masks(n.op, args[0], args[1]);
    case Type::F32:
      return operated<float>(n, args[0], args[1], args[2]);
    case Type::F64:
      return operated<double>(n, args[0], args[1], args[2]);
    case Type::I32:
      return operated<int32_t>(n, args[0], args[1], args[2]);
    default:
      return operated<int64_t>(n, args[0], args[1], args[2]);
  }
}

template <class Input>
std::vector<uint64_t> values(const Expression& e, const Input& input, const uint64_t* numbers) {
  std::vector<uint64_t> v(e.num_nodes);
  for (NodeId id = 0; id < e.num_nodes; ++id) {
    const Node& n = e[id];
    uint64_t args[3] = {};
    for (int i = 0; i < n.arity; ++i) args[i] = v[n.args[i]];
    v[id] = n.op == Op::Literal  ? n.bits
            : n.op == Op::Load   ? input(n.bits)
            : n.op == Op::Number ? numbers[n.bits]
                                 : value(e, n, args);
  }
  return v;
}

// The tree of docs/decisions/0004-reduction-tree.md over a row's values.
template <class Combine>
uint64_t tree(std::span<const uint64_t> x, uint64_t identity, const Combine& combine) {
  constexpr size_t kLanes = 16, kChunk = 1024;
  std::vector<std::pair<size_t, uint64_t>> pending;  // how many chunks, and what they come to
  for (size_t begin = 0; begin < x.size() || begin == 0; begin += kChunk) {
    uint64_t lanes[kLanes];
    std::fill(lanes, lanes + kLanes, identity);
    for (size_t i = begin; i < std::min(begin + kChunk, x.size()); ++i)
      lanes[i % kLanes] = combine(lanes[i % kLanes], x[i]);
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) lanes[l] = combine(lanes[l], lanes[l + half]);
    }
    pending.push_back({1, lanes[0]});
    const bool whole = begin + kChunk <= x.size();
    while (whole && pending.size() > 1 && pending[pending.size() - 2].first == pending.back().first) {
      const auto later = pending.back();
      pending.pop_back();
      pending.back() = {2 * later.first, combine(pending.back().second, later.second)};
    }
  }
  while (pending.size() > 1) {
    const uint64_t later = pending.back().second;
    pending.pop_back();
    pending.back().second = combine(pending.back().second, later);
  }
  return pending[0].second;
}

// A product that the tree makes NaN: zeros first, then the others in order. Lanes of it may overflow or
// vanish where the product of all has a value.
template <class T>
uint64_t product_in_order(std::span<const uint64_t> x) {
  T product = 1;
  for (const bool zeros : {true, false}) {
    for (const uint64_t v : x) {
      if ((value_of<T>(v) == 0) == zeros) product *= value_of<T>(v);
    }
  }
  return bits_of(product);
}

template <class T>
uint64_t tree_of(ReduceKind kind, std::span<const uint64_t> x) {
  const Op op = kind == ReduceKind::Sum    ? Op::Add
                : kind == ReduceKind::Prod ? Op::Mul
                : kind == ReduceKind::Max  ? Op::Max
                                           : Op::Min;
  const T ends[] = {std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                         : std::numeric_limits<T>::lowest(),
                    std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                         : std::numeric_limits<T>::max()};
  const T identity = kind == ReduceKind::Sum    ? T{0}
                     : kind == ReduceKind::Prod ? T{1}
                                                : ends[kind == ReduceKind::Min];
  const uint64_t value = tree(x, bits_of(identity), [op](uint64_t a, uint64_t b) {
    if constexpr (std::is_floating_point_v<T>) {
      // Extrema have no order: 0 is above -0.
      const T v = value_of<T>(a);
      const bool extreme = op == Op::Max || op == Op::Min;
      if (extreme && v == value_of<T>(b)) return std::signbit(v) == (op == Op::Max) ? b : a;
    }
    return operated<T>({.op = op}, a, b, 0);
  });
  if constexpr (std::is_floating_point_v<T>) {
    if (kind == ReduceKind::Prod && std::isnan(value_of<T>(value))) return product_in_order<T>(x);
  }
  return value;
}

template <class T>
uint64_t place_of(ReduceKind kind, std::span<const uint64_t> x) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i) {
    const T a = value_of<T>(x[best]), b = value_of<T>(x[i]);
    if (a != a) break;
    if (b != b || (kind == ReduceKind::ArgMax ? b > a : b < a)) best = i;
  }
  return best;
}

// The part of the product of complex numbers, in order.
template <class T>
uint64_t product_part(ReduceKind kind, std::span<const uint64_t> re, std::span<const uint64_t> im) {
  T a = 1, b = 0;
  for (size_t i = 0; i < re.size(); ++i) {
    const T c = value_of<T>(re[i]), d = value_of<T>(im[i]), next = a * c - b * d;
    b = a * d + b * c;
    a = next;
  }
  return bits_of(kind == ReduceKind::ProdRe ? a : b);
}

uint64_t reduced(const Node& n, Type type, std::span<const uint64_t> mask, std::span<const uint64_t> x) {
  const auto kind = static_cast<ReduceKind>(n.bits);
  const auto truth = [](uint64_t v) { return v != 0; };
  const auto of_type = [&](auto&& f) {
    return type == Type::F32   ? f(float{})
           : type == Type::F64 ? f(double{})
           : type == Type::I32 ? f(int32_t{})
                               : f(int64_t{});
  };
  switch (kind) {
    case ReduceKind::Any:
      return std::any_of(x.begin(), x.end(), truth);
    case ReduceKind::All:
      return std::all_of(x.begin(), x.end(), truth);
    case ReduceKind::First: {
      const auto at = std::find_if(mask.begin(), mask.end(), truth);
      return at == mask.end() ? 0 : x[static_cast<size_t>(at - mask.begin())];
    }
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
      return of_type([&](auto zero) { return place_of<decltype(zero)>(kind, x); });
    case ReduceKind::ProdRe:
    case ReduceKind::ProdIm:
      return type == Type::F32 ? product_part<float>(kind, mask, x) : product_part<double>(kind, mask, x);
    default:
      return of_type([&](auto zero) { return tree_of<decltype(zero)>(kind, x); });
  }
}

}  // namespace

void evaluate_row(const Expression& e, size_t length, const void* const* inputs, const uint64_t* numbers,
                  void* const* outputs) {
  // Of each node its values by place; one where it is the same along the row.
  std::vector<std::vector<uint64_t>> all(e.num_nodes);
  const auto at = [&](NodeId id, size_t place) { return all[id][varies_along(e[id].rank()) ? place : 0]; };
  for (NodeId id = 0; id < e.num_nodes; ++id) {
    const Node& n = e[id];
    all[id].resize(varies_along(n.rank()) ? length : 1);
    if (n.op == Op::Reduce) {
      std::vector<uint64_t> operands[2];
      for (int k = 0; k < n.arity; ++k) {
        for (size_t i = 0; i < length; ++i) operands[k].push_back(at(n.args[k], i));
      }
      all[id][0] = reduced(n, e[n.args[n.arity - 1]].type, operands[0], operands[n.arity - 1]);
      continue;
    }
    for (size_t i = 0; i < all[id].size(); ++i) {
      uint64_t args[3] = {};
      for (int k = 0; k < n.arity; ++k) args[k] = at(n.args[k], i);
      const DType d = n.op == Op::Load ? e.inputs()[n.bits].dtype : DType::Int64;
      all[id][i] = n.op == Op::Literal ? n.bits
                   : n.op == Op::Load
                       ? load_scalar(static_cast<const char*>(inputs[n.bits]) + i * item_size(d), d)
                   : n.op == Op::Number ? numbers[n.bits]
                   : n.op == Op::Length ? length
                   : n.op == Op::Iota   ? i
                                        : value(e, n, args);
    }
  }
  for (size_t k = 0; k < e.num_outputs; ++k) {
    const Slot& s = e.outputs()[k];
    for (size_t i = 0; i < all[s.node].size(); ++i)
      store_scalar(static_cast<char*>(outputs[k]) + i * item_size(s.dtype), s.dtype, all[s.node][i]);
  }
}

void evaluate(const Expression& e, const void* const* inputs, const uint64_t* numbers, void* const* outputs) {
  const auto load = [&](uint64_t slot) { return load_scalar(inputs[slot], e.inputs()[slot].dtype); };
  const std::vector<uint64_t> v = values(e, load, numbers);
  for (size_t i = 0; i < e.num_outputs; ++i)
    store_scalar(outputs[i], e.outputs()[i].dtype, v[e.outputs()[i].node]);
}

}  // namespace tenon::expr
