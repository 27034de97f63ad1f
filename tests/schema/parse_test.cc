#include <gtest/gtest.h>

#include <limits>

#include "tenon/schema/schema.h"
#include "tests/schema/golden.h"

namespace tenon::schema {
namespace {

TEST(ParseSchema, PrintsBackTheSameText) {
  for (const char* text : kGolden) EXPECT_EQ(to_string(parse_schema(text)), text);
}

TEST(ParseSchema, WhatIsPrintedFromValuesAloneParsesToTheSameSchema) {
  for (const char* text : kGolden) {
    const FunctionSchema schema = parse_schema(text);
    FunctionSchema bare = schema;
    for (Argument& a : bare.arguments) a.default_value.text.clear();
    EXPECT_EQ(parse_schema(to_string(bare)), schema) << text << "\n" << to_string(bare);
  }
}

TEST(ParseSchema, WhiteSpaceDoesNotMatter) {
  EXPECT_EQ(to_string(parse_schema(
                "  f ( Tensor ( a ! )  x ,int [ 2 ] ? y = None,\n\t* , Scalar z=1 )->Tensor( a! ) ")),
            "f(Tensor(a!) x, int[2]? y=None, *, Scalar z=1) -> Tensor(a!)");
  EXPECT_EQ(to_string(parse_schema("f()->(Tensor)")), "f() -> Tensor");
  EXPECT_EQ(to_string(parse_schema("f(Tensor x) -> Tensor values")), "f(Tensor x) -> (Tensor values)");
}

TEST(ParseSchema, TakesNamesApart) {
  const FunctionSchema s = parse_schema("aten::add.Tensor(Tensor self) -> Tensor");
  EXPECT_EQ(s.ns, "aten");
  EXPECT_EQ(s.name, "add");
  EXPECT_EQ(s.overload, "Tensor");
  EXPECT_EQ(s.full_name(), "aten::add.Tensor");
  EXPECT_EQ(s.name_with_overload(), "add.Tensor");
  EXPECT_EQ(parse_schema("relu_(Tensor(a!) self) -> Tensor(a!)").full_name(), "relu_");
}

TEST(ParseSchema, ReadsTypes) {
  EXPECT_EQ(parse_type("int[2]?"), (Type{BaseType::Int, true, true, false, false, 2}));
  EXPECT_EQ(parse_type("Tensor?[]"), (Type{BaseType::Tensor, true, false, true, false, -1}));
  EXPECT_EQ(parse_type("SymInt?"), (Type{BaseType::Int, false, true, false, true, -1}));
  EXPECT_EQ(parse_type("Generator"), (Type{BaseType::Generator, false, false, false, false, -1}));
  EXPECT_TRUE(parse_type("Tensor?").is_tensor());
  EXPECT_TRUE(parse_type("Tensor[]").is_tensor_list());
  EXPECT_EQ(to_string(parse_type("SymInt[3]?")), "SymInt[3]?");
  EXPECT_THROW(parse_type("Tensor(a)"), Error);
  EXPECT_THROW(parse_type("int x"), Error);
}

template <class T>
T default_of(const std::string& argument) {
  return std::get<T>(parse_schema("f(" + argument + ") -> ()").arguments[0].default_value.value);
}

TEST(ParseSchema, FitsDefaultsToTheirTypes) {
  EXPECT_EQ(default_of<int64_t>("int x=-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(default_of<int64_t>("int reduction=Mean"), 1);
  EXPECT_EQ(default_of<double>("float x=1"), 1.0);
  EXPECT_EQ(default_of<double>("float x=2."), 2.0);
  EXPECT_EQ(default_of<double>("float x=-1e-05"), -1e-05);
  EXPECT_EQ(default_of<double>("float? x=inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(default_of<int64_t>("Scalar x=1"), 1);
  EXPECT_EQ(default_of<double>("Scalar x=.5"), 0.5);
  EXPECT_EQ(default_of<bool>("Scalar x=True"), true);
  EXPECT_EQ(default_of<std::string>("ScalarType x=long"), "int64");
  EXPECT_EQ(default_of<std::string>("ScalarType? x=4"), "int64");
  EXPECT_EQ(default_of<std::string>("ScalarType x=float"), "float32");
  EXPECT_EQ(default_of<std::string>("MemoryFormat x=0"), "contiguous_format");
  EXPECT_EQ(default_of<std::string>("Device x=cuda:1"), "cuda:1");
  EXPECT_EQ(default_of<std::string>("Device x=\"cpu\""), "cpu");
  EXPECT_EQ(default_of<std::string>(R"(str x="a\n\"b\"")"), "a\n\"b\"");
  EXPECT_EQ(default_of<std::vector<int64_t>>("int[2] x=3"), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(default_of<std::vector<int64_t>>("int[] x=[0, 1]"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(default_of<std::vector<int64_t>>("Tensor[] x=[]"), (std::vector<int64_t>{}));
  EXPECT_EQ(default_of<std::vector<double>>("float[] x=[1, 0.5]"), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(default_of<std::vector<bool>>("bool[2] x=True"), (std::vector<bool>{true, true}));
  EXPECT_EQ(default_of<NoneDefault>("int[1]? dim=None"), NoneDefault{});
  EXPECT_FALSE(parse_schema("f(int x) -> ()").arguments[0].default_value.given());
}

TEST(ParseSchema, SpellingsOfOneDefaultAreEqual) {
  EXPECT_EQ(parse_schema("f(int[2] x=0, float y=1) -> ()"),
            parse_schema("f(int[2] x=[0,0], float y=1.) -> ()"));
  EXPECT_NE(parse_schema("f(int x=0) -> ()"), parse_schema("f(int x=1) -> ()"));
}

TEST(FunctionSchema, KnowsWhatIsWritten) {
  const FunctionSchema out = parse_schema(
      "max.out(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) at) -> (Tensor(a!) values, Tensor(b!) "
      "indices)");
  EXPECT_TRUE(out.is_mutable());
  EXPECT_TRUE(out.is_out_variant());
  EXPECT_FALSE(out.is_view());
  EXPECT_EQ(out.out_arguments(), (std::vector<size_t>{2, 3}));
  EXPECT_EQ(out.num_positional(), 2u);
  EXPECT_EQ(out.aliased_argument(1), 3u);
  EXPECT_EQ(out.argument_index("at"), 3u);
  EXPECT_EQ(out.argument_index("values"), std::nullopt);

  const FunctionSchema in_place = parse_schema("relu_(Tensor(a!) self) -> Tensor(a!)");
  EXPECT_TRUE(in_place.is_mutable());
  EXPECT_FALSE(in_place.is_out_variant());
  EXPECT_FALSE(in_place.is_view());

  EXPECT_TRUE(parse_schema("view(Tensor(a) self, SymInt[] size) -> Tensor(a)").is_view());
  EXPECT_TRUE(parse_schema("chunk(Tensor(a -> *) self, int n) -> Tensor(a)[]").is_view());
  const FunctionSchema fresh = parse_schema("relu(Tensor self) -> Tensor");
  EXPECT_FALSE(fresh.is_mutable());
  EXPECT_EQ(fresh.aliased_argument(0), std::nullopt);
}

}  // namespace
}  // namespace tenon::schema
