// Typed expressions: the interpreter gives the evaluator's bits whatever types, dtypes and outputs they have;
// text, keys and conversions keep their promises.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/core/half.h"
#include "tenon/expr/evaluator.h"
#include "tenon/expr/typed_text.h"
#include "tests/expr/special_cases.h"

namespace tenon::expr::testing {
namespace {

// One random expression with operands, and what the evaluator makes of them.
struct RandomRun {
  ExpressionPtr e;
  size_t n;
  std::vector<Bytes> inputs, want;
  std::vector<uint64_t> numbers;

  explicit RandomRun(uint64_t seed)
      : e(RandomTyped(seed).make(3 + static_cast<int>(seed % 14))),
        n(seed % 16 == 0 ? 300 + seed % 300 : 1 + seed % 40) {
    for (const Slot& s : e->inputs()) inputs.push_back(random_elements(s.dtype, n, seed + inputs.size()));
    for (const Slot& s : e->numbers()) {
      const Bytes bytes = random_elements(s.dtype, 1, seed + 50 + numbers.size());
      numbers.push_back(load_scalar(bytes.data(), s.dtype));
    }
    for (const Slot& s : e->outputs()) want.emplace_back(n * item_size(s.dtype));
    for (size_t i = 0; i < n; ++i) {
      const void* in[4];
      void* out[4];
      for (size_t k = 0; k < inputs.size(); ++k) in[k] = &inputs[k][i * item_size(e->inputs()[k].dtype)];
      for (size_t k = 0; k < want.size(); ++k) out[k] = &want[k][i * item_size(e->outputs()[k].dtype)];
      evaluate(*e, in, numbers.data(), out);
    }
  }
};

TEST(Typed, RandomExpressionsRunAsTheEvaluatorSays) {
  for (uint64_t seed = 1; seed <= 1600; ++seed) {
    const RandomRun run(seed);
    const Expression& e = *run.e;
    ASSERT_NO_THROW(check(e)) << seed;
    const cpu::Program program(e);
    const auto compare = [&](cpu::CpuTarget target, bool in_place) {
      std::vector<Bytes> inputs = run.inputs, got;
      std::vector<void*> ptrs;
      for (const Bytes& bytes : run.want) got.emplace_back(bytes.size());
      for (Bytes& bytes : got) ptrs.push_back(bytes.data());
      for (Bytes& bytes : inputs) ptrs.push_back(bytes.data());
      // Outputs that are inputs of their dtype, each another one.
      std::vector<bool> taken(inputs.size(), !in_place);
      for (size_t k = 0; k < got.size(); ++k) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (taken[i] || e.inputs()[i].dtype != e.outputs()[k].dtype) continue;
          ptrs[k] = inputs[i].data();
          taken[i] = true;
          break;
        }
      }
      program.run(ptrs.data(), run.n, run.numbers.data(), target);
      for (size_t k = 0; k < got.size(); ++k) {
        const DType d = e.outputs()[k].dtype;
        for (size_t i = 0; i < run.n; ++i) {
          const size_t at = i * item_size(d);
          ASSERT_TRUE(same_element(static_cast<unsigned char*>(ptrs[k]) + at, &run.want[k][at], d))
              << "seed " << seed << " on " << name(target) << (in_place ? " in place" : "") << ", output "
              << k << ", element " << i << "\n"
              << to_string(e) << "\n"
              << program.to_string();
        }
      }
    };
    for (const cpu::CpuTarget target : cpu::supported_cpu_targets()) {
      compare(target, false);
      compare(target, true);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Typed, EveryOperationCastAndRoundingOfAllSpecialValues) {
  for (const SpecialCase& c : special_cases()) {
    const Expression& e = *c.e;
    check(e);
    const DType d = e.outputs()[0].dtype;
    const size_t count = c.inputs[0].size() / item_size(e.inputs()[0].dtype);
    Bytes want(count * item_size(d));
    for (size_t i = 0; i < count; ++i) {
      const void* in[3];
      for (size_t k = 0; k < c.inputs.size(); ++k) in[k] = &c.inputs[k][i * item_size(e.inputs()[k].dtype)];
      void* out[] = {&want[i * item_size(d)]};
      evaluate(e, in, nullptr, out);
    }
    const cpu::Program program(e);
    for (const cpu::CpuTarget target : cpu::supported_cpu_targets()) {
      std::vector<Bytes> inputs = c.inputs;
      Bytes got(want.size());
      std::vector<void*> ptrs{got.data()};
      for (Bytes& bytes : inputs) ptrs.push_back(bytes.data());
      program.run(ptrs.data(), count, nullptr, target);
      for (size_t i = 0; i < count; ++i) {
        const size_t at = i * item_size(d);
        ASSERT_TRUE(same_element(&got[at], &want[at], d))
            << to_string(e) << " on " << name(target) << ", combination " << i;
      }
    }
  }
}

TEST(Typed, TextIsAnExactRoundTrip) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const ExpressionPtr e = RandomTyped(seed).make(12);
    const std::string text = to_string(*e);
    const ExpressionPtr back = parse_typed(text);
    EXPECT_TRUE(*back == *e) << text << "\n" << to_string(*back);
  }
  const std::string text =
      "in self: bfloat16, other: bfloat16; number alpha: f32; out bfloat16: "
      "stored[bfloat16](add(self, mul(alpha, other)));";
  const std::string_view inputs[] = {"self", "other"}, numbers[] = {"alpha"};
  EXPECT_EQ(to_string(*parse_typed(text), inputs, numbers), text);
}

TEST(Typed, TextThatIsWrongIsAnErrorWithItsColumn) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      parse_typed(text);
      return "no error";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_NE(message("in x: float32; out float32: ad(x, x);").find("unknown operation 'ad' at column"),
            std::string::npos);
  EXPECT_NE(message("in x: float31; out float32: x;").find("expected a dtype"), std::string::npos);
  EXPECT_NE(message("in x: float32; out float32: add(x, 1);").find("needs its type"), std::string::npos);
  EXPECT_NE(message("in x: float32; out float32: cast[f16](x);").find("expected a type"), std::string::npos);
  EXPECT_NE(message("in x: float32; out float32: x").find("expected ';'"), std::string::npos);
  EXPECT_NE(message("in x: float32; out float32: y;").find("unknown name 'y'"), std::string::npos);
  EXPECT_NE(message("in x: float32, i: int64; out float32: add(x, i);").find("rule L3"), std::string::npos);
  EXPECT_NE(message("").find("no output"), std::string::npos);
  EXPECT_NE(message("in x: float32; out float32: " + std::string(9000, '(')).find("expected a name"),
            std::string::npos);
}

// The definition in scalar form is what block conversions do, for every value of a half or 16-bit integer.
TEST(Typed, CastAndRoundToOfAllShortValues) {
  for (const DType d : {DType::Float16, DType::BFloat16, DType::Int16}) {
    for (const DType to : kStored) {
      for (uint32_t v = 0; v < 0x10000; ++v) {
        const auto bits = static_cast<uint16_t>(v);
        unsigned char want[8] = {}, got[8] = {};
        cpu::convert_fn(d, to)(want, {}, &bits, {}, 1, 1);
        uint64_t value = convert_scalar(load_scalar(&bits, d), carrier(d), carrier(to));
        if (is_narrower_than_carrier(to)) {
          value = round_scalar(value, to);
          ASSERT_EQ(round_scalar(value, to), value) << "rounding twice";
        }
        store_scalar(got, to, value);
        ASSERT_TRUE(same_element(got, want, to)) << tenon::name(d) << " " << v << " to " << tenon::name(to);
      }
    }
  }
}

TEST(Typed, ConversionsAtTheEdges) {
  const auto f64 = [](double d) { return std::bit_cast<uint64_t>(d); };
  EXPECT_EQ(convert_scalar(f64(NAN), Type::F64, Type::I64), uint64_t{1} << 63);
  EXPECT_EQ(convert_scalar(f64(0x1p63), Type::F64, Type::I64), uint64_t{1} << 63);
  EXPECT_EQ(convert_scalar(f64(-1.9), Type::F64, Type::I64), static_cast<uint64_t>(-1));
  EXPECT_EQ(convert_scalar(f64(0x1p32 + 5), Type::F64, Type::I32), 5u);
  EXPECT_EQ(convert_scalar(f64(NAN), Type::F64, Type::Mask), 1u);
  EXPECT_EQ(convert_scalar(f64(-0.0), Type::F64, Type::Mask), 0u);
  // One rounding, not two by way of double.
  const int64_t between = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(convert_scalar(static_cast<uint64_t>(between), Type::I64, Type::F32),
            as_number(0x1p60f + 0x1p37f));
}

// `holds` says yes only where brute force over all halves finds no value that rounding changes.
TEST(Typed, HoldsAgainstBruteForceOverHalves) {
  int proven = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 rng(seed);
    Builder g;
    ExpressionParts parts;
    parts.inputs = {{.dtype = DType::Float16}};
    std::vector<NodeId> pool{
        g.add({.op = Op::Load, .type = Type::F32, .flags = static_cast<uint8_t>(Rank::Element)})};
    const float literals[] = {0.5f, 0.1f, 2049.0f, -0.0f};
    pool.push_back(g.add({.op = Op::Literal, .type = Type::F32, .bits = as_number(literals[rng() % 4])}));
    constexpr Op kOps[] = {Op::Min, Op::Max, Op::Neg, Op::Abs, Op::Add, Op::Mul};
    for (int i = 0; i < 4; ++i) {
      Node n{.op = kOps[rng() % (i < 3 ? 4 : 6)], .type = Type::F32};
      n.arity = info(n.op).arity;
      for (int a = 0; a < n.arity; ++a) n.args[a] = pool[rng() % pool.size()];
      pool.push_back(g.add(n));
    }
    const NodeId root = pool.back();
    if (!holds(g.nodes(), parts.inputs, root, DType::Float16)) continue;
    ++proven;
    parts.outputs = {{.dtype = DType::Float32, .rank = g[root].rank(), .node = root}};
    const ExpressionPtr e = g.finish(parts);
    for (uint32_t v = 0; v < 0x10000; v += 3) {
      const auto half = static_cast<uint16_t>(v);
      const void* in[] = {&half};
      float value = 0;
      void* out[] = {&value};
      evaluate(*e, in, nullptr, out);
      if (value != value) continue;
      ASSERT_EQ(round_scalar(as_number(value), DType::Float16), as_number(value))
          << to_string(*e) << " at " << v;
    }
  }
  EXPECT_GT(proven, 100);
}

TEST(Keys, AreEqualForPermutedBuildingAndNameless) {
  const ExpressionPtr a =
      parse_typed("in x: float32, y: float32; let s = add(x, y); let p = mul(x, y); out float32: sub(s, p);");
  const ExpressionPtr b =
      parse_typed("in u: float32, v: float32; let q = mul(u, v); let r = add(u, v); out float32: sub(r, q);");
  EXPECT_TRUE(*a == *b);
  EXPECT_EQ(to_string(a->key), to_string(b->key));
}

TEST(Keys, DifferWhenAnyFieldDoes) {
  const ExpressionPtr e = parse_typed(
      "in x: float32, h: float16; number s: f32; out float32: fma(x, exp(h), s); "
      "out float16: stored[float16](mul(x, 0.5:f32)); out bool: lt(x, h);");
  const ExpressionParts parts = parts_of(*e);
  std::vector<std::string> keys{to_string(e->key)};
  const auto expect_new = [&](const ExpressionParts& p, const std::string& what) {
    const std::string key = to_string(make_expression(p)->key);
    EXPECT_EQ(std::find(keys.begin(), keys.end(), key), keys.end()) << what;
    keys.push_back(key);
  };
  const auto change_slots = [&](std::vector<Slot> ExpressionParts::*list, const std::string& what) {
    for (size_t i = 0; i < (parts.*list).size(); ++i) {
      const auto change = [&](auto&& edit, const char* field) {
        ExpressionParts p = parts;
        edit((p.*list)[i]);
        expect_new(p, fmt::format("{} {} {}", what, i, field));
      };
      change([](Slot& s) { s.dtype = DType::Int16; }, "dtype");
      change([](Slot& s) { s.rank = Rank::Row; }, "rank");
      change([](Slot& s) { s.part = Part::Re; }, "part");
      change([](Slot& s) { s.reduces = Reduces::Sum; }, "reduces");
      change([](Slot& s) { s.operand = 9; }, "operand");
      change([](Slot& s) { s.flags = 1; }, "flags");
    }
  };
  change_slots(&ExpressionParts::inputs, "input");
  change_slots(&ExpressionParts::numbers, "number");
  change_slots(&ExpressionParts::outputs, "output");
  for (size_t i = 0; i < parts.nodes.size(); ++i) {
    const auto change = [&](auto&& edit, const char* field) {
      ExpressionParts p = parts;
      edit(p.nodes[i]);
      expect_new(p, fmt::format("node {} {}", i, field));
    };
    const Node& n = parts.nodes[i];
    change([](Node& m) { m.op = m.op == Op::Sub ? Op::Div : Op::Sub; }, "op");
    if (n.op != Op::Call) change([](Node& m) { m.type = Type::I64; }, "type");
    change([](Node& m) { m.flags ^= 4; }, "flags");
    if (n.op != Op::Call) change([](Node& m) { m.bits += 1; }, "bits");
    if (n.arity > 1) change([](Node& m) { std::swap(m.args[0], m.args[1]); }, "operands");
  }
  ExpressionParts relaxed = parts;
  relaxed.relaxed = true;
  expect_new(relaxed, "relaxed");
  ExpressionParts primitive = parts;
  primitive.level = Level::Primitive;
  expect_new(primitive, "level");
}

// Keys name kernels on disk: these values may change only together with kKeyVersion.
TEST(Keys, HaveGoldenValues) {
  EXPECT_EQ(to_string(parse_typed("in x: float32, y: float32; out float32: add(x, y);")->key),
            "66b8c64d3387320dcc9c1b125409cc30");
  EXPECT_EQ(to_string(parse_typed("in x: bfloat16; number a: f32; out bfloat16: "
                                  "stored[bfloat16](where(gt(x, 0.0:f32), x, mul(a, x)));")
                          ->key),
            "df50702dbf651745db0b3c0c8c0a39ee");
}

}  // namespace
}  // namespace tenon::expr::testing
