// Pointwise operators with several outputs: new results, out= forms and operands that are written, of dtypes
// and strides of their own.
#include <cmath>

#include "tenon/core/key_set.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

constexpr const char* kNames[] = {"x", "y"};

// An expression over x and y with outputs of its own.
struct Operator {
  Operator(std::vector<std::string> texts, std::vector<PointwiseOutput> rows) : outputs(std::move(rows)) {
    expr::Builder g;
    const expr::Symbol symbols[] = {{"x", expr::SymbolKind::Tensor}, {"y", expr::SymbolKind::Tensor}};
    std::vector<expr::NodeId> roots;
    for (const std::string& text : texts) roots.push_back(expr::parse(g, text, symbols));
    written = g.finish(roots);
    info.name = "both";
    info.tensor_names = kNames;
    info.written = written.get();
    info.outputs = outputs;
  }

  std::vector<PointwiseOutput> outputs;
  expr::ExpressionPtr written;
  PointwiseInfo info{};
};

const PointwiseInfo& sum_and_order() {
  static const Operator& op = *new Operator({"x + y", "x < y"}, {{"sum"}, {"less", -1, true}});
  return op.info;
}

const PointwiseInfo& swap_and_difference() {
  static const Operator& op = *new Operator({"x - y", "y", "x"}, {{"difference"}, {"x", 0}, {"y", 1}});
  return op.info;
}

std::tuple<Tensor, Tensor> call_two(const PointwiseInfo& info, const Tensor& x, const Tensor& y) {
  const Kernel kernel{.data = &info};
  return detail::PointwiseCall<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)>::call(kernel, {}, x,
                                                                                               y);
}

TEST(Outputs, HaveDtypesOfTheirOwn) {
  std::mt19937 rng(5);
  for (const DType t : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8,
                        DType::Int32, DType::Int64, DType::Bool}) {
    for (const Dims& shape : {Dims{3, 5}, Dims{}, Dims{0, 2}, Dims{300, 301}}) {
      const Tensor x = random_tensor(rng, shape, t), y = random_tensor(rng, shape, t);
      const auto [sum, less] = call_two(sum_and_order(), x, y);
      ASSERT_EQ(sum.dtype(), t);
      ASSERT_EQ(less.dtype(), DType::Bool);
      for_each_index(shape, [&](const std::vector<int64_t>& i) {
        const double a = get(x, i), b = get(y, i);
        ASSERT_EQ(get(sum, i), t == DType::Bool ? a + b != 0 : a + b);
        ASSERT_EQ(get(less, i), a < b);
      });
    }
  }
}

TEST(Outputs, BroadcastAndPromote) {
  const Tensor column = tensor_of({1, 2, 3}, {3, 1}, DType::Int32), row = tensor_of({2.5, 0.5}, {2});
  const auto [sum, less] = call_two(sum_and_order(), column, row);
  EXPECT_EQ(sum.dtype(), DType::Float32);
  EXPECT_EQ(sum.sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(values(sum), (std::vector<double>{3.5, 1.5, 4.5, 2.5, 5.5, 3.5}));
  EXPECT_EQ(values(less), (std::vector<double>{1, 0, 1, 0, 0, 0}));
}

TEST(Outputs, OutsAreResizedAndConverted) {
  const Tensor x = vector_of({1, 2, 3}, DType::Float16), y = vector_of({2, 2, 2}, DType::Float16);
  Tensor sum = tensor_of({}, {0}, DType::Float64), less = vector_of({9, 9, 9}, DType::Int64);
  using Call =
      detail::PointwiseCall<std::tuple<Tensor&, Tensor&>(const Tensor&, const Tensor&, Tensor&, Tensor&)>;
  const Kernel kernel{.data = &sum_and_order()};
  const std::tuple<Tensor&, Tensor&> got = Call::call(kernel, {}, x, y, sum, less);
  EXPECT_EQ(&std::get<0>(got), &sum);
  EXPECT_EQ(values(sum), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(values(less), (std::vector<double>{1, 0, 0}));
  // What does not fit is refused before anything is written.
  Tensor whole = vector_of({7, 7, 7}, DType::Int32);
  try {
    Call::call(kernel, {}, x, y, whole, less);
    FAIL() << "an integer output was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Type);
    EXPECT_NE(std::string(e.what()).find("`sum`"), std::string::npos) << e.what();
  }
  EXPECT_EQ(values(whole), (std::vector<double>{7, 7, 7}));
  EXPECT_THROW(Call::call(kernel, {}, x, y, less, less), Error) << "two outputs in one memory";
}

TEST(Outputs, WrittenOperandsAreReadBeforeTheyChange) {
  std::mt19937 rng(9);
  for (const int64_t n : {1, 7, 16, 300, 100000}) {
    const Tensor x = random_tensor(rng, {n}, DType::Float32, false),
                 y = random_tensor(rng, {n}, DType::Float32, false);
    const std::vector<double> a = values(x), b = values(y);
    const Tensor* const tensors[] = {&x, &y};
    Tensor difference;
    pointwise_outputs(swap_and_difference(), tensors, {}, {&difference, 1});
    EXPECT_EQ(values(x), b);
    EXPECT_EQ(values(y), a);
    const std::vector<double> c = values(difference);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(c[i], a[i] - b[i]) << i;
  }
}

TEST(Outputs, WrittenOperandsKeepTheirShapeAndDtype) {
  const Tensor x = tensor_of({1, 2}, {2}, DType::Float16), y = vector_of({0.25, 4}, DType::Float32);
  const Tensor* const tensors[] = {&x, &y};
  Tensor difference;
  pointwise_outputs(swap_and_difference(), tensors, {}, {&difference, 1});
  EXPECT_EQ(difference.dtype(), DType::Float32);
  EXPECT_EQ(values(x), (std::vector<double>{0.25, 4}));
  const Tensor small = vector_of({1}, DType::Float32);
  const Tensor* const broadcast[] = {&small, &y};
  EXPECT_THROW(pointwise_outputs(swap_and_difference(), broadcast, {}, {&difference, 1}), Error);
  EXPECT_EQ(values(small), (std::vector<double>{1}));
}

TEST(Outputs, OfComplexOperandsHaveTwoPartsEach) {
  static const Operator& op = *new Operator({"x * y", "x + y"}, {{"product"}, {"sum"}});
  const Tensor parts = tensor_of({1, 2, 3, -1}, {2, 2});
  const Tensor x = make_empty({2}, DType::Complex64, kCPU);
  std::memcpy(x.data_ptr(), parts.data_ptr(), 16);
  const auto [product, sum] = call_two(op.info, x, vector_of({2, 10}));
  const auto* p = static_cast<const float*>(product.data_ptr());
  const auto* s = static_cast<const float*>(sum.data_ptr());
  EXPECT_EQ(std::vector<float>(p, p + 4), (std::vector<float>{2, 4, 30, -10}));
  EXPECT_EQ(std::vector<float>(s, s + 4), (std::vector<float>{3, 2, 13, -1}));
}

TEST(Outputs, OnMetaHaveShapesAlone) {
  const Tensor x = make_empty({2, 3}, DType::Float32, kMeta), y = make_empty({3}, DType::Float64, kMeta);
  const auto [sum, less] = call_two(sum_and_order(), x, y);
  EXPECT_TRUE(sum.device().is_meta() && less.device().is_meta());
  EXPECT_EQ(sum.dtype(), DType::Float64);
  EXPECT_EQ(less.sizes(), IntArrayRef({2, 3}));
}

}  // namespace
}  // namespace tenon::testing
