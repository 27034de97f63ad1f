// What each operation of a program computes: the definition of all of them. Used by program.h, block by
// block, and by plug-ins that have values of their own. Values are bits, as scalar.h has them.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "tenon/abi/scalar.h"

namespace tenon::abi {

/// The operations that are known here, as `ops_used` has them.
inline constexpr uint64_t kKnownOps = ((uint64_t{1} << (TENON_OP_ROUND_TO + 1)) - 1) & ~uint64_t{0x18};

/// One operation on `count` values of each operand.
struct Operation {
  const TenonNode& node;
  TenonType type;           ///< Of the operands; of TENON_OP_WHERE it is not looked at.
  const uint64_t* args[3];  ///< Null after the last operand.
  uint64_t* result;         ///< May be one of the operands.
  size_t count;
};

namespace detail {

template <class T>
T value_of(uint64_t bits) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return defined::tenon_same_bits<T>(static_cast<Bits>(bits));
}
template <class T>
uint64_t bits_of(T value) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if constexpr (std::is_same_v<T, bool>)
    return value;
  else
    return defined::tenon_same_bits<Bits>(value);
}

[[noreturn]] inline void unknown(TenonOp op) {
  throw std::logic_error("tenon: a program has operation " + std::to_string(op) +
                         ", which is not known here");
}

// f of all values, which are of type T.
template <class T, class F>
void each1(const Operation& o, F f) {
  for (size_t i = 0; i < o.count; ++i) o.result[i] = bits_of(f(value_of<T>(o.args[0][i])));
}
template <class T, class F>
void each2(const Operation& o, F f) {
  for (size_t i = 0; i < o.count; ++i)
    o.result[i] = bits_of(f(value_of<T>(o.args[0][i]), value_of<T>(o.args[1][i])));
}
template <class T, class F>
void each3(const Operation& o, F f) {
  for (size_t i = 0; i < o.count; ++i)
    o.result[i] = bits_of(f(value_of<T>(o.args[0][i]), value_of<T>(o.args[1][i]), value_of<T>(o.args[2][i])));
}

template <class T>
bool compare(const Operation& o) {
  switch (o.node.op) {
    case TENON_OP_EQ:
      return each2<T>(o, [](T x, T y) { return x == y; }), true;
    case TENON_OP_NE:
      return each2<T>(o, [](T x, T y) { return x != y; }), true;
    case TENON_OP_LT:
      return each2<T>(o, [](T x, T y) { return x < y; }), true;
    case TENON_OP_LE:
      return each2<T>(o, [](T x, T y) { return x <= y; }), true;
    case TENON_OP_GT:
      return each2<T>(o, [](T x, T y) { return x > y; }), true;
    case TENON_OP_GE:
      return each2<T>(o, [](T x, T y) { return x >= y; }), true;
    default:
      return false;
  }
}

inline float fmod_of(float x, float y) { return defined::tenon_fmod_f32(x, y); }
inline double fmod_of(double x, double y) { return defined::tenon_fmod_f64(x, y); }
inline float pi_reduced(float x, int32_t part) { return defined::tenon_pi_reduce_f32(x, part); }
inline double pi_reduced(double x, int32_t part) { return defined::tenon_pi_reduce_f64(x, part); }

template <class F>
void of_floats(const Operation& o) {
  if (compare<F>(o)) return;
  switch (o.node.op) {
    case TENON_OP_ADD:
      return each2<F>(o, [](F x, F y) { return x + y; });
    case TENON_OP_SUB:
      return each2<F>(o, [](F x, F y) { return x - y; });
    case TENON_OP_MUL:
      return each2<F>(o, [](F x, F y) { return x * y; });
    case TENON_OP_DIV:
      return each2<F>(o, [](F x, F y) { return x / y; });
    case TENON_OP_FMOD:
      return each2<F>(o, [](F x, F y) { return fmod_of(x, y); });
    case TENON_OP_NEG:
      return each1<F>(o, [](F x) { return -x; });
    case TENON_OP_ABS:
      return each1<F>(o, [](F x) { return std::fabs(x); });
    case TENON_OP_SQRT:
      return each1<F>(o, [](F x) { return std::sqrt(x); });
    case TENON_OP_FMA:
      return each3<F>(o, [](F x, F y, F z) { return std::fma(x, y, z); });
    case TENON_OP_MIN:
      return each2<F>(o, [](F x, F y) { return x != x || x < y ? x : y; });
    case TENON_OP_MAX:
      return each2<F>(o, [](F x, F y) { return x != x || x > y ? x : y; });
    case TENON_OP_FLOOR:
      return each1<F>(o, [](F x) { return std::floor(x); });
    case TENON_OP_CEIL:
      return each1<F>(o, [](F x) { return std::ceil(x); });
    case TENON_OP_TRUNC:
      return each1<F>(o, [](F x) { return std::trunc(x); });
    case TENON_OP_ROUND:
      return each1<F>(o, [](F x) { return std::nearbyint(x); });
    case TENON_OP_PI_REDUCE:
      return each1<F>(o, [part = static_cast<int32_t>(o.node.bits)](F x) { return pi_reduced(x, part); });
    default:
      unknown(o.node.op);
  }
}

// Wrapping arithmetic is that of the unsigned numbers.
template <class I>
void of_integers(const Operation& o) {
  using namespace defined;
  using U = std::make_unsigned_t<I>;
  if (compare<I>(o)) return;
  const uint64_t places = o.node.bits;
  switch (o.node.op) {
    case TENON_OP_ADD:
      return each2<U>(o, [](U x, U y) { return x + y; });
    case TENON_OP_SUB:
      return each2<U>(o, [](U x, U y) { return x - y; });
    case TENON_OP_MUL:
      return each2<U>(o, [](U x, U y) { return x * y; });
    case TENON_OP_FMA:
      return each3<U>(o, [](U x, U y, U z) { return x * y + z; });
    case TENON_OP_NEG:
      return each1<U>(o, [](U x) { return U{0} - x; });
    case TENON_OP_ABS:
      return each1<I>(o, [](I x) { return x < 0 ? U{0} - static_cast<U>(x) : static_cast<U>(x); });
    case TENON_OP_MIN:
      return each2<I>(o, [](I x, I y) { return x < y ? x : y; });
    case TENON_OP_MAX:
      return each2<I>(o, [](I x, I y) { return x > y ? x : y; });
    case TENON_OP_TRUNC_DIV:
      return each2<I>(o, [](I x, I y) { return static_cast<I>(tenon_trunc_div(x, y)); });
    case TENON_OP_FMOD:
      return each2<I>(o, [](I x, I y) { return static_cast<I>(tenon_mod(x, y)); });
    case TENON_OP_INT_POW:
      return each2<I>(o, [](I x, I y) { return static_cast<I>(tenon_int_pow(x, y)); });
    case TENON_OP_AND:
      return each2<U>(o, [](U x, U y) { return x & y; });
    case TENON_OP_OR:
      return each2<U>(o, [](U x, U y) { return x | y; });
    case TENON_OP_XOR:
      return each2<U>(o, [](U x, U y) { return x ^ y; });
    case TENON_OP_NOT:
      return each1<U>(o, [](U x) { return ~x; });
    case TENON_OP_SHIFT_LEFT:
      return each1<U>(o, [places](U x) { return x << places; });
    case TENON_OP_SHIFT_RIGHT:
      return each1<I>(o, [places](I x) { return x >> places; });
    case TENON_OP_SHIFT_RIGHT_LOGICAL:
      return each1<U>(o, [places](U x) { return x >> places; });
    default:
      unknown(o.node.op);
  }
}

inline void of_masks(const Operation& o) {
  using M = uint64_t;
  switch (o.node.op) {
    case TENON_OP_AND:
      return each2<M>(o, [](M x, M y) { return x & y; });
    case TENON_OP_OR:
      return each2<M>(o, [](M x, M y) { return x | y; });
    case TENON_OP_XOR:
      return each2<M>(o, [](M x, M y) { return x ^ y; });
    case TENON_OP_NOT:
      return each1<M>(o, [](M x) { return x == 0; });
    default:
      unknown(o.node.op);
  }
}

}  // namespace detail

/// Computes an operation that has operands. Throws std::logic_error for one that is not known here.
inline void evaluate(const Operation& o) {
  using M = uint64_t;
  const TenonNode& n = o.node;
  switch (n.op) {
    case TENON_OP_WHERE:
      return detail::each3<M>(o, [](M x, M y, M z) { return x != 0 ? y : z; });
    case TENON_OP_BITS:
    case TENON_OP_FROM_BITS:
      return detail::each1<M>(o, [](M x) { return x; });
    case TENON_OP_CAST:
      return detail::each1<M>(o, [&o](M x) { return cast_bits(x, o.type, o.node.type); });
    case TENON_OP_ROUND_TO:
      return detail::each1<M>(o, [&n](M x) { return round_bits(x, static_cast<TenonDType>(n.bits)); });
    default:
      break;
  }
  switch (o.type) {
    case TENON_TYPE_MASK:
      return detail::of_masks(o);
    case TENON_TYPE_F32:
      return detail::of_floats<float>(o);
    case TENON_TYPE_F64:
      return detail::of_floats<double>(o);
    case TENON_TYPE_I32:
      return detail::of_integers<int32_t>(o);
    case TENON_TYPE_I64:
      return detail::of_integers<int64_t>(o);
    default:
      detail::unknown(n.op);
  }
}

}  // namespace tenon::abi
