#include "tenon/ops/linalg/linalg_error.h"

#include <gtest/gtest.h>

#include "tenon/tenon.h"

namespace tenon {
namespace {

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const LinAlgError& e) {
    return e.what();
  }
  return "";
}

TEST(LinAlgError, NamesTheCalledOperator) {
  const Tensor singular = zeros({2, 2});
  EXPECT_TRUE(
      text_of([&] { linalg_inv(singular); }).starts_with("linalg_inv: The diagonal element 1 is zero"));
  EXPECT_TRUE(text_of([&] { inverse(singular); }).starts_with("inverse: The diagonal element 1"));
  EXPECT_TRUE(text_of([&] {
                linalg_cholesky(stack({eye(2), neg(eye(2))}));
              }).starts_with("linalg_cholesky: (Batch element 1): "));
}

}  // namespace
}  // namespace tenon
