#include "tenon/iter/geometry.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "tenon/core/error.h"
#include "tenon/core/tensor.h"
#include "tenon/iter/overlap.h"

namespace tenon {

Dims infer_size(IntArrayRef sizes, int64_t numel, const char* op) {
  Dims result = sizes.to_dims();
  int64_t known = 1;
  std::optional<size_t> unknown;
  bool overflow = false;
  for (size_t d = 0; d < result.size(); ++d) {
    if (result[d] == -1) {
      TENON_CHECK(!unknown, Shape,
                  fmt::format("{}: only one dimension can be inferred, got {}", op, to_string(sizes)));
      unknown = d;
    } else {
      TENON_CHECK(result[d] >= 0, Shape, fmt::format("{}: invalid shape dimension {}", op, result[d]));
      overflow |= __builtin_mul_overflow(known, result[d], &known);
    }
  }
  const auto invalid = [&] {
    return fmt::format("{}: shape {} is invalid for input of size {}", op, to_string(sizes), numel);
  };
  TENON_CHECK(!overflow, Shape, invalid());
  if (unknown) {
    TENON_CHECK(
        known != 0, Shape,
        fmt::format(
            "{}: cannot reshape tensor of {} elements into shape {} because the unspecified dimension "
            "size -1 can be any value and is ambiguous",
            op, numel, to_string(sizes)));
    TENON_CHECK(numel % known == 0, Shape, invalid());
    result[*unknown] = numel / known;
  } else {
    TENON_CHECK(known == numel, Shape, invalid());
  }
  return result;
}

std::optional<Dims> view_strides(IntArrayRef old_sizes, IntArrayRef old_strides, IntArrayRef sizes) {
  const bool empty = std::any_of(old_sizes.begin(), old_sizes.end(), [](int64_t s) { return s == 0; });
  if (empty) {
    if (old_sizes == sizes) return old_strides.to_dims();
    return contiguous_strides(sizes);
  }
  Dims strides(sizes.size(), 1);
  // From the back, the old dimensions fall into runs that a single stride can walk; new dimensions must
  // divide them.
  size_t next = sizes.size();
  int64_t run = 1;
  int64_t step = old_strides.empty() ? 1 : old_strides.back();
  for (size_t d = old_sizes.size(); d-- > 0;) {
    run *= old_sizes[d];
    const bool ends = d == 0 || (old_sizes[d - 1] != 1 && old_strides[d - 1] != run * step);
    if (!ends) continue;
    int64_t covered = 1;
    while (next > 0 && (covered < run || sizes[next - 1] == 1)) {
      --next;
      strides[next] = covered * step;
      covered *= sizes[next];
    }
    if (covered != run) return std::nullopt;
    if (d > 0) {
      run = 1;
      step = old_strides[d - 1];
    }
  }
  // A tensor of one element: what is left has size 1.
  if (old_sizes.empty()) return Dims(sizes.size(), 1);
  if (next != 0) return std::nullopt;
  return strides;
}

SliceRange slice_range(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                       const char* op) {
  TENON_CHECK(step != 0, Value, fmt::format("{}: slice step cannot be zero", op));
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto place = [&](std::optional<int64_t> at, int64_t missing) {
    if (!at) return missing;
    const int64_t counted = *at < 0 ? *at + size : *at;
    return std::clamp(counted, low, high);
  };
  const int64_t first = place(start, step > 0 ? low : high);
  const int64_t end = place(stop, step > 0 ? high : low);
  int64_t length = 0;
  // Unsigned, because -step overflows for the lowest integer.
  if (step > 0 && first < end) {
    length = (end - first - 1) / step + 1;
  } else if (step < 0 && end < first) {
    const uint64_t magnitude = 0 - static_cast<uint64_t>(step);
    length = static_cast<int64_t>(static_cast<uint64_t>(first - end - 1) / magnitude) + 1;
  }
  return {length > 0 ? first : 0, length};
}

Dims wrap_dims(IntArrayRef dims, int64_t ndim, const char* op) {
  Dims result(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    result[i] = wrap_dim(dims[i], ndim, op);
    for (size_t j = 0; j < i; ++j) {
      TENON_CHECK(result[i] != result[j], Value,
                  fmt::format("{}: dim {} appears multiple times in the list of dims", op, result[i]));
    }
  }
  return result;
}

bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides) {
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    if (sizes[static_cast<size_t>(a)] < 2) return false;
    if (sizes[static_cast<size_t>(b)] < 2) return true;
    return strides[static_cast<size_t>(a)] < strides[static_cast<size_t>(b)];
  });
  int64_t expected = 1;
  for (const int64_t i : order) {
    const auto d = static_cast<size_t>(i);
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

Dims preserved_strides(IntArrayRef sizes, IntArrayRef strides) {
  if (is_non_overlapping_and_dense(sizes, strides)) return strides.to_dims();
  if (overlaps_itself(sizes, strides)) return contiguous_strides(sizes);
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(strides[static_cast<size_t>(a)]) > std::abs(strides[static_cast<size_t>(b)]);
  });
  Dims result(sizes.size());
  int64_t next = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(order[i]);
    result[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return result;
}

bool broadcasts(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  for (size_t d = 1; d <= from.size(); ++d) {
    const int64_t size = from[from.size() - d];
    if (size != 1 && size != to[to.size() - d]) return false;
  }
  return true;
}

int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
  offset = std::max(offset, -std::numeric_limits<int64_t>::max());  // so that it has a negation
  return std::max<int64_t>(offset >= 0 ? std::min(rows, columns - std::min(offset, columns))
                                       : std::min(rows - std::min(-offset, rows), columns),
                           0);
}

Dims unfolded_sizes(IntArrayRef sizes, int64_t dimension, int64_t size, int64_t step) {
  const auto d = static_cast<size_t>(wrap_dim(dimension, static_cast<int64_t>(sizes.size()), "unfold"));
  const int64_t have = sizes.empty() ? 1 : sizes[d];
  TENON_CHECK(
      size >= 0 && size <= have, Value,
      fmt::format("unfold: maximum size for tensor at dimension {} is {} but size is {}", d, have, size));
  TENON_CHECK(step > 0, Value, fmt::format("unfold: step is {} but must be > 0", step));
  Dims result = sizes.to_dims();
  TENON_CHECK(
      result.empty() || !__builtin_add_overflow((have - size) / step, 1, &result[d]), Shape,
      fmt::format("unfold: the windows of dimension {} of {} are more than int64 can count", d, have));
  result.push_back(size);
  checked_numel(result, "unfold");
  return result;
}

StoragePlaces::StoragePlaces(IntArrayRef input_sizes, IntArrayRef input_strides, int64_t input_offset,
                             IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  TENON_CHECK(input_sizes.size() == input_strides.size() && sizes.size() == strides.size(), Shape,
              "as_strided: mismatch in length of strides and shape");
  checked_numel(input_sizes, "as_strided");
  checked_numel(sizes, "as_strided");
  TENON_CHECK(
      !overlaps_itself(input_sizes, input_strides), NotImplemented,
      fmt::format("as_strided: no derivative for an input whose elements share memory (sizes {}, strides {})",
                  to_string(input_sizes), to_string(input_strides)));
  const Extent input = extent(input_sizes, input_strides, "as_strided"),
               view = extent(sizes, strides, "as_strided");
  const auto add = [](int64_t a, int64_t b) {
    int64_t sum = 0;
    TENON_CHECK(!__builtin_add_overflow(a, b, &sum), Shape, "as_strided: the geometries reach beyond int64");
    return sum;
  };
  origin = std::min(add(input_offset, input.low), add(offset, view.low));
  const int64_t end = std::max(add(input_offset, input.high), add(offset, view.high));
  TENON_CHECK(!__builtin_sub_overflow(end, origin, &count), Shape,
              "as_strided: the geometries reach beyond int64");
}

}  // namespace tenon
