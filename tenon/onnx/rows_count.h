// What rows_index.cc counts element by element: equal rows, and n-grams. Of this room alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::onnx {

/// The different rows of a matrix [M, N], in order or as they come first: where each one is first, int64 [K],
/// which of them each row is, int64 [M], and how often each occurs, int64 [K].
struct UniqueRows {
  Tensor first, place, count;
};
UniqueRows unique_rows(const Tensor& matrix, bool sorted);

/// The n-grams of a TfIdfVectorizer, as its attributes have them.
struct NGrams {
  int64_t shortest = 1, longest = 1, most_skips = 0;
  std::vector<int64_t> pool;     ///< Their elements, those of length 1 first.
  std::vector<int64_t> starts;   ///< Where those of each length begin in it.
  std::vector<int64_t> columns;  ///< Where each one is counted.
};
/// How often each occurs in each row of integers, float32 [M, columns]; absent if the attributes do not fit
/// each other.
std::optional<Tensor> counts(const NGrams& grams, const Tensor& rows);

}  // namespace tenon::onnx
