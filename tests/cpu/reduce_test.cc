// Reductions against their written definition (bit for bit, in scalar code) and against long double, over
// lengths, pieces, strides, instruction sets and threads.
#include "backends/cpu/reduce/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/reduce/arg_reduce.h"
#include "backends/cpu/reduce/reduce_kernels.h"
#include "tenon/core/half.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

std::mt19937& reduce_generator() {
  static std::mt19937 g(20240118);
  return g;
}

template <class T>
T random_value() {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<T>(reduce_generator()() & 1);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>((static_cast<uint64_t>(reduce_generator()()) << 32) | reduce_generator()());
  } else {
    return static_cast<T>(std::normal_distribution<double>()(reduce_generator()));
  }
}

template <class T>
std::vector<T> random_values(size_t n) {
  std::vector<T> x(n);
  for (T& e : x) e = random_value<T>();
  return x;
}

template <class T>
T apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::Sum) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    if (op == ReduceOp::Prod) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  if (op == ReduceOp::Sum) return a + b;
  if (op == ReduceOp::Prod) return a * b;
  if (a != a || b != b) return a != a ? a : b;
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) == (op == ReduceOp::Max) ? b : a;
  }
  return op == ReduceOp::Max ? (a > b ? a : b) : (a < b ? a : b);
}

/// The tree of reduce.h, spelled out: recursion where the code counts.
template <class T>
T defined_chunk(ReduceOp op, const T* p, size_t n) {
  std::vector<T> lanes(16, reduce_identity<T>(op));
  for (size_t i = 0; i < n; ++i) lanes[i % 16] = apply(op, lanes[i % 16], p[i]);
  for (size_t half : {8, 4, 2, 1}) {
    for (size_t l = 0; l < half; ++l) lanes[l] = apply(op, lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

template <class T>
T defined_full_tree(ReduceOp op, const T* chunks, size_t count) {
  if (count == 1) return chunks[0];
  return apply(op, defined_full_tree(op, chunks, count / 2),
               defined_full_tree(op, chunks + count / 2, count / 2));
}

template <class T>
T defined(ReduceOp op, const std::vector<T>& x) {
  if (x.empty()) return reduce_identity<T>(op);
  std::vector<T> chunks;
  size_t i = 0;
  for (; i + 1024 <= x.size(); i += 1024) chunks.push_back(defined_chunk(op, x.data() + i, 1024));
  // Full trees for each set bit of the number of whole chunks, largest first; then what is left of a chunk.
  std::vector<T> parts;
  size_t at = 0;
  for (size_t bit = size_t{1} << 40; bit > 0; bit /= 2) {
    if ((chunks.size() & bit) == 0) continue;
    parts.push_back(defined_full_tree(op, chunks.data() + at, bit));
    at += bit;
  }
  if (i < x.size()) parts.push_back(defined_chunk(op, x.data() + i, x.size() - i));
  T value = parts.back();
  for (size_t p = parts.size() - 1; p-- > 0;) value = apply(op, parts[p], value);
  return value;
}

template <class T>
bool same_value(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b);
}

constexpr ReduceOp kOps[] = {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min};

template <class T>
bool has(ReduceOp op) {
  return !std::is_same_v<T, uint8_t> || op == ReduceOp::Max || op == ReduceOp::Min;
}

template <class T>
class Reduce : public ::testing::Test {};
using ReduceTypes = ::testing::Types<float, double, int32_t, int64_t, uint8_t>;
TYPED_TEST_SUITE(Reduce, ReduceTypes);

const size_t kLengths[] = {0,    1,    2,    15,   16,   17,       100,          1023,
                           1024, 1025, 2047, 2048, 3000, 5 * 1024, 7 * 1024 + 5, 40000};

TYPED_TEST(Reduce, ContiguousHasTheDefinedBits) {
  using T = TypeParam;
  for (const size_t n : kLengths) {
    const auto x = random_values<T>(n);
    for (const ReduceOp op : kOps) {
      if (!has<T>(op)) continue;
      EXPECT_TRUE(same_value(reduce_contiguous(op, x.data(), n), defined(op, x)))
          << n << " op " << static_cast<int>(op);
    }
  }
}

TYPED_TEST(Reduce, RowsSideBySideHaveTheDefinedBits) {
  using T = TypeParam;
  for (const size_t rows : {1, 3, 4, 8, 13}) {
    for (const size_t n : kLengths) {
      std::vector<std::vector<T>> x(rows);
      for (auto& row : x) row = random_values<T>(n);
      for (const ReduceOp op : kOps) {
        if (!has<T>(op)) continue;
        RowsReducer<T> reducer(op, rows);
        for (const size_t piece : {n, size_t{1024}, size_t{700}}) {
          reducer.reset();
          std::vector<const T*> from(rows);
          for (size_t i = 0; i < n; i += piece) {
            for (size_t r = 0; r < rows; ++r) from[r] = x[r].data() + i;
            reducer.feed(from.data(), rows, std::min(piece, n - i), i + piece >= n);
          }
          std::vector<T> results(rows);
          reducer.result(results.data(), rows);
          for (size_t r = 0; r < rows; ++r) {
            EXPECT_TRUE(same_value(results[r], defined(op, x[r])))
                << rows << " rows of " << n << " by " << piece << " op " << static_cast<int>(op);
          }
        }
      }
    }
  }
}

TYPED_TEST(Reduce, PiecesDoNotChangeBits) {
  using T = TypeParam;
  const auto x = random_values<T>(9000);
  for (const ReduceOp op : kOps) {
    if (!has<T>(op)) continue;
    const T whole = reduce_contiguous(op, x.data(), x.size());
    for (const size_t longest : {1, 7, 100, 1500, 4000}) {
      Reducer<T> reducer(op);
      for (size_t i = 0; i < x.size();) {
        const size_t count = std::min<size_t>(1 + reduce_generator()() % longest, x.size() - i);
        reducer.feed(x.data() + i, count);
        i += count;
      }
      EXPECT_TRUE(same_value(reducer.result(), whole)) << longest << " op " << static_cast<int>(op);
    }
  }
}

TYPED_TEST(Reduce, OuterDimensionHasTheBitsOfEachColumnAlone) {
  using T = TypeParam;
  for (const size_t outputs : {1, 3, 8, 127, 300}) {
    for (const size_t n : {0, 1, 5, 16, 33, 1024, 2500}) {
      const ptrdiff_t pitch = static_cast<ptrdiff_t>(outputs) + 5;
      auto x = random_values<T>(n * static_cast<size_t>(pitch) + 1);
      for (const bool backwards : {false, true}) {
        const ptrdiff_t stride = backwards ? -pitch : pitch;
        const T* first = x.data() + (backwards && n > 0 ? static_cast<ptrdiff_t>(n - 1) * pitch : 0);
        for (const ReduceOp op : kOps) {
          if (!has<T>(op)) continue;
          std::vector<T> out(outputs + 1, T(1));
          reduce_outer(op, first, stride, n, out.data(), outputs);
          EXPECT_EQ(out[outputs], T(1));
          for (const size_t j : {size_t{0}, outputs / 2, outputs - 1}) {
            std::vector<T> column(n);
            for (size_t r = 0; r < n; ++r)
              column[r] = first[static_cast<ptrdiff_t>(r) * stride + static_cast<ptrdiff_t>(j)];
            ASSERT_TRUE(same_value(out[j], defined(op, column)))
                << outputs << " x " << n << " op " << static_cast<int>(op);
          }
        }
      }
    }
  }
}

TYPED_TEST(Reduce, OuterPiecesDoNotChangeBits) {
  using T = TypeParam;
  const size_t n = 3000, outputs = 21;
  const auto x = random_values<T>(n * outputs);
  std::vector<T> whole(outputs), pieces(outputs);
  reduce_outer(ReduceOp::Max, x.data(), outputs, n, whole.data(), outputs);
  OuterReducer<T> reducer(ReduceOp::Max, outputs);
  for (size_t r = 0; r < n;) {
    const size_t count = std::min<size_t>(1 + reduce_generator()() % 700, n - r);
    reducer.feed(x.data() + r * outputs, outputs, count);
    r += count;
  }
  reducer.result(pieces.data());
  EXPECT_EQ(whole, pieces);
}

TYPED_TEST(Reduce, InstructionSetsAgree) {
  using T = TypeParam;
  const auto x = random_values<T>(11 * kReduceChunk + 77);
  for (const ReduceOp op : kOps) {
    if (!has<T>(op)) continue;
    for (const CpuTarget target : supported_cpu_targets()) {
      const ReduceKernels<T>& k = reduce_kernels<T>(target, op);
      T chunks[11];
      k.chunks(x.data(), 11, true, chunks);
      for (size_t c = 0; c < 11; ++c) {
        EXPECT_TRUE(same_value(chunks[c], defined_chunk(op, x.data() + c * kReduceChunk, kReduceChunk)))
            << name(target);
      }
      std::vector<T> lanes(kReduceLanes, reduce_identity<T>(op));
      k.lanes(lanes.data(), 0, x.data(), 77);
      EXPECT_TRUE(same_value(k.fold(lanes.data()), defined_chunk(op, x.data(), 77))) << name(target);

      std::vector<T> strip(kReduceLanes * kReduceStrip), out(kReduceStrip);
      k.rows(strip.data(), 0, 100, x.data(), 107, 60);
      k.fold_strip(out.data(), strip.data(), kReduceStrip, kReduceLanes, 112);
      for (const size_t j : {0, 57, 99}) {
        std::vector<T> column(60);
        for (size_t r = 0; r < 60; ++r) column[r] = x[r * 107 + j];
        EXPECT_TRUE(same_value(out[j], defined_chunk(op, column.data(), 60))) << name(target);
      }
      // Columns no longer than the lanes, as they lie; and rows from the last element to the first.
      for (const size_t rows : {1, 7, 16}) {
        k.fold_strip(out.data(), x.data(), 107, rows, 96);
        for (const size_t j : {0, 57, 95}) {
          std::vector<T> column(rows);
          for (size_t r = 0; r < rows; ++r) column[r] = x[r * 107 + j];
          EXPECT_TRUE(same_value(out[j], defined_chunk(op, column.data(), rows))) << name(target);
        }
      }
      for (const size_t n : {1, 16, 77, 1024}) {
        std::vector<T> reversed(x.begin(), x.begin() + static_cast<ptrdiff_t>(n));
        std::reverse(reversed.begin(), reversed.end());
        const std::vector<const T*> rows(7, x.data() + n - 1);
        T results[7];
        k.row_chunks_backward(rows.data(), 7, n, results);
        for (const T& got : results)
          EXPECT_TRUE(same_value(got, defined_chunk(op, reversed.data(), n))) << name(target);
      }
    }
  }
}

TYPED_TEST(Reduce, ThreadsDoNotChangeBits) {
  using T = TypeParam;
  const auto x = random_values<T>(1500 * kReduceChunk + 3);
  const int threads = num_threads();
  for (const ReduceOp op : kOps) {
    if (!has<T>(op)) continue;
    set_num_threads(1);
    const T one = reduce_contiguous(op, x.data(), x.size());
    std::vector<T> outer_one(1000), outer_many(1000);
    reduce_outer(op, x.data(), 1000, 1500, outer_one.data(), 1000);
    for (const int t : {2, 3}) {
      set_num_threads(t);
      EXPECT_TRUE(same_value(reduce_contiguous(op, x.data(), x.size()), one));
      reduce_outer(op, x.data(), 1000, 1500, outer_many.data(), 1000);
      EXPECT_EQ(std::memcmp(outer_one.data(), outer_many.data(), 1000 * sizeof(T)), 0);
    }
  }
  set_num_threads(threads);
}

TYPED_TEST(Reduce, ArgTakesTheFirstOfEqualElements) {
  using T = TypeParam;
  EXPECT_EQ(arg_reduce_contiguous<T>(ReduceOp::Max, nullptr, 0).index, -1);
  for (const size_t n : {1, 2, 10, 1024, 1025, 5000}) {
    std::vector<T> x(n);
    for (T& e : x) e = static_cast<T>(reduce_generator()() % 2);
    for (const ReduceOp op : {ReduceOp::Max, ReduceOp::Min}) {
      size_t expected = 0;
      for (size_t i = 1; i < n; ++i) {
        if (op == ReduceOp::Max ? x[i] > x[expected] : x[i] < x[expected]) expected = i;
      }
      EXPECT_EQ(arg_reduce_contiguous(op, x.data(), n).index, static_cast<int64_t>(expected));
      ArgReducer<T> pieces(op);
      for (size_t i = 0; i < n; i += 300) pieces.feed(x.data() + i, std::min<size_t>(300, n - i));
      EXPECT_EQ(pieces.result().index, static_cast<int64_t>(expected));
      // As columns: rows of one element each, then the same row in three columns.
      std::vector<T> wide(3 * n);
      for (size_t i = 0; i < 3 * n; ++i) wide[i] = x[i / 3];
      T value[3];
      int64_t index[3];
      arg_reduce_outer(op, wide.data(), 3, n, value, index, 3);
      EXPECT_EQ(index[0], static_cast<int64_t>(expected));
      EXPECT_EQ(index[2], static_cast<int64_t>(expected));
      EXPECT_EQ(value[1], x[expected]);
    }
  }
}

// Elements that are converted as they are loaded, against those that were converted before.
template <class T, class From>
void converting_changes_no_bits(ReduceSource source, std::initializer_list<ReduceOp> ops) {
  const size_t n = 9000, outputs = 300;
  std::vector<From> x(n);
  std::vector<T> converted(n);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<From>)
      x[i] = static_cast<From>(reduce_generator()());
    else
      x[i] = From(static_cast<float>(random_value<float>()));
    converted[i] =
        source == ReduceSource::Bool
            ? static_cast<T>(static_cast<float>(x[i]) != 0)
            : static_cast<T>(static_cast<std::conditional_t<std::is_integral_v<From>, From, float>>(x[i]));
  }
  for (const ReduceOp op : ops) {
    ASSERT_TRUE(reduces_from<T>(source, op));
    for (const size_t length : {0, 1, 15, 100, 1023, 1024, 1025, 9000}) {
      EXPECT_TRUE(same_value(reduce_contiguous_from<T>(op, source, x.data(), length),
                             reduce_contiguous(op, converted.data(), length)))
          << length << " op " << static_cast<int>(op);
    }
    std::vector<T> out(outputs), expected(outputs);
    const auto stride = static_cast<ptrdiff_t>(outputs);
    for (const bool backwards : {false, true}) {
      const size_t first = backwards ? n - outputs : 0;
      const ptrdiff_t step = backwards ? -stride : stride;
      reduce_outer_from(op, source, x.data() + first, step, n / outputs, out.data(), outputs - 7);
      reduce_outer(op, converted.data() + first, step, n / outputs, expected.data(), outputs - 7);
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), (outputs - 7) * sizeof(T)), 0)
          << static_cast<int>(op);
    }
    for (const CpuTarget target : supported_cpu_targets()) {
      const ReduceKernels<T>& k = reduce_kernels<T>(target, op);
      const ReduceWalks<T>& from = k.from[static_cast<size_t>(source)];
      T chunks[2][8];
      from.chunks(x.data(), 8, false, chunks[0]);
      k.chunks(converted.data(), 8, true, chunks[1]);
      EXPECT_EQ(std::memcmp(chunks[0], chunks[1], sizeof chunks[0]), 0) << name(target);
      std::vector<T> lanes[2] = {std::vector<T>(kReduceLanes, reduce_identity<T>(op)),
                                 std::vector<T>(kReduceLanes, reduce_identity<T>(op))};
      from.lanes(lanes[0].data(), 3, x.data(), 999);
      k.lanes(lanes[1].data(), 3, converted.data(), 999);
      EXPECT_TRUE(same_value(k.fold(lanes[0].data()), k.fold(lanes[1].data()))) << name(target);
    }
  }
}

TEST(ReduceSource, ConvertingLoadsHaveTheBitsOfConvertedElements) {
  using enum ReduceOp;
  converting_changes_no_bits<float, Half>(ReduceSource::Float16, {Sum, Max, Min});
  converting_changes_no_bits<float, BFloat16>(ReduceSource::BFloat16, {Sum, Max, Min});
  converting_changes_no_bits<int64_t, uint8_t>(ReduceSource::Bool, {Sum});
  converting_changes_no_bits<int64_t, uint8_t>(ReduceSource::UInt8, {Sum});
  converting_changes_no_bits<int64_t, int8_t>(ReduceSource::Int8, {Sum});
  converting_changes_no_bits<int64_t, int16_t>(ReduceSource::Int16, {Sum});
  converting_changes_no_bits<int64_t, int32_t>(ReduceSource::Int32, {Sum});
}

template <class T>
class FloatReduce : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FloatReduce, Floats);

TYPED_TEST(FloatReduce, SumIsWithinItsErrorBoundOfLongDouble) {
  using T = TypeParam;
  for (const size_t n : {10, 1000, 100000, 3000000}) {
    const auto x = random_values<T>(n);
    long double exact = 0, magnitude = 0;
    for (const T e : x) exact += e, magnitude += std::fabs(static_cast<long double>(e));
    // 64 additions in a lane, 4 to fold them, one a level of the tree: Higham (2002), section 4.2.
    const long double depth = 64 + 4 + std::ceil(std::log2(n / 1024.0 + 2));
    EXPECT_LE(std::fabs(reduce_contiguous(ReduceOp::Sum, x.data(), n) - exact),
              depth * std::numeric_limits<T>::epsilon() / 2 * magnitude);
  }
}

TYPED_TEST(FloatReduce, PairsAreSummedAsTwoRows) {
  using T = TypeParam;
  for (const size_t n : {0, 1, 17, 1023, 1024, 1025, 40 * 1024 + 3}) {
    const auto x = random_values<T>(2 * n);
    std::vector<T> parts[2];
    for (size_t i = 0; i < 2 * n; ++i) parts[i % 2].push_back(x[i]);
    T first = 1, second = 1;
    sum_pairs(x.data(), n, &first, &second);
    EXPECT_TRUE(same_value(first, defined(ReduceOp::Sum, parts[0]))) << n;
    EXPECT_TRUE(same_value(second, defined(ReduceOp::Sum, parts[1]))) << n;
    for (const CpuTarget target : supported_cpu_targets()) {
      if (n < kReduceChunk) continue;
      reduce_kernels<T>(target, ReduceOp::Sum).pair_chunks(x.data(), 1, &first, &second);
      EXPECT_TRUE(same_value(first, defined_chunk(ReduceOp::Sum, parts[0].data(), kReduceChunk)))
          << name(target);
      EXPECT_TRUE(same_value(second, defined_chunk(ReduceOp::Sum, parts[1].data(), kReduceChunk)))
          << name(target);
    }
  }
}

TYPED_TEST(FloatReduce, OfZerosOfBothSignsTheOrderDoesNotMatter) {
  using T = TypeParam;
  for (const size_t n : {2, 17, 100, 1024, 2500}) {
    for (const size_t at : {size_t{0}, n / 2, n - 1}) {
      for (const bool max : {true, false}) {
        const ReduceOp op = max ? ReduceOp::Max : ReduceOp::Min;
        // Zeros that lose, and one that wins.
        std::vector<T> x(n, max ? T(-0.0) : T(0));
        const auto check = [&](bool negative) {
          EXPECT_EQ(std::signbit(reduce_contiguous(op, x.data(), n)), negative) << n << " " << at;
          T column[2];
          std::vector<T> wide;
          for (const T e : x) wide.push_back(e), wide.push_back(e);
          reduce_outer(op, wide.data(), 2, n, column, 2);
          EXPECT_EQ(std::signbit(column[1]), negative) << n << " " << at;
          for (const CpuTarget target : supported_cpu_targets()) {
            std::vector<T> lanes(kReduceLanes, reduce_identity<T>(op));
            reduce_kernels<T>(target, op).lanes(lanes.data(), 0, x.data(), n);
            EXPECT_EQ(std::signbit(reduce_kernels<T>(target, op).fold(lanes.data())), negative)
                << name(target);
          }
        };
        check(max);
        x[at] = max ? T(0) : T(-0.0);
        check(!max);
        const auto found = arg_reduce_contiguous(op, x.data(), n);
        EXPECT_EQ(found.index, 0);
        EXPECT_EQ(std::signbit(found.value), std::signbit(x[0]));
      }
    }
  }
}

TYPED_TEST(FloatReduce, InfinitiesOfBothSignsAreNoNan) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity();
  for (const size_t n : {2, 17, 40, 1024, 2500}) {
    std::vector<T> x(n, T(1));
    x[0] = inf, x[n - 1] = -inf;
    EXPECT_EQ(reduce_contiguous(ReduceOp::Max, x.data(), n), inf) << n;
    EXPECT_EQ(reduce_contiguous(ReduceOp::Min, x.data(), n), -inf) << n;
  }
}

TYPED_TEST(FloatReduce, NanWinsWhereverItIs) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (const size_t n : {1, 17, 1024, 2500}) {
    for (const size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<T> x(n, T(1));
      x[n / 3] = inf, x[n / 4] = -inf, x[at] = nan;
      for (const ReduceOp op : kOps) EXPECT_TRUE(std::isnan(reduce_contiguous(op, x.data(), n)));
      for (const ReduceOp op : {ReduceOp::Max, ReduceOp::Min}) {
        const auto found = arg_reduce_contiguous(op, x.data(), n);
        EXPECT_EQ(found.index, static_cast<int64_t>(at));
        T value;
        int64_t index;
        arg_reduce_outer(op, x.data(), 1, n, &value, &index, 1);
        EXPECT_EQ(index, static_cast<int64_t>(at));
        for (const CpuTarget target : supported_cpu_targets()) {
          std::vector<T> lanes(kReduceLanes, reduce_identity<T>(op));
          reduce_kernels<T>(target, op).lanes(lanes.data(), 0, x.data(), n);
          EXPECT_TRUE(std::isnan(reduce_kernels<T>(target, op).fold(lanes.data())));
        }
      }
    }
  }
}

TYPED_TEST(FloatReduce, EmptyGivesTheIdentityAndInfinitiesAreNumbers) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity();
  EXPECT_EQ(reduce_contiguous<T>(ReduceOp::Sum, nullptr, 0), T(0));
  EXPECT_EQ(reduce_contiguous<T>(ReduceOp::Prod, nullptr, 0), T(1));
  EXPECT_EQ(reduce_contiguous<T>(ReduceOp::Max, nullptr, 0), -inf);
  EXPECT_EQ(reduce_contiguous<T>(ReduceOp::Min, nullptr, 0), inf);
  const std::vector<T> low(40, -inf);
  EXPECT_EQ(reduce_contiguous(ReduceOp::Max, low.data(), 40), -inf);
  EXPECT_EQ(arg_reduce_contiguous(ReduceOp::Max, low.data(), 40).index, 0);
}

}  // namespace
}  // namespace tenon::cpu
