// The kernels of attention against their definition, bit for bit, for every instruction set that this machine
// has and rows of every length.
#include "backends/cpu/attention/attention_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/reduce/reduce.h"

namespace tenon::cpu {
namespace {

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

template <class T>
class Attention : public ::testing::Test {
 protected:
  std::vector<T> numbers(int64_t n) {
    std::vector<T> v(static_cast<size_t>(n));
    for (T& x : v) x = static_cast<T>(std::ldexp(double(generator_()) - 0x1p31, -29));
    return v;
  }
  /// Calls f(kernels, rows, columns) for each instruction set and some sizes.
  template <class F>
  void each(F&& f) {
    for (const CpuTarget target : supported_cpu_targets()) {
      SCOPED_TRACE(name(target));
      for (const int64_t columns : {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 100, 128, 1024, 1500})
        f(attention_kernels<T>(target), int64_t{3}, columns);
    }
  }
  static void expect_bits(const std::vector<T>& got, const std::vector<T>& want) {
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)), 0);
  }

  std::mt19937 generator_{20251122};
};

using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Attention, Types);

TYPED_TEST(Attention, ShiftsRowsByTheLargestSoFar) {
  using T = TypeParam;
  this->each([&](const AttentionKernels<T>& kernels, int64_t rows, int64_t columns) {
    std::vector<T> x = this->numbers(rows * columns), largest{kLowest<T>, 100, -3}, change(3);
    std::fill_n(x.begin() + 2 * columns, columns, kLowest<T>);
    std::vector<T> want = x, want_largest = largest, want_change(3);
    for (int64_t r = 0; r < rows; ++r) {
      T& most = want_largest[static_cast<size_t>(r)];
      const T before = most;
      for (int64_t c = 0; c < columns; ++c) most = std::max(most, x[static_cast<size_t>(r * columns + c)]);
      want_change[static_cast<size_t>(r)] = before - most;
      for (int64_t c = 0; c < columns; ++c) want[static_cast<size_t>(r * columns + c)] -= most;
    }
    kernels.shift(x.data(), rows, columns, largest.data(), change.data());
    this->expect_bits(x, want);
    this->expect_bits(largest, want_largest);
    this->expect_bits(change, want_change);
  });
}

TYPED_TEST(Attention, LeavesRowsThatAreMaskedAsTheyAre) {
  using T = TypeParam;
  this->each([&](const AttentionKernels<T>& kernels, int64_t, int64_t columns) {
    const std::vector<T> masked(static_cast<size_t>(columns), kLowest<T>);
    std::vector<T> x = masked, largest{kLowest<T>}, change{5};
    kernels.shift(x.data(), 1, columns, largest.data(), change.data());
    this->expect_bits(x, masked);
    this->expect_bits(change, {kLowest<T>});
    kernels.subtract(x.data(), 1, columns, largest.data());
    this->expect_bits(x, masked);
    const T none = 0;
    kernels.divide(x.data(), 1, columns, &none);
    this->expect_bits(x, std::vector<T>(static_cast<size_t>(columns), T(0)));
  });
}

TYPED_TEST(Attention, NanIsTheLargest) {
  using T = TypeParam;
  this->each([&](const AttentionKernels<T>& kernels, int64_t, int64_t columns) {
    std::vector<T> x = this->numbers(columns), largest{1}, change(1);
    x[static_cast<size_t>(columns / 2)] = std::numeric_limits<T>::quiet_NaN();
    kernels.shift(x.data(), 1, columns, largest.data(), change.data());
    EXPECT_TRUE(std::isnan(largest[0]) && std::isnan(x[0]));
  });
}

TYPED_TEST(Attention, SumsRowsByTheTreeOfReductions) {
  using T = TypeParam;
  this->each([&](const AttentionKernels<T>& kernels, int64_t rows, int64_t columns) {
    const std::vector<T> x = this->numbers(rows * columns), y = this->numbers(rows * columns),
                         factor = this->numbers(rows);
    std::vector<T> total = this->numbers(rows), want = total, dot(3), want_dot(3);
    for (size_t r = 0; r < 3; ++r) {
      const T* row = x.data() + static_cast<int64_t>(r) * columns;
      const T sum = reduce_contiguous(ReduceOp::Sum, row, static_cast<size_t>(columns));
      want[r] = want[r] * factor[r] + sum;
      std::vector<T> products(static_cast<size_t>(columns));
      for (size_t c = 0; c < products.size(); ++c)
        products[c] = row[c] * y[r * static_cast<size_t>(columns) + c];
      want_dot[r] = reduce_contiguous(ReduceOp::Sum, products.data(), products.size());
    }
    kernels.add_sums(x.data(), rows, columns, factor.data(), total.data());
    kernels.dot(x.data(), y.data(), rows, columns, dot.data());
    this->expect_bits(total, want);
    this->expect_bits(dot, want_dot);
  });
}

TYPED_TEST(Attention, ScalesAndDividesRowsAndMakesGradients) {
  using T = TypeParam;
  this->each([&](const AttentionKernels<T>& kernels, int64_t rows, int64_t columns) {
    const std::vector<T> x = this->numbers(rows * columns), y = this->numbers(rows * columns),
                         factor = this->numbers(rows);
    std::vector<T> scaled = x, divided = x, gradient = y, want_scaled = x, want_divided = x,
                   want_gradient = y;
    for (size_t i = 0; i < x.size(); ++i) {
      const T f = factor[i / static_cast<size_t>(columns)];
      want_scaled[i] *= f;
      want_divided[i] /= f;
      want_gradient[i] = x[i] * (y[i] - f);
    }
    kernels.scale(scaled.data(), rows, columns, factor.data());
    kernels.divide(divided.data(), rows, columns, factor.data());
    kernels.gradient(x.data(), gradient.data(), rows, columns, factor.data());
    this->expect_bits(scaled, want_scaled);
    this->expect_bits(divided, want_divided);
    this->expect_bits(gradient, want_gradient);
  });
}

}  // namespace
}  // namespace tenon::cpu
