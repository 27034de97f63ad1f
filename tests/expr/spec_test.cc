// Every rule of typed expressions has a planted violation, which `check` names; what is reserved is refused
// with a sentence.
#include "tenon/expr/spec.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/typed_text.h"

namespace tenon::expr {
namespace {

// Nodes: 0 x, 1 h, 2 x + h, 3 s, 4 (x + h) * s, 5 round to float16, 6 x < h.
constexpr std::string_view kText =
    "in x: float32, h: float16; number s: f32; out float16: stored[float16](mul(add(x, h), s)); out bool: "
    "lt(x, h);";

std::string error_of(const std::function<void(ExpressionParts&)>& plant, std::string_view text = kText) {
  ExpressionParts parts = parts_of(*parse_typed(text));
  plant(parts);
  const ExpressionPtr e = make_expression(parts);
  try {
    check(*e);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

void expect(std::string_view rule, const std::function<void(ExpressionParts&)>& plant,
            std::string_view text = kText) {
  const std::string message = error_of(plant, text);
  EXPECT_NE(message.find(rule), std::string::npos) << rule << ": " << message;
}

TEST(Spec, TheUnchangedExpressionIsLegal) {
  EXPECT_EQ(error_of([](ExpressionParts&) {}), "no error");
}

TEST(Spec, L1OperandsComeFirstAndNothingIsUnused) {
  expect("rule L1", [](ExpressionParts& p) { p.nodes[2].args[1] = 4; });
  expect("rule L1", [](ExpressionParts& p) { p.outputs.pop_back(); });
  expect("rule L1", [](ExpressionParts& p) { p.outputs.clear(); });
  expect("rule L1", [](ExpressionParts& p) { p.inputs[0].node = 1; });
  expect("rule L1", [](ExpressionParts& p) { p.outputs[0].node = 99; });
  expect("rule L1", [](ExpressionParts& p) { p.outputs[0].node = kNoNode; });
}

TEST(Spec, L2ArityAndBitsFitTheOperation) {
  expect("rule L2", [](ExpressionParts& p) { p.nodes[2].arity = 1; });
  expect("rule L2", [](ExpressionParts& p) { p.nodes[2].args[2] = 0; });
  expect("rule L2", [](ExpressionParts& p) { p.nodes[2].bits = 1; });
  expect("rule L2", [](ExpressionParts& p) { p.nodes[0].bits = 2; });
  expect("rule L2", [](ExpressionParts& p) { p.nodes[3].bits = 1; });
  expect(
      "rule L2", [](ExpressionParts& p) { p.nodes[1].bits = 32; },
      "in i: int32; out int32: shift_left(i, 31);");
  expect(
      "rule L2", [](ExpressionParts& p) { p.nodes[1].bits = 3; },
      "in x: float32; out float32: pi_reduce(x, 2);");
  expect(
      "rule L2", [](ExpressionParts& p) { p.nodes[1].bits = functions().size(); },
      "in x: float32; out float32: exp(x);");
  expect(
      "rule L2", [](ExpressionParts& p) { p.nodes[1].bits = uint64_t{1} << 32; },
      "in x: float32; out float32: add(x, 1:f32);");
}

TEST(Spec, L3ArithmeticIsOfOneType) {
  expect("rule L3", [](ExpressionParts& p) { p.nodes[2].type = Type::F64; });
  expect("rule L3",
         [](ExpressionParts& p) { p.nodes[3].type = Type::F64, p.numbers[0].dtype = DType::Float64; });
  expect(
      "rule L3", [](ExpressionParts& p) { p.nodes[2].op = Op::Div; },
      "in i: int64, j: int64; out int64: add(i, j);");
  expect("rule L3", [](ExpressionParts& p) { p.nodes[2].op = Op::TruncDiv; });
  expect(
      "rule L3", [](ExpressionParts& p) { p.nodes[1].op = Op::Floor; }, "in i: int64; out int64: neg(i);");
  expect(
      "rule L3", [](ExpressionParts& p) { p.nodes[1].bits = find_function("exp"); },
      "in i: int64; out int64: relu(i);");
}

TEST(Spec, L4TruthIsOfMasks) {
  expect("rule L4", [](ExpressionParts& p) { p.nodes[6].type = Type::F32; });
  expect(
      "rule L4", [](ExpressionParts& p) { p.nodes[3].args[0] = 1; },
      "in m: bool, x: float32; out float32: where(m, x, 0.0:f32);");
  expect("rule L4", [](ExpressionParts& p) { p.nodes[2].op = Op::And; });
}

TEST(Spec, L4WhereChoosesByAMask) {
  constexpr std::string_view text = "in x: float32, y: float32; out float32: where(lt(x, y), x, y);";
  expect(
      "rule L4",
      [](ExpressionParts& p) {
        p.nodes[2] = {.op = Op::Add, .type = Type::F32, .arity = 2, .flags = 3, .args = {0, 1, kNoNode}};
      },
      text);
}

TEST(Spec, L5CastsChangeTheType) {
  expect(
      "rule L5", [](ExpressionParts& p) { p.nodes[1].type = Type::F32; },
      "in x: float32; out float64: cast[f64](x);");
}

TEST(Spec, L6RoundingIsOfTheCarrier) {
  expect("rule L6", [](ExpressionParts& p) { p.nodes[5].bits = static_cast<uint64_t>(DType::Int8); });
  expect("rule L6", [](ExpressionParts& p) { p.nodes[5].bits = static_cast<uint64_t>(DType::Float32); });
  expect("rule L6", [](ExpressionParts& p) { p.nodes[5].bits = 200; });
}

TEST(Spec, L7LevelsHaveTheirOperations) {
  expect("rule L7", [](ExpressionParts& p) { p.level = Level::Written; });
  expect("rule L7", [](ExpressionParts& p) { p.nodes[2].type = Type::Same; });
  expect(
      "rule L7", [](ExpressionParts& p) { p.level = Level::Primitive; },
      "in x: float32; out float32: exp(x);");
  expect(
      "rule L7", [](ExpressionParts& p) { p.nodes[0] = {.op = Op::Given, .type = Type::Mask}; },
      "in x: float32; out float32: where(true, x, 1:f32);");
}

TEST(Spec, L8LoadsHaveTheTypeOfTheirSlot) {
  expect("rule L8", [](ExpressionParts& p) { p.nodes[0].type = Type::F64; });
  expect("rule L8", [](ExpressionParts& p) { p.nodes[0].flags = 0; });
  expect("rule L8", [](ExpressionParts& p) { p.numbers[0].dtype = DType::Float64; });
  expect("rule L8", [](ExpressionParts& p) { p.inputs[0].dtype = DType::QInt8; });
}

TEST(Spec, L9WhatIsStoredFits) {
  expect("rule L9", [](ExpressionParts& p) { p.outputs[0].dtype = DType::Float64; });
  expect("rule L9", [](ExpressionParts& p) { p.outputs[0].dtype = DType::BFloat16; });
  expect(
      "rule L9", [](ExpressionParts& p) { p.outputs[0].dtype = DType::Int8; },
      "in i: int8, j: int8; out int64: neg(min(i, j));");
  EXPECT_EQ(error_of([](ExpressionParts& p) { p.outputs[0].dtype = DType::Int8; },
                     "in i: int8, j: int8; out int64: min(i, j);"),
            "no error");
}

TEST(Spec, L10ValuesVaryWithTheirOperands) {
  expect("rule L10", [](ExpressionParts& p) { p.nodes[2].flags = 0; });
  expect("rule L10", [](ExpressionParts& p) { p.outputs[0].rank = Rank::Number; });
}

// Nodes of kinds that are reserved, planted well-formed but for what each test says.
Node reduce(ReduceKind kind, NodeId of, Type type) {
  return {.op = Op::Reduce,
          .type = type,
          .arity = 1,
          .args = {of, kNoNode, kNoNode},
          .bits = static_cast<uint64_t>(kind)};
}
// The nodes of kText with these behind them: 7 an i64 number, 8 an Iota, 9 the one given.
void plant_behind(ExpressionParts& p, const Node& n) {
  p.nodes.push_back({.op = Op::Literal, .type = Type::I64, .bits = 5});
  p.nodes.push_back({.op = Op::Iota, .type = Type::I64, .flags = static_cast<uint8_t>(Rank::Element)});
  p.nodes.push_back(n);
}
constexpr std::string_view kRows = "in x: float32, w: float32 row; out float32: add(mul(sum[row](x), w), x);";
constexpr NodeId kX = 0, kScale = 3, kTruth = 6, kCount = 7, kIota = 8;

TEST(Spec, L11TruthIsReducedByAnyAllAndFirst) {
  for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min,
                                ReduceKind::ArgMax, ReduceKind::ArgMin}) {
    expect("rule L11", [&](ExpressionParts& p) { plant_behind(p, reduce(kind, kTruth, Type::F32)); });
  }
  for (const ReduceKind kind : {ReduceKind::Any, ReduceKind::All, ReduceKind::First}) {
    expect("rule L11", [&](ExpressionParts& p) { plant_behind(p, reduce(kind, kX, Type::Mask)); });
  }
  expect(
      "rule L11", [](ExpressionParts& p) { p.nodes[1].bits = static_cast<uint64_t>(ReduceKind::ArgMax); },
      kRows);
  expect(
      "rule L11", [](ExpressionParts& p) { p.nodes[1].type = Type::F64; }, kRows);
  expect("rule L2", [&](ExpressionParts& p) {
    plant_behind(p, reduce(static_cast<ReduceKind>(kNumReduceKinds), kX, Type::F32));
  });
}

TEST(Spec, L12ALengthIsOneNumber) {
  const Node length{.op = Op::Length, .type = Type::I64};
  expect("rule L12", [&](ExpressionParts& p) {
    plant_behind(p, length);
    p.nodes.back().type = Type::F32;
  });
  expect("rule L12", [&](ExpressionParts& p) {
    plant_behind(p, length);
    p.nodes.back().flags = static_cast<uint8_t>(Rank::Row);
  });
}

// What varies along a row is reduced, and no more than that.
TEST(Spec, L10RanksOfRows) {
  EXPECT_EQ(error_of([](ExpressionParts&) {}, kRows), "no error");
  const auto of_row = [](ExpressionParts& p) {
    p.inputs[0].rank = Rank::Row;
    p.nodes[0].flags = 1;
  };
  expect("rule L10", of_row, kRows);
  expect(
      "rule L10", [](ExpressionParts& p) { p.nodes[1].flags = 3; }, kRows);
  expect(
      "has no rank", [](ExpressionParts& p) { p.outputs[0].rank = static_cast<Rank>(7); }, kRows);
}

TEST(Spec, L13WordsAreFoundByNumbersOfTheCallAndLogicalPlace) {
  for (const Op op : {Op::Word32, Op::Word64}) {
    const Node word{.op = op, .type = Type::I64, .arity = 3, .args = {kCount, kCount, kIota}};
    expect("reserved", [&](ExpressionParts& p) { plant_behind(p, word); });
    for (int i = 0; i < 3; ++i) {
      for (const NodeId wrong : {kX, kScale}) {
        expect("rule L13", [&](ExpressionParts& p) {
          plant_behind(p, word);
          p.nodes.back().args[i] = wrong;
        });
      }
    }
    expect("rule L13", [&](ExpressionParts& p) {
      plant_behind(p, word);
      p.nodes.back().args[0] = kIota;
    });
    expect("rule L2", [&](ExpressionParts& p) {
      plant_behind(p, word);
      p.nodes.back().arity = 2;
    });
  }
}

TEST(Spec, L14SizesAreBounded) {
  expect("rule L14", [](ExpressionParts& p) { p.inputs.resize(kMaxSlots); });
  expect("rule L14", [](ExpressionParts& p) { p.nodes.resize(kMaxNodes + 1, p.nodes[2]); });
}

TEST(Spec, L15BitsOfFloatsAreForDefinitions) {
  const auto plant = [](ExpressionParts& p) {
    p.nodes[1] = {.op = Op::Bits, .type = Type::I32, .arity = 1, .flags = 3, .args = {0, kNoNode, kNoNode}};
  };
  constexpr std::string_view text = "in x: float32; out int32: cast[i32](x);";
  expect("rule L15", plant, text);
  ExpressionParts parts = parts_of(*parse_typed(text));
  plant(parts);
  EXPECT_NO_THROW(check(*make_expression(parts), Origin::Definition));
  parts.level = Level::Primitive;
  EXPECT_NO_THROW(check(*make_expression(parts))) << "definitions are inlined there";
}

TEST(Spec, L16ComplexPartsComeInPairs) {
  constexpr std::string_view text =
      "in z.re: complex64, w.im: complex64; out.re complex64: z; out.im complex64: neg(w);";
  EXPECT_EQ(error_of([](ExpressionParts&) {}, text), "no error");
  expect(
      "rule L16", [](ExpressionParts& p) { p.inputs[1].part = Part::Whole; }, text);
  expect(
      "rule L16", [](ExpressionParts& p) { p.inputs[1].operand = 4; }, text);
  expect(
      "rule L16", [](ExpressionParts& p) { p.outputs[0].part = Part::Im; }, text);
  expect("rule L16", [](ExpressionParts& p) { p.inputs[0].part = Part::Re; });
}

TEST(Spec, L17OutputsAreDifferentResults) {
  expect("rule L17", [](ExpressionParts& p) { p.outputs[1].operand = 0; });
}

// Codes that come from a file or a plug-in may be any.
TEST(Spec, UnknownCodesAreRefused) {
  const auto unknown = static_cast<DType>(200);
  expect("rule L8", [&](ExpressionParts& p) { p.inputs[0].dtype = unknown; });
  expect("rule L8", [&](ExpressionParts& p) { p.numbers[0].dtype = unknown; });
  expect("output 0 is of a dtype without arithmetic",
         [&](ExpressionParts& p) { p.outputs[0].dtype = unknown; });
  expect("rounds to dtype 200, which does not exist", [](ExpressionParts& p) { p.nodes[5].bits = 200; });
  for (const int type : {11, 50, 0x7f, 0x84, 0xff}) {
    expect("no such type: " + std::to_string(type),
           [&](ExpressionParts& p) { p.nodes[2].type = static_cast<Type>(type); });
  }
  expect("no such operation", [](ExpressionParts& p) { p.nodes[2].op = static_cast<Op>(250); });
  expect("rule L16", [](ExpressionParts& p) { p.inputs[0].part = static_cast<Part>(7); });
  expect("reserved", [](ExpressionParts& p) { p.outputs[0].reduces = static_cast<Reduces>(9); });
  expect("rule L7: there is no level 9", [](ExpressionParts& p) { p.level = static_cast<Level>(9); });
}

TEST(Spec, WhatIsReservedIsRefusedWithASentence) {
  for (const Op op : {Op::Scan, Op::Iota})
    expect("reserved and not implemented yet", [op](ExpressionParts& p) { p.nodes[2].op = op; });
  for (const Node& n :
       {Node{.op = Op::Word32, .type = Type::I64, .arity = 3, .args = {kCount, kCount, kIota}},
        Node{.op = Op::Word64, .type = Type::I64, .arity = 3, .args = {kCount, kCount, kIota}}})
    expect("reserved and not implemented yet", [&](ExpressionParts& p) { plant_behind(p, n); });
  expect("reserved and not implemented yet", [](ExpressionParts& p) { p.nodes[2].type = Type::I8; });
  expect("reserved and not implemented yet", [](ExpressionParts& p) { p.outputs[0].reduces = Reduces::Sum; });
  expect("no such operation", [](ExpressionParts& p) { p.nodes[2].op = static_cast<Op>(kNumOps); });
}

// What a written text comes to for a call's dtypes.
std::string typed(std::string_view text, CallTypes types, std::initializer_list<Symbol> symbols) {
  Builder g;
  const NodeId root = parse(g, text, std::span(symbols.begin(), symbols.size()));
  std::vector<std::string_view> inputs, numbers;
  for (const Symbol& s : symbols) (s.kind == SymbolKind::Scalar ? numbers : inputs).push_back(s.name);
  const ExpressionPtr e = instantiate(*g.finish({root}), types);
  check(*e);
  return to_string(*e, inputs, numbers);
}

TEST(Instantiate, CastsEachOperandOnceAndRoundsWhatIsStored) {
  const Symbol x{"x"}, y{"y"}, s{"s", SymbolKind::Scalar};
  const DType halves[] = {DType::BFloat16, DType::BFloat16}, half[] = {DType::BFloat16};
  EXPECT_EQ(typed("x + s * y", {.inputs = halves, .results = half}, {x, y, s}),
            "in x: bfloat16, y: bfloat16; number s: f32; out bfloat16: stored[bfloat16](add(x, mul(s, y)));");
  const DType mixed[] = {DType::Float32, DType::Int64}, f32[] = {DType::Float32};
  EXPECT_EQ(typed("x + y", {.inputs = mixed, .results = f32}, {x, y}),
            "in x: float32, y: int64; out float32: add(x, cast[f32](y));");
  const DType integers[] = {DType::Int8, DType::Int16}, truth[] = {DType::Bool}, i16[] = {DType::Int16};
  EXPECT_EQ(typed("x < y", {.compute = Type::I64, .inputs = integers, .results = truth}, {x, y}),
            "in x: int8, y: int16; out bool: lt(x, y);");
  EXPECT_EQ(typed("x + y", {.compute = Type::I64, .inputs = integers, .results = i16}, {x, y}),
            "in x: int8, y: int16; out int16: stored[int16](add(x, y));");
  const DType masks[] = {DType::Bool, DType::Bool};
  EXPECT_EQ(typed("x + y", {.compute = Type::I64, .inputs = masks, .results = truth}, {x, y}),
            "in x: bool, y: bool; out bool: ne(add(cast[i64](x), cast[i64](y)), 0:i64);");
  // An `out` of another dtype gets what the result's own makes of the value.
  EXPECT_EQ(typed("x * 2", {.inputs = half, .results = half, .outs = f32}, {x}),
            "in x: bfloat16; out float32: stored[bfloat16](mul(x, 2:f32));");
  // A load is held by its own dtype.
  EXPECT_EQ(typed("max(x, y)", {.inputs = halves, .results = half}, {x, y}),
            "in x: bfloat16, y: bfloat16; out bfloat16: max(x, y);");
}

TEST(Instantiate, TextsMayCastAndAskWhatIsStored) {
  const Symbol x{"x"}, s{"s", SymbolKind::Scalar};
  const DType half[] = {DType::Float16};
  EXPECT_EQ(typed("stored(x * x) + 1", {.inputs = half, .results = half}, {x}),
            "in x: float16; out float16: stored[float16](add(stored[float16](mul(x, x)), 1:f32));");
  // As an operand is stored, not as the result is.
  const DType operands[] = {DType::Float32, DType::BFloat16};
  EXPECT_EQ(typed("stored(x * x, y) + y", {.inputs = operands, .results = half}, {x, {"y"}}),
            "in x: float32, y: bfloat16; out float16: "
            "stored[float16](add(stored[bfloat16](mul(x, x)), y));");
  EXPECT_EQ(typed("same(1 - float64(s)) * x", {}, {x, s}),
            "in x: float32; number s: f64; out float32: mul(cast[f32](sub(1:f64, s)), x);");
  // One number in two types is two slots.
  EXPECT_EQ(typed("same(float64(s)) * x * s", {}, {x, s}),
            "in x: float32; number s: f32, n1@0: f64; out float32: mul(mul(cast[f32](n1), x), s);");
}

TEST(Instantiate, AnIntegerLiteralRoundsOnceToFloat32) {
  // 2^60 + 2^36 + 1: by way of double it would lose the 1 and then round to even, down.
  Builder g;
  const NodeId root = parse(g, "x + 1152921573326323713", std::vector<Symbol>{{"x"}});
  const ExpressionPtr e = instantiate(*g.finish({root}), {});
  bool found = false;
  for (const Node& n : e->nodes()) {
    if (n.op != Op::Literal) continue;
    found = true;
    EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(n.bits)), 0x1p60f + 0x1p37f);
  }
  EXPECT_TRUE(found);
}

TEST(Instantiate, GivenChoosesAndAbsentOperandsHaveNoSlot) {
  const Symbol x{"x"}, w{"w"};
  constexpr std::string_view text = "where(given(w), x * w, x)";
  EXPECT_EQ(typed(text, {}, {x, w}), "in x: float32, w: float32; out float32: mul(x, w);");
  EXPECT_EQ(typed(text, {.absent_inputs = 2}, {x, w}), "in x: float32; out float32: x;");
  EXPECT_THROW(typed("x * w", {.absent_inputs = 2}, {x, w}), Error);
}

TEST(Instantiate, OperandsOfTwoTypesNeedACast) {
  try {
    typed("float64(x) + x", {}, {{"x"}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Type);
    EXPECT_STREQ(e.what(),
                 "expression: `add` of float64 and same; convert one of them, as in same(x) or float64(x)");
  }
}

}  // namespace
}  // namespace tenon::expr
