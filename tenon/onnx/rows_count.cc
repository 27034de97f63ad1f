#include "tenon/onnx/rows_count.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::onnx {
namespace {

Tensor of_ints(const std::vector<int64_t>& values) {
  Tensor out = empty({static_cast<int64_t>(values.size())}, TensorOptions(kInt64));
  std::ranges::copy(values, out.data_ptr<int64_t>());
  return out;
}

/// Orders numbers, NaN last: the rows of a matrix.
template <class T>
UniqueRows unique_rows_of(const Tensor& matrix, bool sorted) {
  const T* const begin = matrix.data_ptr<T>();
  const auto rows = static_cast<size_t>(matrix.sizes()[0]), width = static_cast<size_t>(matrix.sizes()[1]);
  const auto compare = [&](size_t a, size_t b) {
    const T *const left = begin + a * width, *const right = begin + b * width;
    for (size_t i = 0; i < width; ++i) {
      if (left[i] < right[i]) return -1;
      if (right[i] < left[i]) return 1;
      const bool is_left_nan = left[i] != left[i], is_right_nan = right[i] != right[i];
      if (is_left_nan != is_right_nan) return is_left_nan ? 1 : -1;
    }
    return 0;
  };
  std::vector<size_t> order(rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return compare(a, b) < 0; });
  std::vector<int64_t> first, place(rows), count;
  for (size_t i = 0; i < rows; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      first.push_back(static_cast<int64_t>(order[i]));
      count.push_back(0);
    }
    ++count.back();
    place[order[i]] = std::ssize(first) - 1;
  }
  if (!sorted) {
    std::vector<size_t> by_first(first.size());
    std::iota(by_first.begin(), by_first.end(), size_t{0});
    std::ranges::sort(by_first, {}, [&](size_t i) { return first[i]; });
    std::vector<int64_t> first_then, count_then, now(first.size());
    for (const size_t i : by_first) {
      now[i] = std::ssize(first_then);
      first_then.push_back(first[i]);
      count_then.push_back(count[i]);
    }
    for (int64_t& at : place) at = now[static_cast<size_t>(at)];
    first = std::move(first_then);
    count = std::move(count_then);
  }
  return {of_ints(first), of_ints(place), of_ints(count)};
}

}  // namespace

UniqueRows unique_rows(const Tensor& matrix, bool sorted) {
  const Tensor host = matrix.detach();
  if (is_integral(host.dtype(), true)) return unique_rows_of<int64_t>(host.to(kInt64).contiguous(), sorted);
  return unique_rows_of<double>(host.to(kFloat64).contiguous(), sorted);
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
      if (next >= grams.columns.size() || grams.columns[next] < 0) return std::nullopt;
      const auto from = grams.pool.begin() + at;
      columns.emplace(std::vector(from, from + static_cast<int64_t>(n)), grams.columns[next]);
      width = std::max(width, grams.columns[next] + 1);
    }
  }
  // Columns are counted from 0, so that there are no more than n-grams.
  if (next != grams.columns.size() || width > std::ssize(grams.columns) || grams.shortest < 1 ||
      grams.longest > std::ssize(grams.starts) || grams.most_skips < 0)
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
