#include "tenon/onnx/rows_count.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <span>

#include "tenon/generated/factory/functions.h"

namespace tenon::onnx {
namespace {

Tensor of_ints(const std::vector<int64_t>& values) {
  Tensor out = empty({static_cast<int64_t>(values.size())}, TensorOptions(kInt64));
  std::ranges::copy(values, out.data_ptr<int64_t>());
  return out;
}

/// Integers that compare as the elements do: NaN is the largest, and -0 is 0.
std::vector<int64_t> keys_of(const Tensor& x) {
  const bool is_real = is_floating_point(x.dtype());
  const Tensor dense = x.detach().to(is_real ? kFloat64 : kInt64).contiguous();
  const auto* const begin = static_cast<const int64_t*>(dense.data_ptr());
  std::vector<int64_t> out(begin, begin + dense.numel());
  if (is_real)
    for (int64_t& key : out) {
      const double value = std::bit_cast<double>(key) + 0.0;
      key = std::bit_cast<int64_t>(value);
      if (key < 0) key ^= INT64_MAX;
      if (value != value) key = INT64_MAX;
    }
  return out;
}

}  // namespace

UniqueRows unique_rows(const Tensor& matrix, bool sorted) {
  const std::vector<int64_t> keys = keys_of(matrix);
  const auto rows = static_cast<size_t>(matrix.sizes()[0]), width = static_cast<size_t>(matrix.sizes()[1]);
  const auto row = [&](int64_t i) { return std::span(keys).subspan(static_cast<size_t>(i) * width, width); };
  std::vector<int64_t> order(rows), first_of(rows), first, place(rows), count;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    const auto [left, right] = std::ranges::mismatch(row(a), row(b));
    return left == row(a).end() ? a < b : *left < *right;
  });
  for (size_t i = 0; i < rows; ++i) {
    const bool is_new = i == 0 || !std::ranges::equal(row(order[i - 1]), row(order[i]));
    if (is_new) first.push_back(order[i]);
    first_of[static_cast<size_t>(order[i])] = first.back();
  }
  if (!sorted) {
    first.clear();
    for (size_t i = 0; i < rows; ++i)
      if (first_of[i] == static_cast<int64_t>(i)) first.push_back(first_of[i]);
  }
  count.resize(first.size());
  for (size_t i = 0; i < first.size(); ++i) order[static_cast<size_t>(first[i])] = static_cast<int64_t>(i);
  for (size_t i = 0; i < rows; ++i) {
    place[i] = order[static_cast<size_t>(first_of[i])];
    ++count[static_cast<size_t>(place[i])];
  }
  return {of_ints(first), of_ints(place), of_ints(count)};
}

std::optional<Tensor> counts(const NGrams& grams, const Tensor& rows) {
  // The n-grams, and where they are counted.
  std::map<std::vector<int64_t>, int64_t> columns;
  int64_t width = 0;
  size_t next = 0;
  for (size_t n = 1; n <= grams.starts.size(); ++n) {
    const int64_t begin = grams.starts[n - 1];
    const int64_t end = n < grams.starts.size() ? grams.starts[n] : std::ssize(grams.pool);
    if (begin < 0 || end < begin || end > std::ssize(grams.pool)) return std::nullopt;
    for (int64_t at = begin; at + static_cast<int64_t>(n) <= end; at += static_cast<int64_t>(n), ++next) {
      // Columns are counted from 0, so that there are no more than n-grams.
      if (next >= grams.columns.size() || grams.columns[next] < 0 ||
          grams.columns[next] >= std::ssize(grams.columns))
        return std::nullopt;
      const auto from = grams.pool.begin() + at;
      columns.emplace(std::vector(from, from + static_cast<int64_t>(n)), grams.columns[next]);
      width = std::max(width, grams.columns[next] + 1);
    }
  }
  if (next != grams.columns.size() || grams.shortest < 1 || grams.longest > std::ssize(grams.starts) ||
      grams.most_skips < 0)
    return std::nullopt;
  const Tensor dense = rows.to(kInt64).contiguous();
  const int64_t count = dense.sizes()[0], length = dense.sizes()[1];
  Tensor out = zeros({count, width}, TensorOptions(kFloat32));
  for (int64_t row = 0; row < count; ++row) {
    const int64_t* const begin = dense.data_ptr<int64_t>() + row * length;
    for (int64_t n = grams.shortest; n <= grams.longest; ++n)
      // One element has nothing to skip.
      for (int64_t step = 1; step <= (n == 1 ? 1 : std::min(grams.most_skips, length) + 1); ++step)
        for (int64_t at = 0; at + (n - 1) * step < length; ++at) {
          std::vector<int64_t> gram;
          for (int64_t i = 0; i < n; ++i) gram.push_back(begin[at + i * step]);
          if (const auto found = columns.find(gram); found != columns.end())
            ++out.data_ptr<float>()[row * width + found->second];
        }
  }
  return out;
}

}  // namespace tenon::onnx
