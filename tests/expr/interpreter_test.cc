// The tile interpreter gives the bits of a scalar interpreter of the same definitions, on every instruction
// set.
#include "backends/cpu/pointwise/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/expr/spec.h"

#include "tenon/expr/evaluator.h"
#include "tests/expr/random_expression.h"

namespace tenon::cpu {
namespace {

using expr::Builder;
using expr::NodeId;
using expr::Symbol;
using expr::SymbolKind;
using expr::Type;
using expr::testing::random_values;
using expr::testing::same_bits;

template <class T>
void compare_random(Type type, uint64_t first_seed, int count) {
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(count); ++seed) {
    Builder g;
    const std::vector<NodeId> outputs = expr::testing::random_outputs(g, seed, type);
    const expr::ExpressionPtr e = expr::testing::random_typed(g, outputs, type);
    check(*e);
    const Program program(*e);
    const size_t n = 1 + seed % 700;
    const std::vector<T> x = random_values<T>(n, seed), y = random_values<T>(n, seed + 1),
                         m = random_values<T>(n, seed + 2);
    const uint64_t s = expr::testing::as_number(random_values<T>(1, seed + 3)[0]);
    std::vector<T> want[2] = {std::vector<T>(n), std::vector<T>(n)};
    for (size_t i = 0; i < n; ++i) {
      const void* inputs[] = {&x[i], &y[i], &m[i]};
      void* out[] = {&want[0][i], &want[1][i]};
      evaluate(*e, inputs, &s, out);
    }
    for (CpuTarget target : supported_cpu_targets()) {
      std::vector<T> got[2] = {std::vector<T>(n), std::vector<T>(n)};
      void* ptrs[] = {got[0].data(), got[1].data(), const_cast<T*>(x.data()), const_cast<T*>(y.data()),
                      const_cast<T*>(m.data())};
      program.run(ptrs, n, &s, target);
      for (size_t o = 0; o < 2; ++o) {
        for (size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(same_bits(got[o][i], want[o][i]))
              << name(target) << " " << expr::name(type) << " seed " << seed << " element " << i << " output "
              << o << ": " << got[o][i] << " for " << want[o][i] << "\n"
              << to_string(g, outputs[o]) << "\nat x=" << x[i] << " y=" << y[i] << " m=" << m[i] << " s=" << s
              << "\n"
              << program.to_string();
        }
      }
    }
  }
}

TEST(Interpreter, RandomExpressionsHaveTheSameBitsOnEveryTargetFloat32) {
  compare_random<float>(Type::F32, 1, 60);
}
TEST(Interpreter, RandomExpressionsHaveTheSameBitsOnEveryTargetFloat64) {
  compare_random<double>(Type::F64, 1001, 60);
}
TEST(Interpreter, RandomExpressionsHaveTheSameBitsOnEveryTargetInt32) {
  compare_random<int32_t>(Type::I32, 2001, 40);
}
TEST(Interpreter, RandomExpressionsHaveTheSameBitsOnEveryTargetInt64) {
  compare_random<int64_t>(Type::I64, 3001, 40);
}

TEST(Interpreter, AnOutputMayBeAnInput) {
  Builder g;
  const Symbol symbols[] = {{"a", SymbolKind::Tensor}, {"b", SymbolKind::Tensor}};
  const NodeId sum = parse(g, "a + b", symbols), difference = parse(g, "a - b", symbols);
  const Program program(*expr::instantiate(*g.finish({sum, difference}), {.compute = Type::F32}));
  std::vector<float> a(1000), b(1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i), b[i] = 2;
  void* ptrs[] = {a.data(), b.data(), a.data(), b.data()};
  program.run(ptrs, a.size(), nullptr);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i], static_cast<float>(i) + 2);
    ASSERT_EQ(b[i], static_cast<float>(i) - 2);
  }
}

TEST(Interpreter, OutputsThatAreInputsLiteralsAndScalars) {
  Builder g;
  const Symbol symbols[] = {{"a", SymbolKind::Tensor}, {"s", SymbolKind::Scalar}};
  std::vector<NodeId> outputs;
  for (const char* text : {"a", "3", "s * 2", "a"}) outputs.push_back(parse(g, text, symbols));
  const Program program(*expr::instantiate(*g.finish(outputs), {.compute = Type::I64}));
  const size_t n = 259;
  std::vector<int64_t> a(n), out[4] = {std::vector<int64_t>(n), std::vector<int64_t>(n),
                                       std::vector<int64_t>(n), std::vector<int64_t>(n)};
  for (size_t i = 0; i < n; ++i) a[i] = static_cast<int64_t>(i);
  const int64_t s = 21;
  void* ptrs[] = {out[0].data(), out[1].data(), out[2].data(), out[3].data(), a.data()};
  program.run(ptrs, n, &s);
  EXPECT_EQ(out[0], a);
  EXPECT_EQ(out[1], std::vector<int64_t>(n, 3));
  EXPECT_EQ(out[2], std::vector<int64_t>(n, 42));
  EXPECT_EQ(out[3], a);
}

TEST(Interpreter, NeverReadsOrWritesBeyondTheBlock) {
  Builder g;
  const Symbol symbols[] = {{"a", SymbolKind::Tensor}};
  const NodeId root = parse(g, "a * sigmoid(a)", symbols);
  const Program program(*expr::instantiate(*g.finish({root}), {.compute = Type::F64}));
  for (size_t n : {0u, 1u, 15u, 16u, 17u, 255u, 256u, 257u, 513u}) {
    std::vector<double> out(n + 1, -7), a(n, 0.5);  // a sanitizer sees a read past the end
    void* ptrs[] = {out.data(), a.data()};
    program.run(ptrs, n, nullptr);
    EXPECT_EQ(out[n], -7) << n;
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(out[i], 0.5 / (1 + std::exp(-0.5)), 1e-15);
  }
}

}  // namespace
}  // namespace tenon::cpu
