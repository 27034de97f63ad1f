// Matrices of any strides for tests of products, and the definition of an element, spelled out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/gemm/gemm.h"

namespace tenon::cpu {

/// A [rows, columns] matrix with chosen strides inside a larger buffer, whose other elements must stay as
/// they are.
template <class T>
struct Matrix {
  std::vector<T> memory;
  int64_t rows, columns, row, column, origin;

  Matrix(int64_t rows, int64_t columns, int64_t row, int64_t column)
      : rows(rows), columns(columns), row(row), column(column), origin(3) {
    int64_t low = 0, high = 0;
    for (const int64_t reach : {(rows - 1) * row, (columns - 1) * column}) {
      (reach < 0 ? low : high) += rows > 0 && columns > 0 ? reach : 0;
    }
    origin -= low;
    memory.assign(static_cast<size_t>(origin + high + 4), T(7));
  }
  T* data() { return memory.data() + origin; }
  T& at(int64_t i, int64_t j) { return data()[i * row + j * column]; }
  template <class F>
  void fill(F f) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) at(i, j) = f();
    }
  }
};

enum class Order { Row, Column, Padded, NegativeRow, NegativeColumn, Both };
inline constexpr Order kOrders[] = {Order::Row,         Order::Column,         Order::Padded,
                                    Order::NegativeRow, Order::NegativeColumn, Order::Both};

template <class T>
Matrix<T> make(int64_t rows, int64_t columns, Order order) {
  switch (order) {
    case Order::Row:
      return {rows, columns, columns, 1};
    case Order::Column:
      return {rows, columns, 1, rows};
    case Order::Padded:
      return {rows, columns, 2 * columns + 3, 2};
    case Order::NegativeRow:
      return {rows, columns, -columns, 1};
    case Order::NegativeColumn:
      return {rows, columns, columns, -1};
    case Order::Both:
      return {rows, columns, -1, -rows - 1};
  }
  return {rows, columns, columns, 1};
}

template <class T>
GemmArgs<T> args_of(Matrix<T>& a, Matrix<T>& b, Matrix<T>& c, T alpha = T(1), T beta = T(0)) {
  GemmArgs<T> g;
  g.m = a.rows, g.n = b.columns, g.k = a.columns;
  g.a = a.data(), g.a_row = a.row, g.a_col = a.column;
  g.b = b.data(), g.b_row = b.row, g.b_col = b.column;
  g.c = c.data(), g.c_row = c.row, g.c_col = c.column;
  g.alpha = alpha, g.beta = beta;
  return g;
}

/// The definition in gemm.h, spelled out for one element.
template <class T>
T defined(Matrix<T>& a, Matrix<T>& b, int64_t i, int64_t j, T alpha, T beta, T before) {
  T total = 0;
  for (int64_t start = 0; start < a.columns; start += 256) {
    T sum = 0;
    for (int64_t p = start; p < std::min<int64_t>(start + 256, a.columns); ++p) {
      sum = std::fma(a.at(i, p), b.at(p, j), sum);
    }
    total = start == 0 ? sum : total + sum;
  }
  const T scaled = alpha * total;
  if (beta == T(0)) return scaled;
  const T kept = beta * before;
  return scaled + kept;
}

template <class T>
bool same(T x, T y) {
  return std::memcmp(&x, &y, sizeof(T)) == 0 || (std::isnan(x) && std::isnan(y));
}

inline std::mt19937& gemm_generator() {
  static std::mt19937 g(20240117);
  return g;
}

template <class T>
T random_value() {
  return static_cast<T>(std::normal_distribution<double>()(gemm_generator()));
}

/// Columns at the edges of tiles and lines.
inline constexpr int64_t kSomeColumns[] = {0, 15, 16, 33, 512, 598, 599, 600};

}  // namespace tenon::cpu
