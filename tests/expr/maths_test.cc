// The maths functions give the same bits on every CPU target, wherever an element stands; rounding and
// remainders are exact. How accurate they are: bench/accuracy.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/pointwise/primitive_table.h"
#include "tenon/expr/builder.h"
#include "tenon/expr/function.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/primitives.h"
#include "tenon/expr/typed_text.h"

namespace tenon::cpu {
namespace {

using expr::Type;

PointwiseFn kernel_of(std::string_view function, Type type, CpuTarget target) {
  const uint16_t number =
      expr::find_primitive({.op = expr::Op::Call, .function = expr::find_function(function), .type = type});
  EXPECT_NE(number, expr::kNoPrimitive) << function;
  return primitive(number, target);
}

template <class T>
std::vector<T> apply(PointwiseFn kernel, const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<T> out(x.size());
  void* ptrs[] = {out.data(), const_cast<T*>(x.data()), const_cast<T*>(y.data()), nullptr};
  kernel(ptrs, x.size(), nullptr, 0);
  return out;
}

// All magnitudes, denser where functions bend, and the edges.
template <class T>
void make_inputs(std::vector<T>& x, std::vector<T>& y, uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  const T edges[] = {0,
                     1,
                     2,
                     3,
                     0.5,
                     Limits::infinity(),
                     Limits::quiet_NaN(),
                     Limits::denorm_min(),
                     Limits::min(),
                     Limits::max(),
                     T(2.5),
                     T(88.72),
                     T(88.73),
                     T(103.9),
                     T(709.78),
                     T(709.79),
                     T(745.1),
                     T(745.2)};
  for (T a : edges) {
    for (T b : edges) {
      for (int sign = 0; sign < 4; ++sign) {
        x.push_back(sign & 1 ? -a : a);
        y.push_back(sign & 2 ? -b : b);
      }
    }
  }
  std::mt19937_64 rng(seed);
  const auto uniform = [&rng] { return static_cast<double>(rng() >> 11) * 0x1p-53; };
  for (int i = 0; i < 30000; ++i) {
    const double magnitude = std::exp2(-20 + 28 * uniform()) * (rng() % 2 == 0 ? 1 : -1);
    const T any = sizeof(T) == 4 ? T(std::bit_cast<float>(static_cast<uint32_t>(rng())))
                                 : T(std::bit_cast<double>(rng()));
    x.push_back(i % 3 == 0 ? any : i % 3 == 1 ? T(4 * uniform() - 2) : T(magnitude));
    y.push_back(T(i % 5 == 0 ? std::floor(20 * uniform()) : 30 * uniform() - 15));
  }
}

template <class T>
void expect_same_bits_everywhere(Type type) {
  std::vector<T> x, y;
  make_inputs(x, y, 12);
  for (const expr::Function& f : expr::functions()) {
    if ((f.internal && !f.kernel) || !f.runs_in(type) || f.arity > 2) continue;
    const auto targets = supported_cpu_targets();
    const std::vector<T> first = apply(kernel_of(f.name, type, targets.front()), x, y);
    for (const CpuTarget target : targets.subspan(1)) {
      const std::vector<T> other = apply(kernel_of(f.name, type, target), x, y);
      for (size_t i = 0; i < x.size(); ++i) {
        const bool same = std::isnan(first[i])
                              ? std::isnan(other[i])
                              : first[i] == other[i] && std::signbit(first[i]) == std::signbit(other[i]);
        ASSERT_TRUE(same) << f.name << " " << expr::name(type) << " " << name(target) << " at " << x[i]
                          << ", " << y[i] << ": " << other[i] << " for " << first[i];
      }
    }
  }
}

// Float32 computes in float64 by a short form, which the kernel that float64 itself runs is not.
TEST(Maths, Float32ComputesByShortForms) {
  for (const expr::Function& f : expr::functions()) {
    if (f.short_form.empty()) continue;
    const uint16_t form = expr::find_function(f.short_form);
    ASSERT_NE(form, expr::kNoFunction) << f.name;
    EXPECT_EQ(expr::functions()[form].arity, f.arity) << f.name;
    EXPECT_TRUE(f.widens() && expr::functions()[form].kernel) << f.name;
    expr::Builder g;
    std::vector<expr::NodeId> arguments = {g.symbol("x")};
    if (f.arity == 2) arguments.push_back(g.symbol("y"));
    const auto calls = [&](Type type) {
      const expr::NodeId call = g.call(f.name, arguments);
      return to_string(*instantiate(*g.finish({call}), {.compute = type}));
    };
    const std::string name = fmt::format("{}(", std::string_view(f.short_form));
    EXPECT_NE(calls(Type::F32).find(name), std::string::npos) << calls(Type::F32);
    EXPECT_EQ(calls(Type::F64).find(name), std::string::npos) << calls(Type::F64);
  }
}

TEST(Maths, SameBitsOnEveryTargetFloat32) { expect_same_bits_everywhere<float>(Type::F32); }
TEST(Maths, SameBitsOnEveryTargetFloat64) { expect_same_bits_everywhere<double>(Type::F64); }

// An element's bits do not depend on where in the block it stands, nor on how long the block is.
TEST(Maths, BitsDoNotDependOnThePosition) {
  std::vector<float> x, y;
  make_inputs(x, y, 13);
  for (const CpuTarget target : supported_cpu_targets()) {
    const PointwiseFn kernel = kernel_of("sigmoid", Type::F32, target);
    const std::vector<float> whole = apply(kernel, x, y);
    for (size_t begin = 0; begin < 40; ++begin) {
      for (size_t n = 1; n < 40; ++n) {
        std::vector<float> part(x.begin() + static_cast<long>(begin),
                                x.begin() + static_cast<long>(begin + n));
        const std::vector<float> got = apply(kernel, part, part);
        for (size_t i = 0; i < n; ++i) {
          const float want = whole[begin + i];
          ASSERT_TRUE(std::isnan(want) ? std::isnan(got[i])
                                       : std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want));
        }
      }
    }
  }
}

TEST(Maths, RoundingOpsAndRemaindersAreExact) {
  std::vector<double> x, y;
  make_inputs(x, y, 14);
  for (const CpuTarget target : supported_cpu_targets()) {
    const auto values = [&](expr::Op op) {
      return apply(primitive(expr::find_primitive({.op = op, .type = Type::F64}), target), x, y);
    };
    const auto floors = values(expr::Op::Floor), ceils = values(expr::Op::Ceil),
               rounds = values(expr::Op::Round);
    const auto mods = values(expr::Op::Fmod), roots = values(expr::Op::Sqrt);
    const auto expect = [](double got, double want, double at) {
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
          << got << " for " << want << " at " << at;
    };
    for (size_t i = 0; i < x.size(); ++i) {
      expect(floors[i], std::floor(x[i]), x[i]);
      expect(ceils[i], std::ceil(x[i]), x[i]);
      expect(rounds[i], std::nearbyint(x[i]), x[i]);
      expect(mods[i], std::fmod(x[i], y[i]), x[i]);
      expect(roots[i], std::sqrt(x[i]), x[i]);
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
