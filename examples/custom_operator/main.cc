// Calls the operator forward, backward and on the meta device, and checks the values.
#include <cstdio>

#include <tenon/tenon.h>

#include "scaled_abs.h"

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  using tenon::Tensor;
  Tensor x = tenon::tensor({-2.0, 3.0, 0.0, -0.5});
  x.requires_grad_();
  const Tensor y = example::scaled_abs(x, 0.5);
  expect(tenon::equal(y.detach(), tenon::tensor({1.0, 1.5, 0.0, 0.25})), "the values");
  expect(y.grad_fn()->name() == "ScaledAbsBackward0", "the node's name");
  y.sum().backward();
  expect(tenon::equal(x.grad(), tenon::tensor({-0.5, 0.5, 0.0, -0.5})), "the gradient");
  expect(example::scaled_abs(tenon::empty({2, 3}, tenon::kMeta)).sizes() == tenon::IntArrayRef({2, 3}),
         "the shape on the meta device");
  try {
    example::scaled_abs(tenon::arange(3));
    expect(false, "integers are refused");
  } catch (const tenon::Error& e) {
    expect(std::string(e.what()).find("int64") != std::string::npos, "the error names the dtype");
  }
  if (failures == 0) std::puts("scaled_abs: all good");
  return failures != 0;
}
