// Which lines a version error names. This file is compiled with debug information, others are not.
#include <thread>

#include "tenon/autograd/function.h"
#include "tenon/core/source_mark.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

std::string here(int line) { return "source_test.cc:" + std::to_string(line); }
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Source, AVersionErrorNamesTheLinesOfTheSaveAndOfTheChange) {
  Tensor x = leaf({1}, {1});
  const int saved = __LINE__ + 1;
  Tensor y = tenon::exp(x);
  const int changed = __LINE__ + 1;
  y.add_(Scalar(1));
  const std::string error = error_of([&] { y.backward(); });
  EXPECT_TRUE(contains(error, here(saved))) << error;
  EXPECT_TRUE(contains(error, here(changed))) << error;
}

TEST(Source, MethodsAndOutFormsToo) {
  Tensor x = leaf({1}, {1}), c = make({1}, {2});
  const int saved = __LINE__ + 1;
  Tensor y = x.mul(c);
  const int changed = __LINE__ + 1;
  tenon::add_out(c, make({1}, {3}), make({1}, {4}));
  const std::string error = error_of([&] { y.backward(); });
  EXPECT_TRUE(contains(error, here(saved))) << error;
  EXPECT_TRUE(contains(error, here(changed))) << error;
}

TEST(Source, AndCallsThatAreRecordedOverCells) {
  Tensor x = leaf({1, 2}, {1, 2}), index = make({1, 1}, {1}, kInt64);
  const int saved = __LINE__ + 1;
  Tensor y = tenon::gather(x, 1, index);
  const int changed = __LINE__ + 1;
  index.zero_();
  const std::string error = error_of([&] { y.backward(); });
  EXPECT_TRUE(contains(error, here(saved))) << error;
  EXPECT_TRUE(contains(error, here(changed))) << error;
}

struct Twice : autograd::Function<Twice> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return tenon::add(x, x);
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* ctx, std::vector<Tensor> grads) {
    return {tenon::mul(grads[0], tenon::ones_like(ctx->get_saved_variables()[0]))};
  }
};

TEST(Source, ACustomFunctionIsCalledWhereItIsApplied) {
  Tensor x = leaf({1}, {1});
  Tensor z = tenon::exp(x);
  const int saved = __LINE__ + 1;
  Tensor y = Twice::apply(z);
  const int changed = __LINE__ + 1;
  z.add_(Scalar(1));
  const std::string error = error_of([&] { y.backward(); });
  EXPECT_TRUE(contains(error, here(saved))) << error;
  EXPECT_TRUE(contains(error, here(changed))) << error;
}

TEST(Source, OfAnotherThread) {
  Tensor x = leaf({1}, {1});
  Tensor y = tenon::exp(x);
  int done = 0;  // a call in the last place would be a jump, which leaves no trace
  const int changed = __LINE__ + 1;
  std::thread([&] { y.zero_(), ++done; }).join();
  EXPECT_TRUE(contains(error_of([&] { y.backward(); }), here(changed)));
}

TEST(Source, WithoutDebugInformationItSaysSo) {
  // Code that no file describes.
  static const char anywhere = 0;
  const SourceMark mark{reinterpret_cast<uint64_t>(&anywhere) + 1, -1};
  EXPECT_TRUE(contains(describe_source(mark), "(no debug information)")) << describe_source(mark);
  EXPECT_TRUE(contains(describe_source({1, -1}), "(no debug information)"));
  EXPECT_EQ(describe_source({}), "an unknown place");
}

}  // namespace
}  // namespace tenon
