// What the generator makes of YAML, and what it says of YAML that is wrong.
#include "tools/opgen/model.h"

#include <gtest/gtest.h>

#include "tenon/core/error.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"
#include "tools/opgen/traits.h"

namespace tenon::opgen {
namespace {

std::string error_of(const std::string& yaml) {
  try {
    parse_operators(yaml, "ops.yaml");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.what();
  }
  return "no error";
}

void expect_error(const std::string& yaml, const std::string& place, const std::string& part) {
  const std::string message = error_of(yaml);
  EXPECT_TRUE(message.starts_with("ops.yaml:" + place + ":")) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Model, FormsOfAnExpressionHavePyTorchsSchemas) {
  const auto defs = parse_operators(R"(
- schema: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  expr: self + alpha * other
  variants: [function, method, inplace, out]
  out_overload: out
)",
                                    "ops.yaml");
  ASSERT_EQ(defs.size(), 1u);
  ASSERT_EQ(defs[0].operators.size(), 3u);
  const auto schema = [&](Form f) { return schema::to_string(defs[0].find(f)->schema); };
  EXPECT_EQ(schema(Form::Functional),
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(schema(Form::Inplace),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_EQ(schema(Form::Out),
            "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(defs[0].find(Form::Inplace)->constant, "add__Tensor");
  EXPECT_TRUE(defs[0].find(Form::Functional)->method);
  EXPECT_FALSE(defs[0].find(Form::Out)->method);
  EXPECT_EQ(count_operators(defs), 3u);
}

TEST(Model, OutOverloadFollowsTheFunctionalOne) {
  const auto defs = parse_operators(R"(
- schema: mul.Scalar(Tensor self, Scalar other) -> Tensor
  expr: self * other
  promote: [other]
  variants: [function, out]
- schema: exp(Tensor self) -> Tensor
  expr: exp(self)
  variants: [out]
)",
                                    "ops.yaml");
  EXPECT_EQ(defs[0].find(Form::Out)->schema.overload, "Scalar_out");
  EXPECT_EQ(defs[1].find(Form::Out)->schema.overload, "out");
}

TEST(Model, ResultsOfAnOutFormMayHaveTheirOwnNames) {
  const std::string entry = "- schema: pool(Tensor self) -> (Tensor, Tensor)\n  composite: pool\n";
  const auto defs =
      parse_operators(entry + "  variants: [function, out]\n  out_names: [out, indices]\n", "ops.yaml");
  EXPECT_EQ(schema::to_string(defs[0].find(Form::Out)->schema),
            "aten::pool.out(Tensor self, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))");
  expect_error(entry + "  variants: [out]\n  out_names: [out]\n", "3", "expected 2 names of results, got 1");
}

TEST(Model, TensorOptionsAreOneParameter) {
  const auto defs = parse_operators(R"(
- schema: zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
  explicit: {function: zeros, reason: "a sample"}
)",
                                    "ops.yaml");
  EXPECT_EQ(options_position(defs[0].schema()), 1u);
  EXPECT_TRUE(is_factory(defs[0].schema()));
  EXPECT_EQ(parameter_list(parameters(defs[0].operators.front(), false), true),
            "IntArrayRef size, TensorOptions options = {}");
}

TEST(Model, TheOutFormOfAFactoryTakesItsOptionsFromOut) {
  const auto defs = parse_operators(R"(
- schema: empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
  explicit: {function: empty, reason: "a sample"}
  variants: [function, out]
  out_overload: out
)",
                                    "ops.yaml");
  const Operator& out = *defs[0].find(Form::Out);
  EXPECT_EQ(
      schema::to_string(out.schema),
      "aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_TRUE(defs[0].takes_options_of_out(out));
  EXPECT_FALSE(defs[0].takes_options_of_out(defs[0].operators.front()));
  EXPECT_FALSE(is_factory(out.schema));
  const std::string options =
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None";
  const std::string rest = ") -> Tensor\n  explicit: {function: f, reason: r}\n  variants: [function, out]\n";
  expect_error("- schema: f(int n, *, " + options + ", int m=1" + rest, "3", "at most a memory format");
  expect_error("- schema: f(*, " + options + rest, "3", "an argument before dtype");
}

TEST(Model, AnUpdateTakesSelfAsItIsWritten) {
  const auto defs = parse_operators(R"(
- schema: put(Tensor self, Tensor index, Tensor source) -> Tensor
  shape: put
  update: put
  variants: [function, inplace, out]
  derivative: none
)",
                                    "ops.yaml");
  ASSERT_EQ(defs[0].operators.size(), 3u);
  EXPECT_TRUE(defs[0].updates);
  EXPECT_EQ(body_parameters(defs[0], true), "Tensor& self, const Tensor& index, const Tensor& source");
  expect_error("- schema: f(Tensor x) -> Tensor\n  shape: f\n  update: f\n  derivative: none\n", "3",
               "must take `Tensor self` first");
  expect_error("- schema: f(Tensor self) -> Tensor\n  shape: f\n  body: f\n  update: f\n", "2", "one of");
}

TEST(Model, CppTakesThePlaceOfAFunctionsName) {
  const auto defs = parse_operators(R"(
- schema: named(Tensor self) -> Tensor
  composite: named
- include: tenon/ops/pools.h
- schema: pool.int(Tensor self, int n) -> Tensor
  shape: set_pooled(out, self, n)
  body: fill_pooled(out, n)
  derivative: none
)",
                                    "ops.yaml");
  ASSERT_EQ(defs.size(), 2u);
  EXPECT_EQ(defs[0].function, "named");
  EXPECT_TRUE(defs[0].cpp.empty() && defs[0].includes.empty());
  EXPECT_EQ(defs[1].function, "pool_int_body");
  EXPECT_EQ(defs[1].shape, "pool_int_shape");
  EXPECT_EQ(defs[1].includes, std::vector<std::string>{"tenon/ops/pools.h"});
  const FamilyText text = cpp_bodies(defs, families_of(defs)[0]);
  EXPECT_EQ(text.headers, std::set<std::string>{"tenon/ops/pools.h"});
  EXPECT_EQ(
      text.text,
      "namespace shape {\n"
      "static void pool_int_shape(OutputSpecs& out, HeaderRef self, int64_t n) { set_pooled(out, self, n); "
      "}\n"
      "}  // namespace shape\n"
      "static void pool_int_body(const Tensor& self, int64_t n, Tensor& out) { fill_pooled(out, n); }\n");
}

TEST(Model, DefaultsInCppTrail) {
  const auto defs = parse_operators(R"(
- schema: pick(Tensor self, int dim=0, *, float p) -> Tensor
  composite: pick
)",
                                    "ops.yaml");
  EXPECT_EQ(parameter_list(parameters(defs[0].operators.front(), false), true),
            "const Tensor& self, int64_t dim, double p");
}

TEST(Model, ErrorsNameFileAndLine) {
  expect_error("- schema: f(Tensr self) -> Tensor\n  expr: self\n", "1", "did you mean 'Tensor'");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: sefl\n", "2", "did you mean 'self'");
  expect_error("\n- schema: f(Tensor self) -> Tensor\n  expr: self\n  varants: [out]\n", "4", "`varants`");
  expect_error("- schema: f(Tensor self) -> Tensor\n", "1", "exactly one body");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: self\n  view: f\n", "1", "got 2");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: self + float64(self)\n", "2",
               "`add` of same and float64");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: float16(self)\n", "2",
               "unknown function 'float16'");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: exp(self) & self\n", "2",
               "it runs neither on floating-point numbers nor on integers");
  expect_error(
      "- schema: f(Tensor self) -> Tensor\n  expr: self\n  refuse: {dtypes: [float31], reason: wide}\n", "3",
      "'float31' is no dtype");
  expect_error("- schema: f(Tensor self) -> (Tensor a, Tensor b)\n  expr: self\n", "2",
               "the schema must return one new tensor");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: self\n  result: imaginary\n", "3", "'imaginary'");
  expect_error("- schema: f(Tensor self, int[] d) -> Tensor\n  expr: self\n", "1", "`d` is int[]");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: self\n  promote: [other]\n", "3", "'other'");
  expect_error("- schema: f(Tensor x) -> Tensor\n  expr: x\n  variants: [method]\n", "3", "self");
  expect_error(
      "- schema: f(Tensor self) -> (Tensor, Tensor)\n  explicit: {function: f, reason: r}\n"
      "  optional_grads: [True]\n  derivative: {self: \"grads[0]\"}\n",
      "3", "1 values for 2 results");
  expect_error("- [1\n", "2", "");
  expect_error("- schema: f(int n) -> Tensor\n  explicit: f\n", "2", "reason");
  expect_error("- schema: f(int n) -> Tensor\n  explicit: {function: f}\n", "2", "reason");
  expect_error("- schema: f(int n) -> Tensor\n  shape: f\n", "2", "`kernel` and `body`");
  expect_error("- schema: f(int n) -> Tensor\n  shape: f\n  kernel: f\n  body: f\n", "2",
               "`kernel` and `body`");
  expect_error("- schema: f(int n) -> int\n  shape: f\n  body: f\n", "2", "new tensors");
  expect_error("- schema: f(Tensor(a) self) -> Tensor(a)\n  shape: f\n  body: f\n  derivative: none\n", "2",
               "new tensors");
  expect_error(
      "- schema: f_(Tensor(a!) self, Tensor other) -> Tensor(a!)\n  explicit: {function: f_, reason: r}\n  "
      "derivative: {other: "
      "grad}\n",
      "3", "f_ writes `self` in place, so `self` needs a formula");
}

TEST(Model, TraitsThatContradictTheSchemaAreRefused) {
  const std::string entry =
      "- schema: f_(Tensor(a!) self, Tensor other, Scalar value) -> Tensor(a!)\n  composite: f_\n  traits: ";
  expect_error(entry + "{writes_only: [other]}\n", "3",
               "writes_only: 'other' is no argument that the schema writes");
  expect_error(entry + "{equals: vale}\n", "3",
               "equals: expected 0, 1, or a tensor or number of the schema, got 'vale'");
  expect_error(entry + "{draws_unless_zero: other}\n", "3",
               "draws_unless_zero: 'other' is no number of the schema");
  expect_error(entry + "{anchor: sum}\n", "3", "expected convolution, or { matmul: LEFT MATRIX }");
  expect_error(entry + "{anchor: {matmul: other}}\n", "3",
               "'other' is no tensor of the schema that another one follows");
  expect_error(entry + "{}\n  tags: [pointwize]\n", "4",
               "There is no tag 'pointwize'; did you mean 'pointwise'?");
  expect_error(entry + "{}\n  tags: [view_copy]\n", "4",
               "the tag 'view_copy' is for an operator that returns new tensors");
  expect_error(entry + "{value_erors: true}\n", "3", "unknown field `value_erors`");
  const auto defs =
      parse_operators(entry + "{writes_only: [self], equals: value, value_errors: true}\n", "ops.yaml");
  EXPECT_EQ(traits_of(defs[0], defs[0].operators[0]),
            ".writes_only = 0x1, .tags = {Tag::inplace}, .equals = {EqualsTrait::Kind::Number, 2}, "
            ".value_errors = true");
}

TEST(Model, RowsSayWhatTheyComputeAndWhetherOfComplexNumbers) {
  const std::string schema = "- schema: f(Tensor self, int dim, ScalarType? dtype=None) -> Tensor\n";
  const auto entry = [&](const std::string& rows, const std::string& expr, const std::string& result) {
    return schema + "  rows: {over: dim" + rows + "}\n  expr: " + expr + "\n  result: " + result +
           "\n  derivative: none\n  doc: d\n";
  };
  const OpDef def =
      parse_operators(entry(", dtype: dtype, complex: true", "sum(self)", "sum"), "ops.yaml")[0];
  EXPECT_EQ(def.rows->computes, "Sum");
  EXPECT_TRUE(def.rows->complex);
  EXPECT_EQ(def.stubs, std::vector<std::string>{"reduce"});
  EXPECT_EQ(parse_operators(entry("", "sum(self * self)", "same"), "ops.yaml")[0].stubs,
            std::vector<std::string>{"rows"});
  expect_error(entry("", "sum(self)", "bool"), "4", "expected same, float, sum or mean, got 'bool'");
  expect_error(entry(", complex: true", "max(self)", "same"), "2",
               "`max` is not implemented for complex numbers");
  expect_error(
      "- schema: f(Tensor self, Tensor other) -> Tensor\n  rows: {over: all, complex: true}\n"
      "  expr: sum(self * other)\n  derivative: none\n  doc: d\n",
      "2", "`complex` is of one tensor, the schema has 2");
}

TEST(Model, OutputsAreNewResultsAndWrittenArguments) {
  const std::string schema = "- schema: f(Tensor self, Tensor(a!) m) -> (Tensor sum, Tensor mask)\n";
  EXPECT_EQ(error_of(schema + "  expr: let s = self + m;\n  outputs: {sum: s, mask: s > 0, m: s * 2}\n"
                              "  derivative: none\n"),
            "no error");
  EXPECT_EQ(error_of("- schema: f(Tensor(a!) m, Tensor self) -> ()\n  outputs: {m: m + self}\n"
                     "  derivative: none\n"),
            "no error");
  expect_error(schema + "  outputs: {sum: self, m: self, mask: self}\n  derivative: none\n", "2",
               "expected sum, mask, m, in this order");
  expect_error(schema + "  outputs: {sum: self, mask: self, m: self}\n", "1", "`derivative` is missing");
  expect_error("- schema: f(Tensor self) -> Tensor\n  outputs: {result: self}\n  derivative: none\n", "2",
               "give it as `expr`");
  expect_error("- schema: f(Tensor(a!) self) -> Tensor(a!)\n  outputs: {self: self}\n  derivative: none\n",
               "1", "new tensors and written arguments");
}

TEST(Model, AnOptionalOperandIsAskedForBeforeItIsUsed) {
  EXPECT_EQ(error_of("- schema: f(Tensor self, Tensor? weight, Scalar? bound) -> Tensor\n"
                     "  expr: let x = where(given(weight), self * weight, self); where(given(bound), max(x, "
                     "bound), x)\n"),
            "no error");
  expect_error("- schema: f(Tensor self, Tensor? weight) -> Tensor\n  expr: self * weight\n", "2",
               "without `weight` its value is used; ask given(weight) before");
  expect_error("- schema: f(Tensor self) -> Tensor\n  expr: where(given(self), self, 0)\n", "2",
               "given(self)");
  expect_error("- schema: f(Tensor? self) -> Tensor\n  expr: where(given(self), self, 0)\n", "1",
               "a Tensor argument that is not optional");
  expect_error(
      "- schema: f(Tensor self, Scalar? a) -> Tensor\n  expr: where(given(a), a, self)\n"
      "  at_least_one: [self]\n",
      "3", "'self' is no optional argument");
}

TEST(Model, AnEntryIsDeclaredOnce) {
  const std::string entry = "- schema: f(Tensor self) -> Tensor\n  expr: self\n";
  EXPECT_NE(error_of(entry + entry).find("declared already at tenon/ops/yaml/ops.yaml:1"), std::string::npos);
}

TEST(Model, AMissingDerivativeIsRefused) {
  expect_error("- schema: f(Tensor self) -> Tensor\n  explicit: {function: f, reason: r}\n", "1",
               "`derivative` is missing");
  expect_error(
      "- schema: f(Tensor self) -> Tensor\n  explicit: {function: f, reason: r}\n  derivative: { other: grad "
      "}\n",
      "3", "'other'");
  EXPECT_EQ(
      error_of(
          "- schema: f(Tensor self) -> Tensor\n  explicit: {function: f, reason: r}\n  derivative: none\n"),
      "no error");
  EXPECT_EQ(error_of("- schema: f(Tensor self) -> Tensor\n  composite: f\n"), "no error");
}

TEST(Model, ADerivativeThatOverflowsIsRefused) {
  const std::string naive = "- schema: f(Tensor self) -> Tensor\n  expr: self / (1 + exp(-self))\n";
  expect_error(naive, "2", "the derivative by `self` is nan in float32 at self = -100");
  EXPECT_EQ(error_of("- schema: f(Tensor self) -> Tensor\n  expr: self * sigmoid(self)\n"), "no error");
}

}  // namespace
}  // namespace tenon::opgen
