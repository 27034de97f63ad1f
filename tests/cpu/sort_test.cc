// Sorting against std::stable_sort by a comparison of values: every dtype, rows of every way of sorting, and
// the search of topk on every instruction set that this machine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "backends/cpu/sort/order.h"
#include "backends/cpu/sort/row_sorter.h"
#include "backends/cpu/sort/select_kernels.h"
#include "backends/cpu/sort/value_kernels.h"
#include "backends/cpu/sort/value_sorter.h"
#include "tenon/core/half.h"

namespace tenon::cpu {
namespace {

std::mt19937_64& sort_generator() {
  static std::mt19937_64 g(20251122);
  return g;
}

// What a row may look like: any bits; few values, so that most are equal; and orders that are worst for
// somebody.
enum class Kind { Any, Few, Ascending, Descending, Same };
constexpr Kind kKinds[] = {Kind::Any, Kind::Few, Kind::Ascending, Kind::Descending, Kind::Same};

template <class T>
T from_number(double x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

template <class T>
double number(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return static_cast<float>(x);
  else
    return static_cast<double>(x);
}

template <class T>
bool comes_before(T a, T b, bool descending) {
  if constexpr (std::is_integral_v<T>) {
    return descending ? b < a : a < b;
  } else {
    if (descending) std::swap(a, b);
    const double x = number(a), y = number(b);
    return !std::isnan(x) && (std::isnan(y) || x < y);
  }
}

template <class T>
std::vector<T> row_of(size_t n, Kind kind) {
  constexpr bool kInteger = std::is_integral_v<T>;
  static const double kFew[] = {0.0,
                                kInteger ? 1.0 : -0.0,
                                1,
                                kInteger ? 2.0 : double(NAN),
                                kInteger ? 3.0 : double(INFINITY),
                                kInteger ? 4.0 : -double(INFINITY)};
  std::vector<T> row(n);
  for (size_t i = 0; i < n; ++i) {
    if (kind == Kind::Any) {
      const uint64_t bits = sort_generator()();
      std::memcpy(static_cast<void*>(&row[i]), &bits, sizeof(T));
    } else if (kind == Kind::Few) {
      row[i] = from_number<T>(kFew[sort_generator()() % 6]);
    } else {
      const auto step = static_cast<double>(i % 100);
      row[i] = from_number<T>(kind == Kind::Same ? 1 : kind == Kind::Ascending ? step : 100 - step);
    }
  }
  return row;
}

template <class T>
constexpr DType kDType = dtype_of<T>;

template <class T>
class Sort : public ::testing::Test {};
using SortTypes = ::testing::Types<uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>;
TYPED_TEST_SUITE(Sort, SortTypes);

TYPED_TEST(Sort, RowsAreThoseOfAStableSort) {
  using T = TypeParam;
  for (const int64_t n :
       {0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 255, 1024, 1500, 40000, 140000}) {
    if (n > 40000 && sizeof(T) != 4) continue;  // the other digits are those of 32 bits alone
    for (const Kind kind : kKinds) {
      const auto row = row_of<T>(static_cast<size_t>(n), kind);
      for (const bool descending : {false, true}) {
        std::vector<int64_t> order(row.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return comes_before(row[static_cast<size_t>(a)], row[static_cast<size_t>(b)], descending);
        });
        std::vector<T> alone(row.size());
        ValueSorter(kDType<T>, n, descending).sort(row.data(), alone.data());
        for (size_t i = 0; i < alone.size(); ++i)
          ASSERT_EQ(std::memcmp(&alone[i], &row[static_cast<size_t>(order[i])], sizeof(T)), 0)
              << "values of row " << n << ", kind " << int(kind) << " at " << i;
        for (const int64_t count : {n, std::min<int64_t>(n, 10), n / 2, std::min<int64_t>(n, 1)}) {
          std::vector<T> values(static_cast<size_t>(count));
          std::vector<int64_t> positions(static_cast<size_t>(count));
          RowSorter sorter(kDType<T>, n, count, descending);
          for (int again = 0; again < 2; ++again) {
            sorter.sort(row.data(), values.data(), positions.data());
            for (size_t i = 0; i < positions.size(); ++i) {
              ASSERT_EQ(positions[i], order[i])
                  << "row " << n << ", kind " << int(kind) << ", " << count << " at " << i;
              ASSERT_EQ(std::memcmp(&values[i], &row[static_cast<size_t>(order[i])], sizeof(T)), 0);
            }
          }
        }
      }
    }
  }
}

template <class T>
void every_target_sorts_keys(size_t index) {
  for (const CpuTarget target : supported_cpu_targets()) {
    for (int round = 0; round < 200; ++round) {
      std::vector<T> keys(sort_generator()() % (round % 10 == 0 ? 20000 : 300));
      const uint64_t values = round % 3 == 0 ? 3 : ~uint64_t{0};  // few different ones, or many
      for (T& key : keys) key = static_cast<T>(sort_generator()() % values);
      std::vector<T> expected = keys;
      std::sort(expected.begin(), expected.end());
      value_kernels(target).sort[index](keys.data(), keys.size());
      ASSERT_EQ(keys, expected) << name(target) << ", round " << round;
    }
  }
}

TEST(SortValues, EveryInstructionSetSortsKeys) {
  every_target_sorts_keys<int32_t>(0);
  every_target_sorts_keys<int64_t>(1);
}

template <class Order, bool kFloating>
void search_finds_the_first() {
  using Bits = typename Order::Bits;
  constexpr size_t kSize = sizeof(Bits) == 1 ? 0 : sizeof(Bits) == 2 ? 1 : sizeof(Bits) == 4 ? 2 : 3;
  for (const CpuTarget target : supported_cpu_targets()) {
    const SelectKernels& kernels = select_kernels(target);
    const SelectKernels::Search search = kFloating ? kernels.floating[kSize] : kernels.integer[kSize];
    for (int round = 0; round < 300; ++round) {
      const size_t n = sort_generator()() % 300, begin = n == 0 ? 0 : sort_generator()() % n;
      const auto row = row_of<Bits>(n, Kind::Any);
      const bool descending = round % 2 == 1;
      // A limit that few elements are below.
      std::vector<int64_t> keys;
      for (const Bits b : row) keys.push_back(descending ? ~int64_t{Order::key(b)} : int64_t{Order::key(b)});
      auto sorted = keys;
      std::sort(sorted.begin(), sorted.end());
      const int64_t limit = n == 0 ? 0 : sorted[std::min<size_t>(n - 1, sort_generator()() % 4)];
      size_t expected = begin;
      while (expected < n && keys[expected] >= limit) ++expected;
      ASSERT_EQ(search(row.data(), begin, n, Order::kConstant, descending, limit), expected)
          << name(target) << " " << n;
    }
  }
}

template <class Order, bool kFloating>
void least_of_groups() {
  using Bits = typename Order::Bits;
  constexpr size_t kSize = sizeof(Bits) == 1 ? 0 : sizeof(Bits) == 2 ? 1 : sizeof(Bits) == 4 ? 2 : 3;
  for (const CpuTarget target : supported_cpu_targets()) {
    const SelectKernels& kernels = select_kernels(target);
    for (int round = 0; round < 40; ++round) {
      const size_t n = kSelectGroups * (1 + sort_generator()() % 6);
      const auto row = row_of<Bits>(n, Kind::Any);
      std::vector<int64_t> expected(kSelectGroups, std::numeric_limits<int64_t>::max()), found = expected;
      for (size_t i = 0; i < n; ++i) {
        const int64_t key = round % 2 == 1 ? ~int64_t{Order::key(row[i])} : int64_t{Order::key(row[i])};
        expected[i % kSelectGroups] = std::min(expected[i % kSelectGroups], key);
      }
      (kFloating ? kernels.least_floating : kernels.least_integer)[kSize](row.data(), n, Order::kConstant,
                                                                          round % 2 == 1, found.data());
      ASSERT_EQ(found, expected) << name(target);
    }
  }
}

TEST(Search, LeastOfGroupsOnEveryInstructionSet) {
  least_of_groups<ByteOrder, false>();
  least_of_groups<IntegerOrder<int16_t>, false>();
  least_of_groups<IntegerOrder<int32_t>, false>();
  least_of_groups<IntegerOrder<int64_t>, false>();
  least_of_groups<HalfOrder, true>();
  least_of_groups<BFloat16Order, true>();
  least_of_groups<Float32Order, true>();
  least_of_groups<Float64Order, true>();
}

TEST(Search, FindsTheFirstOnEveryInstructionSet) {
  search_finds_the_first<ByteOrder, false>();
  search_finds_the_first<IntegerOrder<int8_t>, false>();
  search_finds_the_first<IntegerOrder<int16_t>, false>();
  search_finds_the_first<IntegerOrder<int32_t>, false>();
  search_finds_the_first<IntegerOrder<int64_t>, false>();
  search_finds_the_first<HalfOrder, true>();
  search_finds_the_first<BFloat16Order, true>();
  search_finds_the_first<Float32Order, true>();
  search_finds_the_first<Float64Order, true>();
}

}  // namespace
}  // namespace tenon::cpu
