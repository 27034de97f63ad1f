// uint64 in int64's registers, compared with C++'s own uint64_t.
#include "tenon/expr/unsigned.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tenon/expr/evaluator.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/parse.h"
#include "tenon/expr/scalar.h"
#include "tenon/expr/spec.h"

namespace tenon::expr {
namespace {

const std::vector<uint64_t>& numbers() {
  static const std::vector<uint64_t> all = [] {
    std::vector<uint64_t> list{0, 1, 2, 3, 63, 64, 65, INT64_MAX, uint64_t{1} << 63, ~uint64_t{0}};
    for (const int shift : {24, 31, 32, 52, 53, 62, 63}) {
      for (const int by : {-1, 1}) list.push_back((uint64_t{1} << shift) + static_cast<uint64_t>(by));
    }
    std::mt19937_64 words(7);
    for (int i = 0; i < 60; ++i) list.push_back(words() >> (words() % 64));
    return list;
  }();
  return all;
}

// The value of `text` over x and y.
class Value {
 public:
  Value(std::string_view text, DType result, DType input = DType::UInt64) : size_(item_size(result)) {
    Builder g;
    const std::vector<Binding> names{{"x", g.symbol("x")}, {"y", g.symbol("y")}};
    const NodeId root = parse_bound(g, text, names);
    const std::vector<DType> inputs(2, input), results{result};
    const Type compute = input == DType::UInt64 && !is_floating_point(result) ? Type::U64 : Type::F64;
    expression_ = instantiate(*g.finish({root}), {.compute = compute, .inputs = inputs, .results = results});
    check(*expression_, Origin::Call);
  }
  uint64_t operator()(uint64_t x, uint64_t y) const {
    uint64_t out = 0;
    const void* const inputs[] = {&x, &y};
    void* const outputs[] = {&out};
    evaluate(*expression_, inputs, nullptr, outputs);
    return out;
  }

 private:
  ExpressionPtr expression_;
  size_t size_;
};

using Reference = std::function<uint64_t(uint64_t, uint64_t)>;

void compare(std::string_view text, DType result, const Reference& want) {
  const Value value(text, result);
  for (const uint64_t x : numbers()) {
    for (const uint64_t y : numbers())
      ASSERT_EQ(value(x, y), want(x, y)) << text << " of " << x << " and " << y;
  }
}

uint64_t power(uint64_t x, uint64_t y) {
  uint64_t result = 1;
  for (; y != 0; y >>= 1, x *= x) result *= (y & 1) != 0 ? x : 1;
  return result;
}

TEST(Unsigned, ArithmeticIsThatOfCpp) {
  using U = uint64_t;
  const DType u64 = DType::UInt64;
  compare("x + y", u64, [](U x, U y) { return x + y; });
  compare("x - y", u64, [](U x, U y) { return x - y; });
  compare("x * y", u64, [](U x, U y) { return x * y; });
  compare("-x", u64, [](U x, U) { return ~x + 1; });
  compare("abs(x)", u64, [](U x, U) { return x; });
  compare("floor_divide(x, y)", u64, [](U x, U y) { return y == 0 ? 0 : x / y; });
  compare("trunc_divide(x, y)", u64, [](U x, U y) { return y == 0 ? 0 : x / y; });
  compare("remainder(x, y)", u64, [](U x, U y) { return y == 0 ? 0 : x % y; });
  compare("fmod(x, y)", u64, [](U x, U y) { return y == 0 ? 0 : x % y; });
  compare("pow(x, y)", u64, power);
  compare("min(x, y)", u64, [](U x, U y) { return std::min(x, y); });
  compare("max(x, y)", u64, [](U x, U y) { return std::max(x, y); });
  compare("clamp_min(x, y)", u64, [](U x, U y) { return std::max(x, y); });
  compare("x & y", u64, [](U x, U y) { return x & y; });
  compare("where(x < y, x, 7)", u64, [](U x, U y) { return x < y ? x : 7; });
}

TEST(Unsigned, ComparisonsAreThoseOfCpp) {
  using U = uint64_t;
  compare("x < y", DType::Bool, [](U x, U y) { return x < y; });
  compare("x <= y", DType::Bool, [](U x, U y) { return x <= y; });
  compare("x > y", DType::Bool, [](U x, U y) { return x > y; });
  compare("x >= y", DType::Bool, [](U x, U y) { return x >= y; });
  compare("x == y", DType::Bool, [](U x, U y) { return x == y; });
  compare("isnan(x) | (x != y)", DType::Bool, [](U x, U y) { return x != y; });
}

TEST(Unsigned, BecomesTheNearestFloat) {
  compare("x", DType::Float64,
          [](uint64_t x, uint64_t) { return std::bit_cast<uint64_t>(static_cast<double>(x)); });
  for (const uint64_t x : numbers()) {
    EXPECT_EQ(convert_scalar(x, Type::U64, Type::F32), std::bit_cast<uint32_t>(static_cast<float>(x)));
    EXPECT_EQ(convert_scalar(x, Type::U64, Type::F64), std::bit_cast<uint64_t>(static_cast<double>(x)));
  }
}

TEST(Unsigned, TakesFloatsThatItHolds) {
  Builder g;
  const std::vector<Binding> names{{"x", g.symbol("x")}};
  const std::vector<DType> inputs{DType::Float64}, results{DType::UInt64};
  const ExpressionPtr e = instantiate(*g.finish({parse_bound(g, "x", names)}),
                                      {.compute = Type::F64, .inputs = inputs, .results = results});
  for (const double x : {0.0, 1.9, 0x1p53, 0x1.8p62, 0x1p63, 0x1.fffffffffffffp63, -1.0, -2.5}) {
    uint64_t out = 0;
    const void* const in[] = {&x};
    void* const outputs[] = {&out};
    evaluate(*e, in, nullptr, outputs);
    const uint64_t want = x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
    EXPECT_EQ(out, want) << x;
    EXPECT_EQ(convert_scalar(std::bit_cast<uint64_t>(x), Type::F64, Type::U64), want) << x;
  }
}

}  // namespace
}  // namespace tenon::expr
