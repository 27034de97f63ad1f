// Products of half types against their written definitions, bit for bit, on all kernels of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/gemm_amx.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "tests/cpu/gemm_matrices.h"

namespace tenon::cpu {
namespace {

float flushed(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// The total of one element as gemm.h defines it for products of bfloat16.
float defined_total(Matrix<BFloat16>& a, Matrix<BFloat16>& b, int64_t i, int64_t j) {
  float total = 0;
  for (int64_t start = 0; start < a.columns; start += 32) {
    float sums[2] = {0, 0};
    for (int64_t p = start; p < start + 32; ++p) {
      const bool exists = p < a.columns;
      const float x = exists ? flushed(static_cast<float>(a.at(i, p))) : 0.0f;
      const float y = exists ? flushed(static_cast<float>(b.at(p, j))) : 0.0f;
      sums[p % 2] = flushed(std::fma(x, y, sums[p % 2]));
    }
    total = flushed(total + flushed(sums[0] + sums[1]));
  }
  return total;
}
float defined_total(Matrix<Half>& a, Matrix<Half>& b, int64_t i, int64_t j) {
  auto row = make<float>(1, a.columns, Order::Row), column = make<float>(a.columns, 1, Order::Row);
  for (int64_t p = 0; p < a.columns; ++p) {
    row.at(0, p) = static_cast<float>(a.at(i, p));
    column.at(p, 0) = static_cast<float>(b.at(p, j));
  }
  return defined(row, column, 0, 0, 1.0f, 0.0f, 0.0f);
}

template <class T>
T defined_half(Matrix<T>& a, Matrix<T>& b, int64_t i, int64_t j, HalfGemmScale scale, T before) {
  const float scaled = scale.alpha * defined_total(a, b, i, j);
  return T(scale.beta == 0.0f ? scaled : scaled + scale.beta * static_cast<float>(before));
}

template <class T>
bool same_half(T x, T y) {
  return x.bits == y.bits || (std::isnan(static_cast<float>(x)) && std::isnan(static_cast<float>(y)));
}

/// All kernels that this machine runs.
template <class T>
std::vector<std::pair<std::string, HalfGemmKernel<T>>> half_kernels() {
  std::vector<std::pair<std::string, HalfGemmKernel<T>>> all;
  for (const CpuTarget target : supported_cpu_targets())
    all.emplace_back(name(target), half_gemm_kernel<T>(target));
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (amx_gemm_kernel()) all.emplace_back("AMX", amx_gemm_kernel());
  }
  return all;
}

template <class T>
class HalfGemm : public ::testing::Test {};
using Halves = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(HalfGemm, Halves);

TYPED_TEST(HalfGemm, RoundsTheFloat32ProductOnce) {
  using T = TypeParam;
  for (const Order order : kOrders) {
    auto a = make<T>(9, 40, order), b = make<T>(40, 12, order), c = make<T>(9, 12, order);
    for (auto* x : {&a, &b, &c}) x->fill([] { return T(random_value<float>()); });
    auto before = c;
    gemm(args_of(a, b, c), HalfGemmScale{0.5f, 2.0f});
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 12; ++j)
        EXPECT_EQ(c.at(i, j).bits, defined_half(a, b, i, j, {0.5f, 2.0f}, before.at(i, j)).bits);
    }
  }
}

TYPED_TEST(HalfGemm, OneSumHasTheRoundedBitsOnEveryInstructionSet) {
  using T = TypeParam;
  for (const int64_t k : {1, 33, 300, 3072, 5000}) {
    for (const Order order : kOrders) {
      auto a = make<T>(1, k, order), b = make<T>(k, 1, order), c = make<T>(1, 1, order);
      for (auto* x : {&a, &b, &c}) x->fill([] { return T(random_value<float>()); });
      auto before = c;
      for (const auto& [target, kernel] : half_kernels<T>()) {
        c = before;
        kernel(args_of(a, b, c), HalfGemmScale{});
        EXPECT_EQ(c.at(0, 0).bits, defined_half(a, b, 0, 0, {}, before.at(0, 0)).bits) << target << " " << k;
      }
    }
  }
}

TYPED_TEST(HalfGemm, LargeMatricesHaveTheRoundedBitsOnEveryInstructionSet) {
  using T = TypeParam;
  for (const Order order : {Order::Row, Order::Column, Order::Padded}) {
    for (const int64_t m : {1, 2, 5, 8, 33}) {
      const HalfGemmScale scale = m == 2 ? HalfGemmScale{0.5f, 2.0f} : HalfGemmScale{};
      auto a = make<T>(m, 579, Order::Row), b = make<T>(579, 601, order), c = make<T>(m, 601, Order::Row);
      for (auto* x : {&a, &b, &c}) x->fill([] { return T(random_value<float>()); });
      auto before = c;
      for (const auto& [target, kernel] : half_kernels<T>()) {
        c = before;
        kernel(args_of(a, b, c), scale);
        for (int64_t i = 0; i < m; ++i) {
          for (const int64_t j : kSomeColumns)
            ASSERT_EQ(c.at(i, j).bits, defined_half(a, b, i, j, scale, before.at(i, j)).bits)
                << target << " " << m << " rows, at " << i << ", " << j;
        }
      }
    }
  }
}

/// Exponents near the largest, near the smallest, all of them with infinities and NaNs, or usual numbers.
BFloat16 random_bfloat16(int kind) {
  BFloat16 x;
  const auto bits = static_cast<uint16_t>(gemm_generator()());
  const int exponents[] = {180 + bits / 128 % 20, bits / 128 % 3 ? 50 + bits / 128 % 30 : 0,
                           bits / 128 % 256};
  x.bits = kind == 3 ? BFloat16(random_value<float>()).bits
                     : static_cast<uint16_t>((bits & 0x807F) | exponents[kind] << 7);
  return x;
}

TEST(BFloat16Gemm, EveryOrderSizeAndRangeHasTheDefinedBits) {
  const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65};
  const auto pick = [&] { return sizes[gemm_generator()() % std::size(sizes)]; };
  const auto order = [] { return kOrders[gemm_generator()() % std::size(kOrders)]; };
  for (int round = 0; round < 300; ++round) {
    const int64_t m = pick(), n = pick(), k = pick();
    const int kind = round % 4;
    auto a = make<BFloat16>(m, k, order()), b = make<BFloat16>(k, n, order()),
         c = make<BFloat16>(m, n, order());
    for (auto* x : {&a, &b, &c}) x->fill([&] { return random_bfloat16(kind); });
    const HalfGemmScale scale = round % 3 ? HalfGemmScale{} : HalfGemmScale{-0.5f, 3.0f};
    auto before = c;
    for (const auto& [target, kernel] : half_kernels<BFloat16>()) {
      c = before;
      kernel(args_of(a, b, c), scale);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j)
          ASSERT_TRUE(same_half(c.at(i, j), defined_half(a, b, i, j, scale, before.at(i, j))))
              << target << " " << m << "x" << k << "x" << n << " kind " << kind << " at " << i << ", " << j;
      }
    }
  }
}

TEST(BFloat16Gemm, BlocksOfRowsColumnsAndSumsHaveTheDefinedBits) {
  struct Sizes {
    int64_t m, k, n;
  };
  for (const auto [m, k, n] :
       {Sizes{550, 1100, 40}, {40, 1100, 550}, {1000, 70, 600}, {3, 9000, 50}, {20, 9000, 70}}) {
    for (const Order order_a : {Order::Row, Order::Column}) {
      for (const Order order_b : {Order::Row, Order::Column}) {
        auto a = make<BFloat16>(m, k, order_a), b = make<BFloat16>(k, n, order_b),
             c = make<BFloat16>(m, n, Order::Row);
        for (auto* x : {&a, &b}) x->fill([] { return random_bfloat16(3); });
        for (const auto& [target, kernel] : half_kernels<BFloat16>()) {
          if (target == "SSE4" && m > 3) continue;  // its fma takes a second for one of these
          kernel(args_of(a, b, c), {});
          for (int place = 0; place < 200; ++place) {
            const int64_t i = static_cast<int64_t>(gemm_generator()() % static_cast<unsigned>(m)),
                          j = static_cast<int64_t>(gemm_generator()() % static_cast<unsigned>(n));
            ASSERT_EQ(c.at(i, j).bits, defined_half(a, b, i, j, {}, BFloat16(0.0f)).bits)
                << target << " " << m << "x" << k << "x" << n << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
