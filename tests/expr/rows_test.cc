// Expressions over rows: the CPU's passes, along rows and across panels of them, give the evaluator's bits
// for any length, layout and dtype; texts read back; what is no row expression is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/cpu/rows/row_plan.h"
#include "backends/cpu/rows/run_rows.h"
#include "tenon/core/error.h"
#include "tenon/expr/evaluator.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/plain_reduction.h"
#include "tenon/expr/scalar.h"
#include "tenon/expr/spec.h"
#include "tenon/expr/typed_text.h"
#include "tests/expr/random_typed.h"

namespace tenon::expr::testing {
namespace {

using Bytes = std::vector<unsigned char>;

// Over x and y, one element each, w, a value of each row, and t, a place of each row; `a` is a number.
ExpressionPtr written(const std::vector<std::string_view>& texts) {
  Builder g;
  const Symbol symbols[] = {{"x", SymbolKind::Tensor},
                            {"y", SymbolKind::Tensor},
                            {"w", SymbolKind::Tensor, Rank::Row},
                            {"t", SymbolKind::IndexTensor, Rank::Row},
                            {"a", SymbolKind::Scalar}};
  std::vector<NodeId> roots;
  for (const Symbol& s : symbols) g.symbol(s.name, s.kind, s.rank);
  for (const std::string_view text : texts) roots.push_back(simplify(g, parse_rows(g, text, symbols)));
  return g.finish(roots);
}

const std::vector<std::vector<std::string_view>>& float_texts() {
  static const std::vector<std::vector<std::string_view>> texts = {
      {"let e = exp(x - max(x)); e / sum(e)"},
      {"let z = x - max(x); z - log(sum(exp(z)))"},
      {"y * (x - sum(x * y))"},
      {"sum(x)", "prod(x)", "min(x)"},
      {"prod(x * y)", "prod(x) * w"},
      {"max(x * 2)", "any(x > y)", "all(x > -100)", "argmax(x)", "argmin(x + y)"},
      {"at(x * y, t) + w", "first(x > 1, y)"},
      {"let m = mean(x); let d = x - m; let r = 1 / sqrt(mean(d * d) + a); d * r * y + w", "mean(x)"},
      {"let d = wide(x) - mean(wide(x)); sum(d * d) / wide(length - 1)"},
      {"where(position == t, x, 0) + same(position)", "w * a + max(y)"},
      {"where(any(x > 1), x, y)", "sqrt(w * w)"},
      {"let e = exp(x); let s = sum(e); let q = e / s; q - sum(q * y)", "sum(exp(x) * exp(x))"},
      {"stored(x - mean(x)) * w", "sum(stored(x * y))"},
      {"prod_re(x, y) + w", "prod_im(x * 2, y)"},
      {"x * a", "sum(x * a + y)", "max(exp(x)) + w", "y - exp(x)"},
      {"let z = x * y + a; let d = z - max(z); d * sum(d * z) + first(d > w, z)"},
  };
  return texts;
}
const std::vector<std::vector<std::string_view>>& integer_texts() {
  static const std::vector<std::vector<std::string_view>> texts = {
      {"x - max(x) + w", "sum(x)", "prod(x)"},
      {"min(x * a)", "any(x > y)", "argmax(x)", "at(x, t)", "first(x > y, position)"},
  };
  return texts;
}

struct Layout {
  const char* name;
  std::vector<int64_t> sizes;
  std::vector<int> order;  // dimensions from the outermost in memory
  std::vector<int> over;
};

// Elements of all operands, each in memory of its own, laid out by `order`.
struct Operand {
  DType dtype;
  Bytes bytes;
  Dims strides;
  RowsOperand slot() { return {reinterpret_cast<char*>(bytes.data()), dtype, strides.data()}; }
};

size_t item(DType d) { return item_size(d); }

class Loop {
 public:
  explicit Loop(const Layout& l) : layout_(l), over_(l.sizes.size(), 0) {
    for (const int d : l.over) over_[static_cast<size_t>(d)] = 1;
  }
  const Dims& over() const { return over_; }
  bool along(size_t d) const { return over_[d] != 0; }

  int64_t count(bool rows) const {
    int64_t n = 1;
    for (size_t d = 0; d < layout_.sizes.size(); ++d) n *= along(d) != rows ? layout_.sizes[d] : 1;
    return n;
  }

  Operand make(DType dtype, bool of_row, uint64_t seed) const {
    Operand o{dtype, {}, Dims(layout_.sizes.size(), 0)};
    int64_t n = 1;
    for (size_t k = layout_.order.size(); k-- > 0;) {
      const auto d = static_cast<size_t>(layout_.order[k]);
      if (of_row && along(d)) continue;
      o.strides[d] = n * static_cast<int64_t>(item(dtype));
      n *= layout_.sizes[d];
    }
    o.bytes = random_elements(dtype, static_cast<size_t>(n) + 1, seed);
    return o;
  }

  // The address of place `p` of row `r`.
  unsigned char* at(Operand& o, int64_t r, int64_t p) const {
    int64_t offset = 0;
    for (size_t d = layout_.sizes.size(); d-- > 0;) {
      if (layout_.sizes[d] == 0) continue;
      int64_t& i = along(d) ? p : r;
      offset += i % layout_.sizes[d] * o.strides[d];
      i /= layout_.sizes[d];
    }
    return o.bytes.data() + offset;
  }

 private:
  const Layout& layout_;
  Dims over_;
};

bool same(const unsigned char* a, const unsigned char* b, DType d) {
  if (std::memcmp(a, b, item(d)) == 0) return true;
  if (!is_floating_point(d)) return false;
  const auto is_nan = [&](const unsigned char* p) {
    const uint64_t bits = load_scalar(p, d);
    return carrier(d) == Type::F64 ? std::isnan(std::bit_cast<double>(bits))
                                   : std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  };
  return is_nan(a) && is_nan(b);
}

void compare(const Expression& w, DType dtype, const Layout& layout, uint64_t seed) {
  const Loop loop(layout);
  const int64_t length = loop.count(false), rows = loop.count(true);
  const DType computed = dtype_info(dtype).compute.value();
  const Type type = carrier(computed);
  std::vector<DType> inputs, results;
  for (const Slot& s : w.inputs()) inputs.push_back(s.dtype == DType::Int64 ? DType::Int64 : dtype);
  for (const Slot& s : w.outputs())
    results.push_back(w[s.node].type == Type::Mask  ? DType::Bool
                      : w[s.node].type == Type::I64 ? DType::Int64
                                                    : dtype);
  CallTypes types{.compute = type, .inputs = inputs, .results = results};
  if (is_narrower_than_carrier(dtype) && is_floating_point(dtype)) types.wide = Type::F32;
  const ExpressionPtr meant = instantiate(w, types);
  types.dense = true;
  const ExpressionPtr dense = instantiate(w, types);
  ASSERT_NO_THROW(check(*meant));
  ASSERT_NO_THROW(check(*dense));
  ASSERT_TRUE(*parse_typed(to_string(*meant)) == *meant) << to_string(*meant);

  std::vector<Operand> ins, outs;
  for (size_t i = 0; i < w.num_inputs; ++i)
    ins.push_back(loop.make(inputs[i], !varies_along(w.inputs()[i].rank), seed + i));
  for (size_t i = 0; i < w.num_outputs; ++i)
    outs.push_back(loop.make(results[i], !varies_along(w.outputs()[i].rank), seed + 40 + i));
  std::vector<RowsOperand> in_slots, out_slots;
  for (const Slot& s : dense->inputs()) {
    Operand& o = ins[s.operand];
    if (w.inputs()[s.operand].dtype == DType::Int64) {
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t place = length > 0 ? (r * 7) % length : 0;
        std::memcpy(loop.at(o, r, 0), &place, sizeof place);
      }
    }
    in_slots.push_back(o.slot());
  }
  for (Operand& o : outs) out_slots.push_back(o.slot());
  uint64_t numbers[4] = {};
  for (size_t i = 0; i < dense->num_numbers; ++i)
    numbers[i] = convert_scalar(std::bit_cast<uint64_t>(0.75), Type::F64, carrier(dense->numbers()[i].dtype));
  std::atomic<void*> made{nullptr};
  cpu::run_rows({"test", *dense, made, IntArrayRef(layout.sizes), loop.over(), in_slots, out_slots, numbers});
  const std::unique_ptr<cpu::RowPlans> plans(static_cast<cpu::RowPlans*>(made.load()));

  std::vector<Bytes> row_in(meant->num_inputs), row_out(meant->num_outputs);
  for (size_t k = 0; k < meant->num_outputs; ++k) row_out[k].resize((static_cast<size_t>(length) + 1) * 8);
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<const void*> in_ptrs;
    std::vector<void*> out_ptrs;
    for (size_t k = 0; k < meant->num_inputs; ++k) {
      const Slot& s = meant->inputs()[k];
      Operand& o = ins[s.operand];
      row_in[k].resize((static_cast<size_t>(length) + 1) * item(o.dtype));
      const int64_t places = varies_along(s.rank) ? length : 1;
      for (int64_t p = 0; p < places; ++p)
        std::memcpy(&row_in[k][static_cast<size_t>(p) * item(o.dtype)], loop.at(o, r, p), item(o.dtype));
      in_ptrs.push_back(row_in[k].data());
    }
    for (Bytes& b : row_out) out_ptrs.push_back(b.data());
    evaluate_row(*meant, static_cast<size_t>(length), in_ptrs.data(), numbers, out_ptrs.data());
    for (size_t k = 0; k < meant->num_outputs; ++k) {
      const int64_t places = varies_along(meant->outputs()[k].rank) ? length : 1;
      for (int64_t p = 0; p < places; ++p) {
        const unsigned char *got = loop.at(outs[k], r, p),
                            *want = &row_out[k][static_cast<size_t>(p) * item(results[k])];
        ASSERT_TRUE(same(got, want, results[k]))
            << layout.name << " " << name(dtype) << " output " << k << " row " << r << " place " << p << "\n"
            << to_string(*meant);
      }
    }
  }
}

std::vector<Layout> layouts() {
  std::vector<Layout> list = {
      {"one row", {3000}, {0}, {0}},
      {"no places", {3, 0}, {0, 1}, {1}},
      {"no rows", {0, 5}, {0, 1}, {1}},
      {"two in", {5, 3, 40, 30}, {0, 1, 2, 3}, {2, 3}},
      {"outer and inner", {6, 5, 300}, {0, 1, 2}, {0, 2}},
      {"permuted", {7, 30, 20}, {2, 0, 1}, {2}},
      {"all", {4, 5, 6}, {2, 1, 0}, {0, 1, 2}},
      {"none", {40, 3}, {0, 1}, {}},
      {"middle", {3, 50, 70}, {0, 1, 2}, {1}},
      {"long panel", {5000, 9}, {0, 1}, {0}},
      {"long rows", {2, 9000}, {0, 1}, {1}},
  };
  for (const int64_t n : {1, 15, 16, 17, 100, 1023, 1024, 1025, 2500}) {
    list.push_back({"along", {19, n}, {0, 1}, {1}});
    list.push_back({"across", {n, 67}, {0, 1}, {0}});
  }
  return list;
}

TEST(Rows, PassesGiveTheEvaluatorsBits) {
  uint64_t seed = 1;
  const auto all = layouts();
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const auto& texts : float_texts()) {
      const ExpressionPtr w = written(texts);
      for (const Layout& layout : all) {
        if (dtype != DType::Float32 && seed++ % 8 != 0) continue;
        compare(*w, dtype, layout, seed += 100);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Of float32 alone.
RowPasses cut(const std::vector<std::string_view>& texts, Keep keep) {
  const ExpressionPtr w = written(texts);
  const std::vector<DType> inputs(w->num_inputs, DType::Float32), results(w->num_outputs, DType::Float32);
  const ExpressionPtr e = instantiate(*w, {.compute = Type::F32, .inputs = inputs, .results = results});
  return cut_passes(*e, RowForm::Along, keep);
}

TEST(Rows, ElementsThatWaitForNoReducerAreStoredInItsPass) {
  const auto passes = [](const std::vector<std::string_view>& texts) {
    return cut(texts, Keep::Dear).passes.size();  // the first has no elements
  };
  EXPECT_EQ(passes({"x * a", "sum(x * a + y)"}), 2u);
  EXPECT_EQ(passes({"x * a", "sum(x)"}), 3u)
      << "the result may lie where x does, which is reduced as it lies";
  EXPECT_EQ(passes({"x - sum(x * y)", "x * y"}), 3u);
}

TEST(Rows, WhatIsReducedIsKeptWhereThatIsWishedAndAnotherPassNeedsIt) {
  const std::vector<std::string_view> norm = {"let z = x + y; (z - mean(z)) * a"};
  EXPECT_TRUE(cut(norm, Keep::Dear).kept.empty());
  const RowPasses kept = cut(norm, Keep::Reduced);
  ASSERT_EQ(kept.kept.size(), 1u);
  const RowPlace at{RowPlace::Kind::Kept, 0};
  EXPECT_EQ(kept.passes[1].reducers[0].from, at);
  EXPECT_EQ(kept.passes[2].elements.inputs, std::vector{at});
  EXPECT_TRUE(cut({"x - mean(x * y)"}, Keep::Reduced).kept.empty()) << "nobody needs it again";
}

TEST(Rows, PassesOfIntegersGiveTheEvaluatorsBits) {
  uint64_t seed = 1;
  const auto all = layouts();
  for (const DType dtype : {DType::Int32, DType::Int64, DType::Int8, DType::UInt8}) {
    for (const auto& texts : integer_texts()) {
      const ExpressionPtr w = written(texts);
      for (const Layout& layout : all) {
        compare(*w, dtype, layout, seed += 100);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// What is recognised is walked with no passes: a form that is not loses speed, and no test of bits notices.
TEST(Rows, PlainReductionsAreRecognised) {
  struct Case {
    std::vector<std::string_view> texts;
    ReduceKind kind;
    bool of_complex, mean, elements;
  };
  for (const Case& c : std::vector<Case>{
           {{"sum(x)"}, ReduceKind::Sum, true, false, false},
           {{"prod(x)"}, ReduceKind::Prod, true, false, false},
           {{"mean(x)"}, ReduceKind::Sum, true, true, false},
           {{"max(x)"}, ReduceKind::Max, false, false, false},
           {{"any(x)"}, ReduceKind::Any, true, false, false},
           {{"all(x)"}, ReduceKind::All, true, false, false},
           {{"argmin(x)"}, ReduceKind::ArgMin, false, false, false},
           {{"at(x, argmax(x))", "argmax(x)"}, ReduceKind::ArgMax, false, false, true},
       }) {
    const ExpressionPtr w = written(c.texts);
    for (const bool complex : {false, true}) {
      if (complex && !c.of_complex) continue;
      std::vector<DType> inputs, results;
      for (const Slot& s : w->inputs())
        inputs.push_back(s.dtype == DType::Int64 ? s.dtype : complex ? DType::Complex64 : DType::Float32);
      for (const Slot& s : w->outputs()) {
        const Type t = (*w)[s.node].type;
        results.push_back(t == Type::Mask  ? DType::Bool
                          : t == Type::I64 ? DType::Int64
                          : complex        ? DType::Complex64
                                           : DType::Float32);
      }
      const auto plain =
          plain_reduction(*instantiate(*w, {.inputs = inputs, .results = results, .dense = true}));
      ASSERT_TRUE(plain) << c.texts[0] << complex;
      EXPECT_EQ(plain->kind, c.kind) << c.texts[0];
      EXPECT_EQ(plain->complex, complex) << c.texts[0];
      EXPECT_EQ(plain->mean, c.mean) << c.texts[0];
      EXPECT_EQ(plain->elements, c.elements) << c.texts[0];
    }
  }
  for (const std::vector<std::string_view>& texts :
       std::vector<std::vector<std::string_view>>{{"sum(x * y)"},
                                                  {"sum(x) + w"},
                                                  {"x - sum(x)"},
                                                  {"sum(x)", "max(x)"},
                                                  {"at(y, argmax(x))", "argmax(x)"}}) {
    EXPECT_FALSE(plain_reduction(*instantiate(*written(texts), {.dense = true}))) << texts[0];
  }
}

TEST(Rows, TextsReadBack) {
  const Symbol symbols[] = {{"x", SymbolKind::Tensor}, {"t", SymbolKind::IndexTensor, Rank::Row}};
  for (const std::string_view text :
       {"sum(x) + prod(x) - max(x) * min(x)", "where(any(x > 1) & all(x < 9), mean(x), 0)",
        "at(x, t) + same(argmax(x) - argmin(x))", "first(x > 2, x) * same(length) + same(position)",
        "x - hold(max(x))"}) {
    Builder g;
    const NodeId root = parse_rows(g, text, symbols);
    EXPECT_EQ(parse_rows(g, to_string(g, root), symbols), root) << to_string(g, root);
  }
}

// A pointwise text has no rows: max takes two operands there.
TEST(Rows, AreNoPointwiseExpressions) {
  const Symbol symbols[] = {{"x", SymbolKind::Tensor}, {"length", SymbolKind::Scalar}};
  for (const std::string_view text : {"sum(x)", "max(x)", "position", "hold(x)", "at(x, 1)"}) {
    Builder g;
    EXPECT_THROW(parse(g, text, symbols), Error) << text;
  }
  Builder g;
  const NodeId named = parse_rows(g, "length", symbols);
  EXPECT_EQ(named, g.find_symbol("length")) << "operands' names come first";
}

}  // namespace
}  // namespace tenon::expr::testing
