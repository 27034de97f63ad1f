// The matrix product against its written definition (bit for bit, element by element in scalar code) and
// against long double, over shapes, strides, instruction sets and threads.
#include "backends/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/gemm/gemm_kernels.h"
#include "tenon/core/error.h"
#include "tenon/core/interrupt.h"
#include "tenon/core/parallel.h"
#include "tests/cpu/gemm_matrices.h"

namespace tenon::cpu {
namespace {

template <class T>
void run_on(CpuTarget target, const GemmArgs<T>& g) {
  gemm_kernel<T>(target)(g);
}

template <class T>
class Gemm : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Floats);

TYPED_TEST(Gemm, EveryElementHasTheDefinedBitsOnEveryInstructionSet) {
  using T = TypeParam;
  // Around the widths of tiles, one block of k and more, and the switch from direct to blocked.
  const int64_t shapes[][3] = {{1, 1, 1},   {8, 8, 8},     {1, 64, 17},     {1, 33, 300},  {2, 70, 259},
                               {3, 37, 20}, {5, 16, 9},    {7, 31, 257},    {13, 3, 600},  {33, 1, 40},
                               {6, 129, 5}, {50, 47, 513}, {100, 110, 100}, {700, 50, 30}, {2000, 3, 520}};
  for (const auto& [m, n, k] : shapes) {
    for (const bool scaled : {false, true}) {
      const T alpha = scaled ? T(0.7) : T(1), beta = scaled ? T(-1.3) : T(0);
      auto a = make<T>(m, k, Order::Row), b = make<T>(k, n, Order::Row), c = make<T>(m, n, Order::Row);
      a.fill(random_value<T>), b.fill(random_value<T>), c.fill(random_value<T>);
      const auto before = c;
      for (const CpuTarget target : supported_cpu_targets()) {
        c = before;
        run_on(target, args_of(a, b, c, alpha, beta));
        auto old = before;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            ASSERT_TRUE(same(c.at(i, j), defined(a, b, i, j, alpha, beta, old.at(i, j))))
                << name(target) << " " << m << "x" << n << "x" << k << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TYPED_TEST(Gemm, FewSumsOfManyElementsHaveTheDefinedBitsOnEveryInstructionSet) {
  using T = TypeParam;
  const int64_t shapes[][3] = {{1, 1, 3071}, {1, 1, 4096}, {1, 1, 9001},
                               {1, 3, 3073}, {5, 2, 4352}, {8, 8, 4100}};
  for (const auto& [m, n, k] : shapes) {
    for (const Order order : kOrders) {
      auto a = make<T>(m, k, m == 1 ? order : Order::Row), b = make<T>(k, n, n == 1 ? order : Order::Column),
           c = make<T>(m, n, order);
      for (auto* x : {&a, &b, &c}) x->fill(random_value<T>);
      const auto before = c;
      for (const CpuTarget target : supported_cpu_targets()) {
        c = before;
        run_on(target, args_of(a, b, c, T(0.7), T(-1.3)));
        auto expected = before;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j)
            expected.at(i, j) = defined(a, b, i, j, T(0.7), T(-1.3), expected.at(i, j));
        }
        ASSERT_EQ(c.memory, expected.memory) << name(target) << " " << m << "x" << n << "x" << k;
      }
    }
  }
}

/// Rows of A and columns of C that are checked against the definition where all would take long.

TYPED_TEST(Gemm, FewRowsTimesALargeMatrixHaveTheDefinedBitsOnEveryInstructionSet) {
  using T = TypeParam;
  for (const Order order : {Order::Row, Order::Column}) {
    for (int64_t m = 1; m <= 8; ++m) {
      const T alpha = m % 2 ? T(1) : T(0.7), beta = m % 2 ? T(0) : T(-1.3);
      auto a = make<T>(m, 579, m == 3 ? Order::Column : Order::Row), b = make<T>(579, 601, order),
           c = make<T>(m, 601, m == 4 ? Order::Padded : Order::Row);
      for (auto* x : {&a, &b, &c}) x->fill(random_value<T>);
      const auto before = c;
      for (const CpuTarget target : supported_cpu_targets()) {
        c = before;
        run_on(target, args_of(a, b, c, alpha, beta));
        auto old = before;
        for (int64_t i = 0; i < m; ++i) {
          for (const int64_t j : kSomeColumns)
            ASSERT_TRUE(same(c.at(i, j), defined(a, b, i, j, alpha, beta, old.at(i, j))))
                << name(target) << " " << m << " rows, at " << i << ", " << j;
        }
      }
    }
  }
}

TYPED_TEST(Gemm, APackedRightMatrixAndABiasHaveTheDefinedBitsOnEveryInstructionSet) {
  using T = TypeParam;
  constexpr int64_t kWidth = kGemmPanel<T>;
  // Direct and blocked products, of one block of k and several, whose last panel is full or not.
  const int64_t shapes[][3] = {{1, 1, 1},     {1, 130, 300}, {2, 64, 17},     {3, 100, 257},  {5, 33, 520},
                               {17, 40, 600}, {70, 31, 400}, {37, 2090, 300}, {800, 35, 270}, {700, 50, 30}};
  for (const auto& [m, n, k] : shapes) {
    auto a = make<T>(m, k, m % 2 ? Order::Padded : Order::Row), b = make<T>(k, n, Order::Row);
    Matrix<T> c(m, n, n + 3, 1);
    const int64_t panels = (n + kWidth - 1) / kWidth;
    Matrix<T> packed(panels * k, kWidth, kWidth, 1);
    std::vector<T> bias(static_cast<size_t>(std::max(m, n)));
    a.fill(random_value<T>), b.fill(random_value<T>), packed.fill(random_value<T>), c.fill(random_value<T>);
    for (T& x : bias) x = random_value<T>();
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) packed.at(j / kWidth * k + p, j % kWidth) = b.at(p, j);
    const auto before = c;
    for (const CpuTarget target : supported_cpu_targets()) {
      for (const bool is_packed : {false, true}) {
        for (const char added : {'-', 'n', 'm'}) {  // no bias, one for each column, one for each row
          c = before;
          auto expected = before;
          for (int64_t i = 0; i<m; i += m> 100 ? 37 : 1) {
            for (int64_t j = 0; j<n; j += n> 1000 ? 31 : 1) {
              const T product = defined(a, b, i, j, T(1), T(0), T(0));
              expected.at(i, j) =
                  added == '-' ? product : product + bias[static_cast<size_t>(added == 'n' ? j : i)];
            }
          }
          GemmArgs<T> g = args_of(a, b, c);
          if (added != '-') (added == 'n' ? g.bias : g.row_bias) = bias.data();
          if (is_packed) g.b = packed.data(), g.b_row = kWidth, g.b_panel = k * kWidth;
          run_on(target, g);
          for (int64_t i = 0; i<m; i += m> 100 ? 37 : 1) {
            for (int64_t j = 0; j<n; j += n> 1000 ? 31 : 1)
              ASSERT_TRUE(same(c.at(i, j), expected.at(i, j)))
                  << name(target) << " " << m << "x" << n << "x" << k << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TYPED_TEST(Gemm, StridesDoNotChangeBitsNorTouchOtherElements) {
  using T = TypeParam;
  const int64_t shapes[][3] = {{1, 40, 30},  {2, 19, 270},   {9, 21, 34},
                               {40, 1, 270}, {120, 90, 101}, {97, 98, 300}};
  for (const auto& [m, n, k] : shapes) {
    auto a0 = make<T>(m, k, Order::Row), b0 = make<T>(k, n, Order::Row), c0 = make<T>(m, n, Order::Row);
    a0.fill(random_value<T>), b0.fill(random_value<T>);
    gemm(args_of(a0, b0, c0));
    for (const Order order_a : kOrders) {
      for (const Order order_b : kOrders) {
        const Order order_c = kOrders[(static_cast<int>(order_a) + static_cast<int>(order_b)) % 6];
        auto a = make<T>(m, k, order_a), b = make<T>(k, n, order_b), c = make<T>(m, n, order_c);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t p = 0; p < k; ++p) a.at(i, p) = a0.at(i, p);
        }
        for (int64_t p = 0; p < k; ++p) {
          for (int64_t j = 0; j < n; ++j) b.at(p, j) = b0.at(p, j);
        }
        auto expected = c;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) expected.at(i, j) = c0.at(i, j);
        }
        gemm(args_of(a, b, c));
        ASSERT_EQ(std::memcmp(c.memory.data(), expected.memory.data(), c.memory.size() * sizeof(T)), 0)
            << m << "x" << n << "x" << k << " orders " << static_cast<int>(order_a)
            << static_cast<int>(order_b) << static_cast<int>(order_c);
      }
    }
  }
}

TYPED_TEST(Gemm, ZeroStridesRepeatOneRowOrColumn) {
  using T = TypeParam;
  Matrix<T> a(20, 30, 0, 1), b(30, 25, 1, 0), c(20, 25, 25, 1);
  a.fill(random_value<T>), b.fill(random_value<T>);
  gemm(args_of(a, b, c));
  const T expected = defined(a, b, 0, 0, T(1), T(0), T(0));
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 25; ++j) ASSERT_EQ(c.at(i, j), expected);
  }
}

TYPED_TEST(Gemm, AnElementDoesNotDependOnTheMatrixAroundIt) {
  using T = TypeParam;
  const int64_t k = 530;
  auto a = make<T>(130, k, Order::Row), b = make<T>(k, 140, Order::Column), c = make<T>(130, 140, Order::Row);
  a.fill(random_value<T>), b.fill(random_value<T>);
  gemm(args_of(a, b, c));
  for (const auto& [i, j] : {std::pair{0, 0}, {129, 139}, {64, 17}}) {
    T alone = 0;
    GemmArgs<T> g = args_of(a, b, c);
    g.m = g.n = 1, g.a += i * a.row, g.b += j * b.column, g.c = &alone;
    gemm(g);
    EXPECT_TRUE(same(alone, c.at(i, j)));
  }
}

TYPED_TEST(Gemm, ThreadsDoNotChangeBits) {
  using T = TypeParam;
  const int threads = num_threads();
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{150, 170, 300}, {1, 4200, 600}, {9000, 1, 300}}) {
    auto a = make<T>(m, k, Order::Row), b = make<T>(k, n, Order::Column), one = make<T>(m, n, Order::Row),
         many = one;
    a.fill(random_value<T>), b.fill(random_value<T>);
    set_num_threads(1);
    gemm(args_of(a, b, one));
    for (const int t : {2, 3, 5}) {
      set_num_threads(t);
      gemm(args_of(a, b, many));
      EXPECT_EQ(one.memory, many.memory) << t << " threads";
    }
  }
  // Packed, with a bias.
  constexpr int64_t kWidth = kGemmPanel<T>, kPanels = 9;
  auto a = make<T>(150, 300, Order::Row), one = make<T>(150, kPanels * kWidth - 3, Order::Row), many = one;
  Matrix<T> packed(kPanels * 300, kWidth, kWidth, 1);
  std::vector<T> bias(static_cast<size_t>(one.columns));
  a.fill(random_value<T>), packed.fill(random_value<T>);
  for (T& x : bias) x = random_value<T>();
  for (const int t : {1, 2, 3, 5}) {
    set_num_threads(t);
    GemmArgs<T> g = args_of(a, packed, t == 1 ? one : many);
    g.n = one.columns, g.b_panel = 300 * kWidth, g.bias = bias.data();
    gemm(g);
    if (t > 1) EXPECT_EQ(one.memory, many.memory) << t << " threads";
  }
  set_num_threads(threads);
}

TYPED_TEST(Gemm, IsWithinItsErrorBoundOfLongDouble) {
  using T = TypeParam;
  const int64_t m = 70, n = 50, k = 1500;
  auto a = make<T>(m, k, Order::Row), b = make<T>(k, n, Order::Row), c = make<T>(m, n, Order::Row);
  a.fill(random_value<T>), b.fill(random_value<T>);
  gemm(args_of(a, b, c));
  const long double unit = std::numeric_limits<T>::epsilon() / 2;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      long double exact = 0, magnitude = 0;
      for (int64_t p = 0; p < k; ++p) {
        const long double product = static_cast<long double>(a.at(i, p)) * b.at(p, j);
        exact += product, magnitude += std::fabs(product);
      }
      // 256 fused operations in a block, then one addition a block: Higham (2002), section 3.1.
      ASSERT_LE(std::fabs(c.at(i, j) - exact), (256 + 6) * unit * magnitude);
    }
  }
}

TYPED_TEST(Gemm, EmptySumsAreZeroAndBetaZeroDoesNotRead) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  auto a = make<T>(4, 0, Order::Row), b = make<T>(0, 5, Order::Row), c = make<T>(4, 5, Order::Both);
  c.fill([&] { return nan; });
  gemm(args_of(a, b, c));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(c.at(i, j), T(0));
  }
  c.fill([] { return T(3); });
  gemm(args_of(a, b, c, T(1), T(2)));
  EXPECT_EQ(c.at(3, 4), T(6));

  auto x = make<T>(4, 3, Order::Row), y = make<T>(3, 5, Order::Row);
  x.fill([] { return T(1); }), y.fill([] { return T(2); }), c.fill([&] { return nan; });
  gemm(args_of(x, y, c));
  EXPECT_EQ(c.at(2, 2), T(6));

  auto untouched = c;
  GemmArgs<T> g = args_of(x, y, c);
  g.m = 0;
  gemm(g);
  g.m = 4, g.n = 0;
  gemm(g);
  EXPECT_EQ(c.memory, untouched.memory);
}

TYPED_TEST(Gemm, NanAndInfinityReachExactlyTheirRowsAndColumns) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (const int64_t n : {19, 120}) {
    auto a = make<T>(n, n, Order::Row), b = make<T>(n, n, Order::Row), c = make<T>(n, n, Order::Row);
    a.fill([] { return T(1); }), b.fill([] { return T(1); });
    a.at(2, 5) = nan, b.at(4, 7) = inf, a.at(9, 3) = -inf;
    for (const CpuTarget target : supported_cpu_targets()) {
      run_on(target, args_of(a, b, c));
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          if (i == 2 || (i == 9 && j == 7)) {
            EXPECT_TRUE(std::isnan(c.at(i, j)));
          } else if (i == 9 || j == 7) {
            EXPECT_EQ(c.at(i, j), i == 9 ? -inf : inf);
          } else {
            EXPECT_EQ(c.at(i, j), T(n));
          }
        }
      }
    }
  }
}

TYPED_TEST(Gemm, BatchesEqualOneProductEach) {
  using T = TypeParam;
  const int64_t m = 5, n = 7, k = 11, batch = 9;
  std::vector<T> a(batch * m * k), b(batch * k * n), c(batch * m * n);
  for (T& x : a) x = random_value<T>();
  for (T& x : b) x = random_value<T>();
  for (const bool shared_b : {false, true}) {
    BatchedGemmArgs<T> g;
    g.one.m = m, g.one.n = n, g.one.k = k;
    g.one.a = a.data(), g.one.a_row = k, g.one.a_col = 1;
    g.one.b = b.data(), g.one.b_row = n, g.one.b_col = 1;
    g.one.c = c.data(), g.one.c_row = n, g.one.c_col = 1;
    g.batch = batch, g.a_batch = m * k, g.b_batch = shared_b ? 0 : k * n, g.c_batch = m * n;
    gemm_batched(g);
    for (int64_t s = 0; s < batch; ++s) {
      std::vector<T> expected(m * n);
      GemmArgs<T> one = g.one;
      one.a += s * g.a_batch, one.b += s * g.b_batch, one.c = expected.data();
      gemm(one);
      EXPECT_EQ(std::memcmp(expected.data(), c.data() + s * m * n, m * n * sizeof(T)), 0);
    }
  }
}

int g_asked, g_stops_at;

/// Stops at the block of that number.
bool stop_at_block() {
  if (++g_asked == g_stops_at) throw Interruption();
  return false;  // the request stays
}

/// Blocks that have asked when a product is stopped at one of them. The request stays up to then.
template <class Product>
int blocks_until(int stops_at, Product&& product) {
  g_asked = 0, g_stops_at = stops_at;
  set_interrupt_answer(&stop_at_block);
  request_interrupt();
  try {
    product();
  } catch (const Interruption&) {
  }
  set_interrupt_answer(nullptr);
  detail::interrupt_requested = false;
  return g_asked;
}

TYPED_TEST(Gemm, IsInterruptedBetweenBlocksOfRows) {
  using T = TypeParam;
  const int threads = num_threads();
  set_num_threads(1);
  constexpr int64_t kRows = 3600, kInner = 64, kColumns = 130;
  Matrix<T> a(kRows, kInner, kInner, 1), b(kInner, kColumns, kColumns, 1), c(kRows, kColumns, kColumns, 1);
  a.fill([] { return T(1); }), b.fill([] { return T(1); }), c.fill([] { return T(7); });
  const auto product = [&] { gemm(args_of(a, b, c)); };
  const int blocks = blocks_until(-1, product);
  EXPECT_GE(blocks, 10);
  c.fill([] { return T(7); });
  EXPECT_EQ(blocks_until(4, product), 4);
  int64_t written = 0;
  while (written < kRows && c.at(written, 0) == T(kInner)) ++written;
  EXPECT_EQ(written, 3 * kRows / blocks);
  for (int64_t i = written; i < kRows; ++i) EXPECT_EQ(c.at(i, kColumns - 1), T(7)) << i;
  set_num_threads(threads);
}

TYPED_TEST(Gemm, BatchesAreInterruptedBetweenEntries) {
  using T = TypeParam;
  const int threads = num_threads();
  set_num_threads(1);
  Matrix<T> a(4, 4, 4, 1), b(4, 4, 4, 1), c(32, 4, 4, 1);
  a.fill([] { return T(1); }), b.fill([] { return T(1); });
  BatchedGemmArgs<T> batch{args_of(a, b, c), 8, 0, 0, 16};
  batch.one.m = 4;
  EXPECT_EQ(blocks_until(3, [&] { gemm_batched(batch); }), 3);
  EXPECT_EQ(c.at(3 * 4 - 1, 0), T(4));
  EXPECT_EQ(c.at(3 * 4, 0), T(7));
  set_num_threads(threads);
}

template <class T>
class IntegerGemm : public ::testing::Test {};
using Integers = ::testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(IntegerGemm, Integers);

TYPED_TEST(IntegerGemm, WrapsAround) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  std::uniform_int_distribution<T> any(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  for (const Order order : kOrders) {
    auto a = make<T>(7, 33, order), b = make<T>(33, 70, order), c = make<T>(7, 70, order);
    for (auto* x : {&a, &b, &c}) x->fill([&] { return any(gemm_generator()); });
    auto before = c;
    gemm(args_of(a, b, c, T(3), T(-5)));
    for (int64_t i = 0; i < 7; ++i) {
      for (int64_t j = 0; j < 70; ++j) {
        U sum = 0;
        for (int64_t p = 0; p < 33; ++p) sum += static_cast<U>(a.at(i, p)) * static_cast<U>(b.at(p, j));
        EXPECT_EQ(c.at(i, j),
                  static_cast<T>(U(3) * sum + static_cast<U>(T(-5)) * static_cast<U>(before.at(i, j))));
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
