// What a derivative formula saves follows from its text.
#include "tools/opgen/formula.h"

#include <gtest/gtest.h>

namespace tenon::opgen {
namespace {

using Set = std::set<size_t>;

TEST(Formula, SavesWhatItNames) {
  const auto schema = schema::parse_schema("mm(Tensor self, Tensor mat2) -> Tensor");
  const Formula f = read_formula(schema, "self", "mm(grad, t(mat2))");
  EXPECT_EQ(f.of, std::vector<size_t>{0});
  EXPECT_EQ(f.arguments, Set{1});
  EXPECT_TRUE(f.metas.empty());
  EXPECT_TRUE(f.results.empty());
}

TEST(Formula, MayBeATupleOfGradients) {
  const auto schema = schema::parse_schema("mm(Tensor self, Tensor mat2) -> Tensor");
  const Formula f = read_formula(schema, "self, mat2", "mm_backward(grad, self, mat2)");
  EXPECT_EQ(f.of, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(f.arguments, (Set{0, 1}));
}

TEST(Formula, SizesAloneSaveNoElements) {
  const auto schema = schema::parse_schema("sum.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor");
  const Formula f = read_formula(schema, "self", "sum_backward(grad, self.sizes(), dim, keepdim)");
  EXPECT_EQ(f.metas, Set{0});
  EXPECT_EQ(f.arguments, (Set{1, 2}));
  EXPECT_EQ(read_formula(schema, "self", "grad * self + self.sizes()").metas, Set{});
}

TEST(Formula, AFunctionOfAnArgumentsNameIsNotTheArgument) {
  const auto schema = schema::parse_schema("gather(Tensor self, int dim, Tensor index) -> Tensor");
  EXPECT_EQ(read_formula(schema, "self", "index(grad, dim)").arguments, Set{1});
}

TEST(Formula, ResultsByNameOrNumber) {
  const auto schema =
      schema::parse_schema("max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)");
  EXPECT_EQ(read_formula(schema, "self", "f(grad, indices)").results, Set{1});
  const auto unnamed = schema::parse_schema("two(Tensor self) -> (Tensor, Tensor)");
  const Formula f = read_formula(unnamed, "self", "f(grads[0], results[1])");
  EXPECT_EQ(f.results, Set{1});
  EXPECT_EQ(f.text, "f(grads[0], results_1)");
}

TEST(Formula, GradIsTheIncomingOne) {
  const auto schema = schema::parse_schema("f_backward(Tensor grad, int dim) -> Tensor");
  EXPECT_EQ(read_formula(schema, "grad", "f(grad, dim)").arguments, Set{1});
}

}  // namespace
}  // namespace tenon::opgen
