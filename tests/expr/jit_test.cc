// Machine code of expressions gives the evaluator's bits, for whatever it does not refuse.
#include "backends/cpu/jit/jit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <random>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/evaluator.h"
#include "tenon/expr/function.h"
#include "tenon/expr/typed_text.h"
#include "tenon/iter/lower.h"
#include "tests/expr/special_cases.h"

namespace tenon::expr::testing {
namespace {

using cpu::CpuTarget;
using cpu::JitKernel;

// A row for each input, and what the evaluator makes of them.
struct Rows {
  size_t n;
  std::vector<Bytes> inputs, want;
  std::vector<uint64_t> numbers;

  Rows(const Expression& e, std::vector<Bytes> elements, size_t count, uint64_t seed)
      : n(count), inputs(std::move(elements)) {
    for (const Slot& s : e.numbers()) {
      const Bytes bytes = random_elements(s.dtype, 1, seed + 50 + numbers.size());
      numbers.push_back(load_scalar(bytes.data(), s.dtype));
    }
    for (const Slot& s : e.outputs()) want.emplace_back(n * item_size(s.dtype));
    for (size_t i = 0; i < n; ++i) {
      const void* in[4];
      void* out[4];
      for (size_t k = 0; k < inputs.size(); ++k) in[k] = &inputs[k][i * item_size(e.inputs()[k].dtype)];
      for (size_t k = 0; k < want.size(); ++k) out[k] = &want[k][i * item_size(e.outputs()[k].dtype)];
      evaluate(e, in, numbers.data(), out);
    }
  }
};

// Runs the code over memory that is aligned to items alone, with a guard behind each output.
void expect_bits(const Expression& e, const JitKernel& code, const Rows& rows, size_t shift, bool in_place) {
  constexpr unsigned char kGuard = 0xA5;
  std::vector<Bytes> memory;
  std::vector<void*> outputs, inputs;
  for (size_t k = 0; k < rows.inputs.size(); ++k) {
    const size_t begin = shift * item_size(e.inputs()[k].dtype);
    Bytes& bytes = memory.emplace_back(begin + rows.inputs[k].size() + 64, kGuard);
    std::copy(rows.inputs[k].begin(), rows.inputs[k].end(), &bytes[begin]);
    inputs.push_back(&bytes[begin]);
  }
  std::vector<bool> taken(inputs.size(), !in_place);
  for (size_t k = 0; k < rows.want.size(); ++k) {
    void* to = nullptr;
    for (size_t i = 0; i < inputs.size() && !to; ++i) {
      if (taken[i] || e.inputs()[i].dtype != e.outputs()[k].dtype) continue;
      to = inputs[i];
      taken[i] = true;
    }
    const size_t begin = shift * item_size(e.outputs()[k].dtype);
    if (!to) to = &memory.emplace_back(begin + rows.want[k].size() + 64, kGuard)[begin];
    outputs.push_back(to);
  }
  std::vector<void*> ptrs = outputs;
  ptrs.insert(ptrs.end(), inputs.begin(), inputs.end());
  code.run(ptrs.data(), rows.n, rows.numbers.data());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const DType d = e.outputs()[k].dtype;
    const auto* got = static_cast<const unsigned char*>(outputs[k]);
    for (size_t i = 0; i < rows.n; ++i)
      ASSERT_TRUE(same_element(got + i * item_size(d), &rows.want[k][i * item_size(d)], d))
          << "output " << k << ", element " << i << " of " << rows.n << (in_place ? ", in place" : "") << "\n"
          << to_string(e);
    for (size_t i = 0; i < 64; ++i)
      ASSERT_EQ(got[rows.n * item_size(d) + i], kGuard) << "behind output " << k << "\n" << to_string(e);
  }
}

std::vector<CpuTarget> targets_with_code() {
  std::vector<CpuTarget> list;
  const auto e = parse_typed("in x: float32; out float32: add(x, 1:f32);");
  // The machine's, also where the build has kernels of the least one alone.
  for (int i = 0; i < cpu::kNumCpuTargets; ++i) {
    const auto t = static_cast<CpuTarget>(i);
    if (cpu::machine_has(t) && cpu::jit_refusal(*e, t).empty()) list.push_back(t);
  }
  return list;
}

TEST(Jit, RandomExpressionsRunAsTheEvaluatorSays) {
  constexpr DType kNarrow[] = {DType::Float32, DType::Int32}, kWide[] = {DType::Float64, DType::Int64};
  constexpr Type kNarrowTypes[] = {Type::F32, Type::I32}, kWideTypes[] = {Type::F64, Type::I64};
  size_t made = 0, tried = 0;
  std::map<std::string, size_t> refusals;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const bool wide = seed % 2 != 0;
    const int size = 3 + static_cast<int>(seed % 31);
    RandomTyped random =
        wide ? RandomTyped(seed, kWide, kWideTypes) : RandomTyped(seed, kNarrow, kNarrowTypes);
    const ExpressionPtr e = random.make(size);
    const size_t n = 1 + seed % 197;  // up to six vectors at a time, with any rest
    std::vector<Bytes> inputs;
    for (const Slot& s : e->inputs()) inputs.push_back(random_elements(s.dtype, n, seed + inputs.size()));
    const Rows rows(*e, std::move(inputs), n, seed);
    for (const CpuTarget target : targets_with_code()) {
      ++tried;
      const std::string why = cpu::jit_refusal(*e, target);
      if (!why.empty()) {
        ++refusals[why];
        continue;
      }
      const auto code = JitKernel::make(*e, target);
      ASSERT_TRUE(code) << seed;
      ++made;
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " on " << name(target));
      ASSERT_NO_FATAL_FAILURE(expect_bits(*e, *code, rows, seed % 3, seed % 5 == 0));
    }
  }
  for (const auto& [why, count] : refusals) RecordProperty(why, static_cast<int>(count));
  EXPECT_GE(made * 4, tried) << "most random expressions were refused";
}

// Values and operands of all types and dtypes together, which AVX-512 takes.
TEST(Jit, RandomExpressionsOfMixedTypesRunAsTheEvaluatorSays) {
  size_t made = 0, tried = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    RandomTyped random(seed);
    const ExpressionPtr e = random.make(2 + static_cast<int>(seed % 23));
    const size_t n = 1 + seed % 197;  // up to six vectors at a time, with any rest
    std::vector<Bytes> inputs;
    for (const Slot& s : e->inputs()) inputs.push_back(random_elements(s.dtype, n, seed + inputs.size()));
    const Rows rows(*e, std::move(inputs), n, seed);
    for (const CpuTarget target : targets_with_code()) {
      const bool wide = std::string_view(name(target)) == "AVX3";
      tried += wide;
      if (!cpu::jit_refusal(*e, target).empty()) continue;
      const auto code = JitKernel::make(*e, target);
      ASSERT_TRUE(code) << seed;
      made += wide;
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " on " << name(target));
      ASSERT_NO_FATAL_FAILURE(expect_bits(*e, *code, rows, seed % 3, seed % 5 == 0));
    }
  }
  EXPECT_GE(made * 4, tried) << "most random expressions were refused";
}

// Loads, casts and stores between all dtypes, over all that is special in them, and in any tail.
TEST(Jit, ConversionsOfSpecialValues) {
  for (const DType from : kStored) {
    for (const DType to : kStored) {
      const auto lowered = lower_copy(from, to);
      ASSERT_TRUE(lowered);
      const Expression& e = *lowered->expression;
      const auto& special = special_values(carrier(from));
      const size_t n = special.size() + 37, item = item_size(from);
      Bytes bytes = random_elements(from, n, 3);
      for (size_t i = 0; i < special.size(); ++i) store_scalar(&bytes[i * item], from, special[i]);
      for (size_t length = n - 18; length <= n; ++length) {
        Bytes some(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length * item));
        const Rows rows(e, {some}, length, 1);
        for (const CpuTarget target : targets_with_code()) {
          if (!cpu::jit_refusal(e, target).empty()) continue;
          ASSERT_NO_FATAL_FAILURE(expect_bits(e, *JitKernel::make(e, target), rows, 1, false))
              << name(target);
        }
      }
    }
  }
}

// Every operation by itself, over all that is special in its operands.
TEST(Jit, OperationsOfSpecialValues) {
  for (const SpecialCase& c : special_cases()) {
    const size_t n = c.inputs.empty() ? 0 : c.inputs[0].size() / item_size(c.e->inputs()[0].dtype);
    const Rows rows(*c.e, c.inputs, n, 1);
    for (const CpuTarget target : targets_with_code()) {
      if (!cpu::jit_refusal(*c.e, target).empty()) continue;
      ASSERT_NO_FATAL_FAILURE(expect_bits(*c.e, *JitKernel::make(*c.e, target), rows, 1, false))
          << name(target);
    }
  }
}

// So many values one after another, which are then added up from the last: all are alive at a time.
std::string many_values(size_t count) {
  std::string text = "in x: float32; let t1 = mul(x, 0.5:f32); ";
  for (size_t i = 2; i <= count; ++i) text += fmt::format("let t{} = fma(t{}, x, 0.{}:f32); ", i, i - 1, i);
  text += fmt::format("let s{} = t1; ", count + 1);
  for (size_t i = count; i > 1; --i)
    text += fmt::format("let s{} = fma(t{}, 0.{}:f32, s{}); ", i, i, i, i + 1);
  return text + "out float32: s2;";
}

// Some vectors at a time (one of the longest expression, which has too much code for more), then one by one.
TEST(Jit, AnyNumberOfElements) {
  const std::string texts[] = {
      "in x: float32, y: float64; out float64: add(cast[f64](x), y); out float32: mul(x, 3:f32);",
      "in x: float32, y: float32; number a: f32; out float32: add(mul(silu(mul(x, a)), tanh(y)), sin(x));",
      "in x: float64; out float64: exp(sin(x));",
      "in x: int32, y: int32; out int32: max(mul(x, y), 7:i32); out bool: lt(x, y);",
      many_values(20),
      many_values(40),
      many_values(350)};
  for (const std::string& text : texts) {
    const ExpressionPtr e = parse_typed(text);
    std::vector<Bytes> inputs;
    for (const Slot& s : e->inputs()) inputs.push_back(random_elements(s.dtype, 200, 11 + inputs.size()));
    for (const CpuTarget target : targets_with_code()) {
      if (!cpu::jit_refusal(*e, target).empty()) continue;
      const auto code = JitKernel::make(*e, target);
      for (size_t n = 0; n <= 200; ++n) {
        std::vector<Bytes> some;
        for (size_t k = 0; k < inputs.size(); ++k)
          some.emplace_back(inputs[k].begin(),
                            inputs[k].begin() + static_cast<ptrdiff_t>(n * item_size(e->inputs()[k].dtype)));
        const Rows rows(*e, std::move(some), n, 5);
        ASSERT_NO_FATAL_FAILURE(expect_bits(*e, *code, rows, n % 3, n % 2 == 0)) << name(target);
      }
    }
  }
}

// What has one instruction for several operations, and what is known before it is computed, over all that is
// special in the operands.
TEST(Jit, OperationsThatBecomeOne) {
  const char* const bodies[] = {"fma(neg(x), y, z)",
                                "fma(x, neg(y), z)",
                                "fma(neg(x), neg(y), z)",
                                "fma(x, y, neg(z))",
                                "fma(neg(x), y, neg(z))",
                                "max(x, 2:f32)",
                                "max(-120:f32, x)",
                                "min(x, 2:f32)",
                                "max(x, 0:f32)",
                                "min(-0:f32, x)",
                                "max(x, nan:f32)",
                                "max(2:f32, 3:f32)",
                                "where(gt(neg(abs(x)), 0:f32), y, z)",
                                "where(gt(mul(-2:f32, abs(x)), 89:f32), y, x)",
                                "where(gt(mul(-2:f32, abs(x)), -89:f32), y, x)",
                                "where(gt(mul(-2:f32, x), 89:f32), y, x)",
                                "where(gt(abs(x), 1:f32), y, z)",
                                "where(ge(neg(abs(x)), 0:f32), y, z)",
                                "from_bits(or(and(bits(x), 2147483647:i32), and(bits(y), -2147483648:i32)))",
                                "from_bits(or(and(bits(x), -2147483648:i32), and(bits(x), 2147483647:i32)))",
                                "from_bits(or(and(bits(x), 2147483647:i32), and(bits(y), -8388608:i32)))",
                                "from_bits(or(and(bits(x), 2147483647:i32), and(bits(y), bits(z))))",
                                "where(le(abs(x), 20000:f32), y, pi_reduce(x, 0))",
                                "where(le(abs(x), 20000:f32), x, pi_reduce(x, 2))",
                                "where(lt(abs(x), 16400:f32), add(y, z), pi_reduce(x, 1))"};
  const auto& special = special_values(Type::F32);
  const size_t n = special.size() * special.size() * special.size();
  std::vector<Bytes> inputs(3, Bytes(n * 4));
  for (size_t i = 0; i < n; ++i) {
    size_t rest = i;
    for (Bytes& bytes : inputs) {
      store_scalar(&bytes[i * 4], DType::Float32, special[rest % special.size()]);
      rest /= special.size();
    }
  }
  for (const char* body : bodies) {
    const ExpressionPtr e = parse_typed(
        std::string("primitive; in x: float32, y: float32, z: float32; out float32: ") + body + ";");
    const Rows rows(*e, inputs, n, 1);
    for (const CpuTarget target : targets_with_code())
      ASSERT_NO_FATAL_FAILURE(expect_bits(*e, *JitKernel::make(*e, target), rows, 0, false)) << name(target);
  }
}

// Every function, also where sin and its kin are reduced by a call, beside the interpreter.
TEST(Jit, Functions) {
  size_t made = 0;
  for (const Type type : {Type::F32, Type::F64}) {
    for (const Function& f : functions()) {
      if (f.internal || f.mask || !f.runs_in(type) || f.arity > 2) continue;
      const std::string d(name(type));
      const std::string text =
          f.arity == 1 ? "in x: " + d + "; out " + d + ": " + std::string(f.name) + "(x);"
                       : "in x: " + d + ", y: " + d + "; out " + d + ": " + std::string(f.name) + "(x, y);";
      const ExpressionPtr e = parse_typed(text);
      const size_t n = 1003, item = item_size(type);
      std::vector<Bytes> inputs;
      for (int i = 0; i < f.arity; ++i)
        inputs.push_back(random_elements(dtype(type), n, 7 + static_cast<uint64_t>(i)));
      for (const CpuTarget target : targets_with_code()) {
        if (!cpu::jit_refusal(*e, target).empty()) continue;
        ++made;
        Bytes got(n * item), want(n * item);
        std::vector<void*> ptrs{got.data()};
        for (Bytes& bytes : inputs) ptrs.push_back(bytes.data());
        JitKernel::make(*e, target)->run(ptrs.data(), n, nullptr);
        ptrs[0] = want.data();
        cpu::Program(*e).run(ptrs.data(), n, nullptr);
        for (size_t i = 0; i < n; ++i)
          ASSERT_TRUE(same_element(&got[i * item], &want[i * item], dtype(type)))
              << text << " at " << i << " on " << name(target);
      }
    }
  }
  EXPECT_TRUE(targets_with_code().empty() || made > 40) << made;
}

// By docs/decisions/0004-reduction-tree.md: sixteen lanes, folded in halves.
float sum_of_chunk(const float* x, size_t n) {
  float lanes[16] = {};
  for (size_t i = 0; i < n; ++i) lanes[i % 16] += x[i];
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// Whose sums are no NaN.
Bytes ordinary_elements(DType d, size_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  Bytes bytes(n * item_size(d));
  for (size_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(static_cast<int64_t>(rng() % 2000001) - 1000000) * 1e-5f;
    store_scalar(&bytes[i * item_size(d)], d, std::bit_cast<uint32_t>(x));
  }
  return bytes;
}

// Of some outputs, others are stored.
void expect_sums(const Expression& e, const JitKernel& code, uint32_t summed, size_t n) {
  std::vector<Bytes> inputs;
  for (const Slot& s : e.inputs()) inputs.push_back(ordinary_elements(s.dtype, n, 3 + inputs.size()));
  const Rows rows(e, inputs, n, 5);
  std::vector<Bytes> got;
  std::vector<void*> ptrs;
  for (size_t o = 0; o < e.num_outputs; ++o)
    got.emplace_back((summed >> o & 1) != 0 ? 4 : n * item_size(e.outputs()[o].dtype));
  for (Bytes& bytes : got) ptrs.push_back(bytes.data());
  for (Bytes& bytes : inputs) ptrs.push_back(bytes.data());
  code.run(ptrs.data(), n, rows.numbers.data());
  for (size_t o = 0; o < got.size(); ++o) {
    Bytes want = rows.want[o];
    if ((summed >> o & 1) != 0) {
      const float sum = sum_of_chunk(reinterpret_cast<const float*>(want.data()), n);
      want.resize(4);
      std::memcpy(want.data(), &sum, 4);
    }
    const DType d = e.outputs()[o].dtype;
    for (size_t i = 0; i < got[o].size() / item_size(d); ++i)
      ASSERT_TRUE(same_element(&got[o][i * item_size(d)], &want[i * item_size(d)], d))
          << "output " << o << " of " << n << ", element " << i << "\n"
          << to_string(e);
  }
}

TEST(Jit, SumsOfWhatIsComputed) {
  const char* const texts[] = {
      "in x: float32; out float32: x;",
      "in x: float32, y: float32; number a: f32; let d = sub(x, y); out float32: mul(d, d); out float32: "
      "exp(a);",
      "in x: float32; let g = mul(x, x); out float32: silu(x); out float32: g; out float32: g;",
      "in x: float32, y: float16; out float32: add(x, y); out float32: add(sin(mul(x, 100000:f32)), y);",
      "in x: float32; out float32: 1:f32;"};
  size_t made = 0;
  for (const char* text : texts) {
    const ExpressionPtr e = parse_typed(text);
    for (uint32_t summed = 1; summed < uint32_t{1} << e->num_outputs; ++summed) {
      for (const CpuTarget target : targets_with_code()) {
        if (!cpu::jit_sum_refusal(*e, target, summed).empty()) continue;
        ++made;
        const auto code = JitKernel::make_sums(*e, target, summed);
        SCOPED_TRACE(::testing::Message() << "sums " << summed << " on " << name(target));
        for (const size_t n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 100, 1000, 1024})
          ASSERT_NO_FATAL_FAILURE(expect_sums(*e, *code, summed, n));
      }
    }
  }
  EXPECT_TRUE(targets_with_code().empty() || made > 10) << made;
}

TEST(Jit, RefusalsSayWhy) {
  if (targets_with_code().empty()) GTEST_SKIP() << "no code is made for this machine";
  const auto refusal = [](const char* text, const char* target) -> std::string {
    for (const CpuTarget t : targets_with_code()) {
      if (name(t) == target) return cpu::jit_refusal(*parse_typed(text), t);
    }
    return "no such machine";
  };
  const char *halves = "in x: float16; out float32: add(x, 1:f32);",
             *sizes = "in x: float64; out float64: cast[f64](cast[f32](x));";
  EXPECT_EQ(refusal("in x: float32; out float32: add(x, 1:f32);", "AVX2"), "");
  EXPECT_NE(refusal(halves, "AVX2").find("converted when they are loaded"), std::string::npos);
  EXPECT_NE(refusal("in x: float32, y: float32; out float32: fmod(x, y);", "AVX2").find("`fmod`"),
            std::string::npos);
  EXPECT_NE(refusal(sizes, "AVX2").find("several sizes"), std::string::npos);
  if (!cpu::machine_has(targets_with_code().back()) || targets_with_code().size() < 2) return;
  EXPECT_EQ(refusal(halves, "AVX3"), "");
  EXPECT_EQ(refusal(sizes, "AVX3"), "");
}

}  // namespace
}  // namespace tenon::expr::testing
