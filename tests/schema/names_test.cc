#include <gtest/gtest.h>

#include "tenon/schema/schema.h"

namespace tenon::schema {
namespace {

struct Case {
  const char* argument;
  const char* cpp;
  const char* cpp_default;
  const char* python;
  const char* python_default;
};

TEST(SchemaNames, ArgumentsInCppAndPython) {
  const Case kCases[] = {
      {"Tensor x", "const Tensor&", "", "Tensor", ""},
      {"Tensor? x=None", "const Tensor&", "Tensor()", "Tensor | None", "None"},
      {"Tensor(a!) x", "Tensor&", "", "Tensor", ""},
      {"Tensor(a!)? x=None", "Tensor&", "", "Tensor | None", "None"},
      {"Tensor(a) x", "const Tensor&", "", "Tensor", ""},
      {"Tensor[] x", "TensorList", "", "Sequence[Tensor]", ""},
      {"Tensor?[] x=[]", "TensorList", "{}", "Sequence[Tensor | None]", "()"},
      {"Tensor[]? x=None", "std::optional<TensorList>", "std::nullopt", "Sequence[Tensor] | None", "None"},
      {"int x=1", "int64_t", "1", "int", "1"},
      {"int x=Mean", "int64_t", "1", "int", "1"},
      {"int x=-9223372036854775808", "int64_t", "-9223372036854775807 - 1", "int", "-9223372036854775808"},
      {"SymInt? x=None", "std::optional<int64_t>", "std::nullopt", "int | None", "None"},
      {"int[] x=[0,1]", "IntArrayRef", "IntArrayRef{0, 1}", "Sequence[int]", "(0, 1)"},
      {"int[1] x=1", "IntArrayRef", "IntArrayRef{1}", "int | Sequence[int]", "1"},
      {"int[] x=[]", "IntArrayRef", "{}", "Sequence[int] | None", "()"},
      {"int[2] x=0", "IntArrayRef", "IntArrayRef{0, 0}", "int | Sequence[int]", "(0, 0)"},
      {"int[1]? x=None", "std::optional<IntArrayRef>", "std::nullopt", "int | Sequence[int] | None", "None"},
      {"int[]? x=[]", "std::optional<IntArrayRef>", "IntArrayRef{}", "Sequence[int] | None", "()"},
      {"float x=2.", "double", "2.0", "float", "2."},
      {"float x=1e-05", "double", "1e-05", "float", "1e-05"},
      {"float x=-inf", "double", "-std::numeric_limits<double>::infinity()", "float", "..."},
      {"float[]? x=None", "std::optional<std::span<const double>>", "std::nullopt", "Sequence[float] | None",
       "None"},
      {"float[] x=[1, 0.5]", "std::span<const double>",
       "std::span<const double>(std::initializer_list<double>{1.0, 0.5})", "Sequence[float]", "(1., 0.5)"},
      {"bool x=False", "bool", "false", "bool", "False"},
      {"bool[3] x", "std::span<const bool>", "", "bool | Sequence[bool]", ""},
      {"str x=\"info\"", "std::string_view", "\"info\"", "str", "\"info\""},
      {"str? x", "std::optional<std::string_view>", "", "str | None", ""},
      {"Scalar x=1", "const Scalar&", "1", "Number", "1"},
      {"Scalar? x=1", "std::optional<Scalar>", "Scalar(1)", "Number | None", "1"},
      {"Scalar[] x", "std::span<const Scalar>", "", "Sequence[Number]", ""},
      {"ScalarType x=long", "DType", "DType::Int64", "dtype", "..."},
      {"ScalarType? x=None", "std::optional<DType>", "std::nullopt", "dtype | None", "None"},
      {"Device x=cpu", "Device", "Device(\"cpu\")", "device | str", "..."},
      {"Layout? x=strided", "std::optional<Layout>", "Layout::Strided", "layout | None", "..."},
      {"MemoryFormat x=preserve_format", "MemoryFormat", "MemoryFormat::Preserve", "memory_format", "..."},
      {"Generator? x=None", "const Generator&", "Generator()", "Generator | None", "None"},
      {"Storage x", "const Storage&", "", "Storage", ""},
  };
  for (const Case& c : kCases) {
    const Argument a = parse_schema("f(" + std::string(c.argument) + ") -> ()").arguments[0];
    EXPECT_EQ(cpp_type(a), c.cpp) << c.argument;
    EXPECT_EQ(cpp_default(a), c.cpp_default) << c.argument;
    EXPECT_EQ(python_type(a), c.python) << c.argument;
    EXPECT_EQ(python_default(a), c.python_default) << c.argument;
  }
}

TEST(SchemaNames, ReturnsInCppAndPython) {
  const std::tuple<const char*, const char*, const char*> kCases[] = {
      {"()", "void", "None"},
      {"Tensor", "Tensor", "Tensor"},
      {"Tensor(a)", "Tensor", "Tensor"},
      {"Tensor(a!)", "Tensor&", "Tensor"},
      {"Tensor[]", "std::vector<Tensor>", "tuple[Tensor, ...]"},
      {"Tensor?", "Tensor", "Tensor | None"},
      {"(Tensor values, Tensor(a!) x)", "std::tuple<Tensor, Tensor&>", "tuple[Tensor, Tensor]"},
      {"(SymInt, Scalar, str)", "std::tuple<int64_t, Scalar, std::string>", "tuple[int, Number, str]"},
      {"SymBool", "bool", "bool"},
      {"Device", "Device", "device"},
  };
  for (const auto& [returns, cpp, python] : kCases) {
    const FunctionSchema s = parse_schema("f(Tensor(a!) x) -> " + std::string(returns));
    EXPECT_EQ(cpp_return_type(s), cpp) << returns;
    EXPECT_EQ(python_return_type(s), python) << returns;
  }
}

TEST(SchemaNames, KeywordsGetAnUnderscore) {
  const FunctionSchema s = parse_schema("random_(Tensor(a!) self, int from, int default) -> Tensor(a!)");
  EXPECT_EQ(cpp_name(s.arguments[1]), "from");
  EXPECT_EQ(cpp_name(s.arguments[2]), "default_");
  EXPECT_EQ(python_name(s.arguments[1]), "from_");
  EXPECT_EQ(python_name(s.arguments[2]), "default");
}

}  // namespace
}  // namespace tenon::schema
