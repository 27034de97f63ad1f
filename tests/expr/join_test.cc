// Joined expressions give the bits of the expressions that they were joined of, run one after the other with
// their values stored in between.
#include "tenon/expr/join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/expr/evaluator.h"
#include "tenon/expr/spec.h"
#include "tenon/expr/typed_text.h"
#include "tenon/iter/lower.h"
#include "tests/expr/random_typed.h"

namespace tenon::expr::testing {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr size_t kElements = 41;

Bytes elements_of(DType d, uint64_t seed) {
  const DType part = real_dtype(d);
  return random_elements(part, kElements * (is_complex(d) ? 2 : 1), seed);
}

bool equal(const Bytes& a, const Bytes& b, DType d) {
  const DType part = real_dtype(d);
  const size_t item = item_size(part);
  for (size_t i = 0; i < a.size(); i += item) {
    if (!same_element(&a[i], &b[i], part)) return false;
  }
  return true;
}

// Where a slot's values begin among whole elements.
unsigned char* at(Bytes& bytes, const Slot& s) {
  return bytes.data() + (s.part == Part::Im ? item_size(real_dtype(s.dtype)) : 0);
}

// Values of `kElements` elements that expressions read and make.
struct Values {
  std::vector<DType> dtypes;
  std::vector<Bytes> bytes;

  uint32_t add(DType d, Bytes b) {
    dtypes.push_back(d);
    bytes.push_back(std::move(b));
    return static_cast<uint32_t>(dtypes.size() - 1);
  }
};

void run_evaluator(const Expression& e, const std::vector<unsigned char*>& outputs,
                   const std::vector<unsigned char*>& inputs, const std::vector<uint64_t>& numbers) {
  for (size_t i = 0; i < kElements; ++i) {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t k = 0; k < inputs.size(); ++k) in.push_back(inputs[k] + i * item_size(e.inputs()[k].dtype));
    for (size_t k = 0; k < outputs.size(); ++k)
      out.push_back(outputs[k] + i * item_size(e.outputs()[k].dtype));
    evaluate(e, in.data(), numbers.data(), out.data());
  }
}

// The interpreter takes parts of complex numbers as elements of their own.
void run_interpreter(const Expression& e, const std::vector<unsigned char*>& outputs,
                     const std::vector<unsigned char*>& inputs, const std::vector<uint64_t>& numbers) {
  std::vector<Bytes> memory;
  std::vector<void*> ptrs;
  const auto add = [&](const Slot& s, unsigned char* p) {
    const size_t item = item_size(real_dtype(s.dtype)), step = item_size(s.dtype);
    Bytes& own = memory.emplace_back(kElements * item);
    for (size_t i = 0; i < kElements; ++i) std::memcpy(&own[i * item], p + i * step, item);
    ptrs.push_back(own.data());
  };
  for (size_t k = 0; k < outputs.size(); ++k) add(e.outputs()[k], outputs[k]);
  for (size_t k = 0; k < inputs.size(); ++k) add(e.inputs()[k], inputs[k]);
  cpu::Program(e).run(ptrs.data(), kElements, numbers.data());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Slot& s = e.outputs()[k];
    const size_t item = item_size(real_dtype(s.dtype)), step = item_size(s.dtype);
    for (size_t i = 0; i < kElements; ++i) std::memcpy(outputs[k] + i * step, &memory[k][i * item], item);
  }
}

std::vector<const PointwiseInfo*> builtin_entries() {
  std::vector<const PointwiseInfo*> list;
  for (const std::string& name : Dispatcher::singleton().operator_names()) {
    const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(name);
    const PointwiseInfo* info = nullptr;
    try {
      info = pointwise_info_of(op.entry());
    } catch (const Error&) {
      continue;  // it has no kernel for the host
    }
    if (info && std::find(list.begin(), list.end(), info) == list.end()) list.push_back(info);
  }
  return list;
}

constexpr DType kDTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,     DType::Int16,    DType::Int32,
                             DType::Int64,   DType::Float16, DType::BFloat16, DType::Float32,  DType::Float64,
                             DType::Float16, DType::Float32, DType::Float32,  DType::Complex64};

class Chain {
 public:
  explicit Chain(uint64_t seed) : rng_(seed) {
    // A chain of mixed dtypes, or of a few.
    const size_t kinds = 1 + below(4);
    for (size_t i = 0; i < kinds; ++i) dtypes_.push_back(kDTypes[below(std::size(kDTypes))]);
    for (int i = 0; i < 4; ++i) new_input();
  }

  void grow(const std::vector<const PointwiseInfo*>& entries, int length) {
    for (int made = 0, tried = 0; made < length && tried < 40 * length; ++tried)
      made += step(*entries[below(entries.size())]);
  }

  void expect_equal() {
    ASSERT_FALSE(stored_.empty());
    std::vector<ValueName> wanted;
    for (const ValueName v : stored_) {
      if (v == stored_.back() || below(3) == 0) wanted.push_back(v);
    }
    const Joined joined = joiner_.finish(wanted);
    const Expression& e = *joined.expression;
    ASSERT_EQ(joined.outputs, wanted);
    std::vector<uint64_t> numbers;
    for (const uint32_t n : joined.numbers) numbers.push_back(numbers_[n]);
    for (const bool interpreted : {false, true}) {
      std::vector<Bytes> results;
      for (const ValueName v : wanted) results.emplace_back(values_.bytes[v].size(), 0xA5);
      std::vector<unsigned char*> in, out;
      for (const Slot& s : e.inputs()) in.push_back(at(values_.bytes[joined.inputs[s.operand]], s));
      for (const Slot& s : e.outputs()) out.push_back(at(results[s.operand], s));
      interpreted ? run_interpreter(e, out, in, numbers) : run_evaluator(e, out, in, numbers);
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_TRUE(equal(results[i], values_.bytes[wanted[i]], values_.dtypes[wanted[i]]))
            << (interpreted ? "interpreter" : "evaluator") << ", result " << i << "\n"
            << text_ << to_string(e);
    }
    // The same texts give the same expression, and its text comes back as it is.
    EXPECT_EQ(parse_typed(to_string(e))->key, e.key);
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(rng_() % n); }

  uint32_t new_input() {
    const DType d = dtypes_[below(dtypes_.size())];
    return values_.add(d, elements_of(d, rng_()));
  }

  Scalar random_number() {
    constexpr double kFloats[] = {0.5, 2, -1, 0, 3.25, 1e-3};
    switch (below(6)) {
      case 0:
        return Scalar(below(2) == 1);
      case 1:
      case 2:
        return Scalar(static_cast<int64_t>(below(7)) - 2);
      case 3:
        return Scalar(std::complex<double>(0.5, -1));
      default:
        return Scalar(kFloats[below(std::size(kFloats))]);
    }
  }

  // One operator over some values. False: it does not take them.
  bool step(const PointwiseInfo& info) {
    std::vector<uint32_t> operands;
    std::vector<std::unique_ptr<TensorHeader>> headers;
    std::vector<HeaderRef> refs;
    for (size_t i = 0; i < info.tensor_names.size(); ++i) {
      const bool optional = ((info.optional_tensors >> i) & 1u) != 0;
      if (optional && below(2) == 0) {
        operands.push_back(0);
        refs.emplace_back();
        continue;
      }
      operands.push_back(static_cast<uint32_t>(below(4) == 0 ? new_input() : recent()));
      const Dims sizes{static_cast<int64_t>(kElements)}, strides{1};
      headers.push_back(std::make_unique<TensorHeader>(IntArrayRef(sizes), IntArrayRef(strides),
                                                       values_.dtypes[operands.back()], kCPU));
      refs.emplace_back(*headers.back());
    }
    std::vector<Scalar> scalars;
    std::vector<std::optional<Scalar::Kind>> kinds;
    for (size_t i = 0; i < info.scalar_names.size(); ++i) {
      scalars.push_back(random_number());
      const bool absent = ((info.optional_scalars >> i) & 1u) != 0 && below(2) == 0;
      kinds.push_back(absent ? std::nullopt : std::optional(scalars.back().kind()));
    }
    std::optional<Lowered> lowered;
    std::vector<uint64_t> numbers;
    try {
      lowered = lower_pointwise(info, refs, kinds, {});
      for (const LoweredNumber& n : lowered->numbers)
        put_number(numbers.emplace_back(), n, scalars[n.scalar], "op");
    } catch (const Error&) {
      return false;
    }
    const Expression& e = *lowered->expression;
    check(e);
    // What a NaN's sign is shows in copysign alone.
    const uint16_t copysign = find_function("copysign");
    for (const Node& n : e.nodes()) {
      if (n.op == Op::Call && n.bits == copysign) return false;
    }
    text_ += std::string(info.name) + ": " + to_string(e) + "\n";

    std::vector<unsigned char*> in, out;
    std::vector<JoinInput> names;
    std::vector<ValueName> made;
    std::vector<uint32_t> numbers_of_region;
    for (const Slot& s : e.outputs()) {
      while (made.size() <= s.operand)
        made.push_back(values_.add(s.dtype, Bytes(kElements * item_size(s.dtype))));
    }
    std::vector<ValueName> stored;
    for (const Slot& s : e.outputs()) {
      out.push_back(at(values_.bytes[made[s.operand]], s));
      stored.push_back(made[s.operand]);
    }
    for (const Slot& s : e.inputs()) {
      in.push_back(at(values_.bytes[operands[s.operand]], s));
      names.push_back({operands[s.operand]});
    }
    for (const uint64_t bits : numbers) {
      numbers_of_region.push_back(static_cast<uint32_t>(numbers_.size()));
      numbers_.push_back(bits);
    }
    run_evaluator(e, out, in, numbers);
    joiner_.add(e, names, numbers_of_region, stored);
    stored_.insert(stored_.end(), made.begin(), made.end());
    return true;
  }

  size_t recent() {
    const size_t n = values_.dtypes.size();
    return n - 1 - below(std::min<size_t>(n, 6));
  }

  std::mt19937_64 rng_;
  std::vector<DType> dtypes_;
  Values values_;
  std::vector<uint64_t> numbers_;
  std::vector<ValueName> stored_;
  Joiner joiner_;
  std::string text_;
};

TEST(Join, RandomChainsGiveTheBitsOfTheirSteps) {
  const auto entries = builtin_entries();
  ASSERT_GT(entries.size(), 100u);
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Chain chain(seed);
    chain.grow(entries, 1 + static_cast<int>(seed % 9));
    ASSERT_NO_FATAL_FAILURE(chain.expect_equal());
  }
}

Joined join_texts(std::initializer_list<const char*> texts, std::vector<std::vector<JoinInput>> inputs,
                  std::vector<std::vector<ValueName>> outputs, std::vector<ValueName> wanted,
                  bool relaxed = false) {
  Joiner joiner(relaxed);
  size_t k = 0;
  for (const char* text : texts) {
    const ExpressionPtr e = parse_typed(text);
    const std::vector<uint32_t> numbers(e->num_numbers, 7);
    joiner.add(*e, inputs[k], numbers, outputs[k]);
    ++k;
  }
  return joiner.finish(wanted);
}

TEST(Join, ValuesPassWithoutBeingStored) {
  const Joined j = join_texts(
      {"in x: float32, y: float32; out float32: mul(x, y);", "in x: float32; out float32: neg(x);"},
      {{{1}, {2}}, {{3}}}, {{3}, {4}}, {4});
  EXPECT_EQ(*j.expression, *parse_typed("in x: float32, y: float32; out float32: neg(mul(x, y));"));
  EXPECT_EQ(j.inputs, (std::vector<ValueName>{1, 2}));
}

TEST(Join, SlotsComeInTheOrderOfTheirFirstUseAndOnce) {
  const Joined j = join_texts({"in x: float32, y: float32; number a: f32; out float32: sub(y, mul(x, a));",
                               "in x: float32, y: float32; number a: f32; out float32: add(mul(x, a), y);"},
                              {{{1}, {2}}, {{3}, {2}}}, {{3}, {4}}, {4, 3});
  EXPECT_EQ(j.inputs, (std::vector<ValueName>{2, 1}));
  EXPECT_EQ(j.numbers, (std::vector<uint32_t>{7}));
  EXPECT_EQ(j.outputs, (std::vector<ValueName>{4, 3}));
  EXPECT_EQ(j.expression->num_outputs, 2);
}

TEST(Join, WhatLeadsNowhereIsDropped) {
  const Joined j = join_texts({"in x: float32, y: float32; out float32: mul(x, y);",
                               "in x: float32, y: float32; out float32: neg(y);"},
                              {{{1}, {2}}, {{3}, {5}}}, {{3}, {4}}, {4});
  EXPECT_EQ(*j.expression, *parse_typed("in y: float32; out float32: neg(y);"));
  EXPECT_EQ(j.inputs, (std::vector<ValueName>{5}));
}

TEST(Join, RoundingStandsWhereItMatters) {
  const char* widened = "in x: float16; out float32: x;";
  const char* largest = "in x: float32, y: float32; out float16: stored[float16](max(x, y));";
  // Both operands are halves: so is their maximum.
  EXPECT_EQ(
      *join_texts({widened, widened, largest}, {{{1}}, {{2}}, {{3}, {4}}}, {{3}, {4}, {5}}, {5}).expression,
      *parse_typed("in x: float16, y: float16; out float16: max(x, y);"));
  const char* half = "in x: float16; out float16: stored[float16](exp(x));";
  EXPECT_EQ(*join_texts({half, half}, {{{1}}, {{2}}}, {{2}, {3}}, {3}).expression,
            *parse_typed("in x: float16; out float16: stored[float16](exp(stored[float16](exp(x))));"));
}

TEST(Join, RelaxedRoundsWhereItStoresAlone) {
  const char* half = "in x: float16; out float16: stored[float16](exp(x));";
  const char* negated = "in x: float16; out float16: neg(x);";
  const Joined j = join_texts({half, negated}, {{{1}}, {{2}}}, {{2}, {3}}, {3}, true);
  const std::string text = to_string(*j.expression);
  EXPECT_NE(text.find("stored[float16](neg(exp("), std::string::npos) << text;
  // Integers wrap in any case.
  const char* byte = "in x: int8; out int8: stored[int8](add(x, x));";
  const std::string bytes =
      to_string(*join_texts({byte, byte}, {{{1}}, {{2}}}, {{2}, {3}}, {3}, true).expression);
  EXPECT_NE(bytes.find("stored[int8](add("), bytes.rfind("stored[int8](add(")) << bytes;
}

TEST(Join, AValueIsStoredOnceAndBeforeItIsRead) {
  const char* text = "in x: float32; out float32: neg(x);";
  EXPECT_THROW(join_texts({text, text}, {{{1}}, {{1}}}, {{2}, {2}}, {2}), Error);
  EXPECT_THROW(join_texts({text}, {{{1}}}, {{1}}, {1}), Error);
  EXPECT_THROW(join_texts({text}, {{{1}}}, {{2}}, {3}), Error);
}

}  // namespace
}  // namespace tenon::expr::testing
