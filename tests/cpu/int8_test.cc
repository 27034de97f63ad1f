// Products of integers of 8 bits against int64, over shapes, strides, zeros, instruction sets and threads.
#include "backends/cpu/gemm/int8.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/cpu/gemm/int8_kernels.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

std::mt19937& int8_generator() {
  static std::mt19937 g(20260801);
  return g;
}
int64_t random_between(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(int8_generator());
}

/// Where elements are random, or all as far from 0 as they can be.
enum class Fill { Random, Least, Most };

/// A matrix of uint8 or int8 with its zeros.
struct ByteMatrix {
  int64_t rows, columns, row, column;
  bool is_signed;
  std::vector<uint8_t> memory;
  std::vector<int32_t> zeros;

  ByteMatrix(int64_t rows, int64_t columns, bool is_signed, bool turned, Fill fill)
      : rows(rows),
        columns(columns),
        row(turned ? 1 : columns + 3),
        column(turned ? rows + 3 : 1),
        is_signed(is_signed) {
    memory.resize(static_cast<size_t>((rows + 3) * (columns + 3)));
    for (uint8_t& x : memory) {
      const auto most = static_cast<uint8_t>(is_signed ? 127 : 255),
                 least = static_cast<uint8_t>(is_signed ? 128 : 0);
      x = fill == Fill::Random ? static_cast<uint8_t>(random_between(0, 255))
          : fill == Fill::Most ? most
                               : least;
    }
  }
  void add_zeros(int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      zeros.push_back(static_cast<int32_t>(is_signed ? random_between(-128, 127) : random_between(0, 255)));
  }
  int64_t at(int64_t i, int64_t j, int64_t zero) const {
    const uint8_t x = memory[static_cast<size_t>(i * row + j * column)];
    const int64_t value = is_signed ? static_cast<int8_t>(x) : x;
    return value - (zeros.empty() ? 0 : zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(zero)]);
  }
  Int8Zeros get_zeros() const { return {zeros.empty() ? nullptr : zeros.data(), zeros.size() == 1 ? 0 : 1}; }
  Int8Matrix get() const { return {memory.data(), row, column, is_signed, get_zeros()}; }
};

std::vector<int64_t> places(int64_t count, int64_t step) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(i * step);
  return all;
}
struct Way {
  CpuTarget target;
  bool byte_products;
};
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const CpuTarget target : supported_cpu_targets()) {
    all.push_back({target, false});
    if (has_byte_products(target)) all.push_back({target, true});
  }
  return all;
}

std::vector<std::byte> packed(const ByteMatrix& b) {
  std::vector<std::byte> out(static_cast<size_t>(int8_panels(b.columns) * int8_panel_bytes(b.rows)));
  const std::vector<int64_t> rows = places(b.rows, b.row), columns = places(b.columns, b.column);
  const Int8Right right{b.memory.data(), rows.data(), columns.data(), b.is_signed, b.get_zeros()};
  int8_pack(right, b.rows, b.columns, out.data());
  // Of any instruction set the same bytes.
  for (const Way& way : ways()) {
    std::vector<std::byte> other(out.size());
    int8_pack_with(int8_kernels(way.target, way.byte_products), right, b.rows, b.columns, 0,
                   int8_panels(b.columns), other.data());
    EXPECT_EQ(out, other);
  }
  return out;
}

/// Runs on each instruction set, and with `threads` threads; fails where a result is not that of int64.
void expect_product(const ByteMatrix& a, const ByteMatrix& b) {
  const int64_t m = a.rows, n = b.columns, k = a.columns, row = n + 5;
  const std::vector<std::byte> panels = packed(b);
  std::vector<int32_t> c;
  Int8Product g{.m = m, .n = n, .k = k, .a = a.get(), .packed = panels.data(), .c_row = row};
  const auto check = [&](const std::string& what) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < row; ++j) {
        int64_t sum = 0;
        for (int64_t p = 0; p < k && j < n; ++p) sum += a.at(i, p, i) * b.at(p, j, j);
        // What follows the columns stays as it was; sums wrap.
        const auto expected = j < n ? static_cast<int32_t>(static_cast<uint64_t>(sum)) : 7;
        ASSERT_EQ(c[static_cast<size_t>(i * row + j)], expected)
            << what << ": " << m << "x" << k << "x" << n << " at " << i << ", " << j;
      }
    }
  };
  const auto clear = [&] {
    c.assign(static_cast<size_t>(m * row), 7);
    g.c = c.data();
  };
  for (const Way& way : ways()) {
    clear();
    if (m > 0 && n > 0) int8_product_with(int8_kernels(way.target, way.byte_products), g);
    check(std::string(name(way.target)) + (way.byte_products ? " with byte products" : ""));
  }
  for (const int threads : {1, 2, 3}) {
    const int before = num_threads();
    set_num_threads(threads);
    clear();
    int8_product(g);
    set_num_threads(before);
    check(std::to_string(threads) + " threads");
  }
}

TEST(Int8, ProductsAreExactForAnySigns) {
  for (int i = 0; i < 200; ++i) {
    const int64_t m = random_between(1, 20), k = random_between(0, 80), n = random_between(1, 70);
    const Fill fill = i % 5 == 0 ? (i % 2 == 0 ? Fill::Least : Fill::Most) : Fill::Random;
    ByteMatrix a(m, k, i % 2 == 0, i % 3 == 1, fill),
        b(k, n, i % 4 < 2, i % 3 == 2, i % 7 == 0 ? Fill::Least : fill);
    if (i % 3 != 0) a.add_zeros(i % 2 == 0 ? 1 : m);
    if (i % 5 != 0) b.add_zeros(i % 2 == 1 ? 1 : n);
    expect_product(a, b);
    if (HasFatalFailure()) return;
  }
}

TEST(Int8, LargeProductsAreCutIntoBlocksAndThreads) {
  for (const auto& [m, k, n] : {std::array{150, 1029, 40}, std::array{3, 600, 1500}, std::array{1, 2048, 700},
                                std::array{40, 40000, 17}, std::array{700, 260, 33}}) {
    ByteMatrix a(m, k, m % 2 == 0, false, Fill::Random), b(k, n, n % 2 == 0, false, Fill::Random);
    a.add_zeros(m);
    b.add_zeros(n);
    expect_product(a, b);
    if (HasFatalFailure()) return;
  }
}

TEST(Int8, SumsWrapAtThirtyTwoBits) {
  const ByteMatrix a(2, 70000, false, false, Fill::Most), b(70000, 3, true, false, Fill::Least);
  expect_product(a, b);
}

TEST(Int8, EmptyProductsWriteNothingOrZeros) {
  expect_product(ByteMatrix(0, 3, false, false, Fill::Random), ByteMatrix(3, 5, true, false, Fill::Random));
  expect_product(ByteMatrix(3, 4, false, false, Fill::Random), ByteMatrix(4, 0, true, false, Fill::Random));
  ByteMatrix a(3, 0, true, false, Fill::Random), b(0, 5, false, false, Fill::Random);
  a.add_zeros(1);
  b.add_zeros(5);
  expect_product(a, b);
}

}  // namespace
}  // namespace tenon::cpu
