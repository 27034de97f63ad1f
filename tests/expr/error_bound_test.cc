// Random expressions in float32 and float64 stay within a bound of their value by the C library in double.
// The bound follows each node: what an error of its operands can do to it, plus what it may itself be off by.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/reference.h"
#include "tests/expr/random_expression.h"

namespace tenon::cpu {
namespace {

using namespace expr::testing;
using expr::Builder;
using expr::NodeId;
using expr::Op;
using expr::Type;

struct Bounded {
  double value = 0;
  double error = 0;  // infinite: undecided, for instance a comparison of nearly equal numbers
};

class Bounds {
 public:
  Bounds(const Builder& g, bool is_float)
      : g_(g),
        relative_(is_float ? 3 * 0x1p-23 : 6 * 0x1p-52),
        largest_(is_float ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max()),
        smallest_(is_float ? std::numeric_limits<float>::denorm_min()
                           : std::numeric_limits<double>::denorm_min()) {}

  Bounded of(NodeId root, std::span<const expr::NamedValue> values) const {
    std::vector<Bounded> at(root + 1);
    for (NodeId id = 0; id <= root; ++id) at[id] = node(id, at, values);
    return at[root];
  }

 private:
  Bounded node(NodeId id, const std::vector<Bounded>& at, std::span<const expr::NamedValue> values) const {
    if (g_.is_symbol(id)) {
      for (const expr::NamedValue& v : values) {
        if (v.name == g_.symbol_of(id).name) return {v.value, 0};
      }
      return {0, HUGE_VAL};
    }
    double args[3] = {};
    const std::span<const double> list(args, g_[id].arity);
    for (size_t i = 0; i < list.size(); ++i) args[i] = at[g_.args(id)[i]].value;
    Bounded result{expr::evaluate_node(g_, id, list), 0};
    for (size_t i = 0; i < list.size(); ++i) {
      const double e = at[g_.args(id)[i]].error;
      for (const double moved : {args[i] - e, args[i] + e}) {
        if (e == 0) continue;
        const double saved = std::exchange(args[i], moved);
        result.error += std::abs(expr::evaluate_node(g_, id, list) - result.value);
        args[i] = saved;
      }
    }
    // Nearly equal numbers may be equal, which moving one of them to its bounds does not show.
    const bool equality = g_[id].op == Op::Eq || g_[id].op == Op::Ne;
    if (equality && args[0] != args[1] &&
        std::abs(args[0] - args[1]) <= at[g_.args(id)[0]].error + at[g_.args(id)[1]].error)
      result.error = HUGE_VAL;
    const bool steps = g_.is_mask(id) || g_[id].op == Op::Floor || g_[id].op == Op::Ceil ||
                       g_[id].op == Op::Round || g_[id].op == Op::Trunc;
    if (steps)
      result.error = result.error == 0 ? 0 : HUGE_VAL;
    else
      result.error += relative_ * std::abs(result.value) + 4 * smallest_;
    const bool ordinary =
        std::abs(result.value) < largest_ / 4 && result.error < 0.01 * (1 + std::abs(result.value));
    if (!ordinary) result.error = HUGE_VAL;
    return result;
  }

  const Builder& g_;
  double relative_, largest_, smallest_;
};

template <class T>
void compare(Type type, uint64_t first_seed) {
  size_t decided = 0, total = 0;
  for (uint64_t seed = first_seed; seed < first_seed + 100; ++seed) {
    Builder g;
    const std::vector<expr::NodeId> outputs = random_outputs(g, seed, type, 8);
    const Program program(*random_typed(g, outputs, type));
    const Bounds bounds(g, sizeof(T) == 4);
    constexpr size_t kElements = 48;
    std::mt19937_64 rng(seed);
    const auto uniform = [&rng] { return static_cast<T>(static_cast<double>(rng() >> 11) * 0x1p-53); };
    std::vector<T> x(kElements), y(kElements), m(kElements), out[2] = {x, x};
    for (size_t i = 0; i < kElements; ++i)
      x[i] = 4 * uniform() - 1, y[i] = 4 * uniform() - 1, m[i] = T(rng() % 2);
    const T s = uniform() + 1;
    void* ptrs[] = {out[0].data(), out[1].data(), x.data(), y.data(), m.data()};
    const uint64_t number = as_number(s);
    program.run(ptrs, kElements, &number);
    for (size_t i = 0; i < kElements; ++i) {
      const expr::NamedValue values[] = {{"x", x[i]}, {"y", y[i]}, {"m", m[i]}, {"s", s}};
      for (size_t o = 0; o < 2; ++o) {
        const Bounded want = bounds.of(outputs[o], values);
        ++total;
        if (!(want.error < HUGE_VAL)) continue;
        ++decided;
        ASSERT_LE(std::abs(static_cast<double>(out[o][i]) - want.value), want.error)
            << expr::name(type) << " seed " << seed << ": " << to_string(g, outputs[o]) << " at x=" << x[i]
            << " y=" << y[i] << " m=" << m[i] << " s=" << s << " is " << out[o][i] << ", reference "
            << want.value;
      }
    }
  }
  EXPECT_GT(decided, total / 3) << "too few samples say anything";
}

TEST(ErrorBound, RandomExpressionsFloat32) { compare<float>(Type::F32, 7000); }
TEST(ErrorBound, RandomExpressionsFloat64) { compare<double>(Type::F64, 8000); }

}  // namespace
}  // namespace tenon::cpu
