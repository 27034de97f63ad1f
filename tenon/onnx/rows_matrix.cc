// Products of matrices.
#include <fmt/format.h>

#include <array>

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

void product(N& n) { n.set(matmul(n.tensor(0), n.tensor(1))); }

/// alpha * A @ B + beta * C.
void gemm(N& n) {
  Tensor a = n.tensor(0);
  const Tensor &b = n.tensor(1), c = n.optional(2);
  const bool is_turned = n.flag("transB", false);
  const double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  TENON_NODE_CHECK(n, a.sizes().size() == 2 && b.sizes().size() == 2, Shape, "an input is no matrix");
  if (n.flag("transA", false)) a = t(a);
  // What a linear layer has.
  if (is_turned && alpha == 1 && beta == 1 && (!c.defined() || c.sizes().size() == 1) &&
      (!c.defined() || c.sizes()[0] == b.sizes()[0]))
    return n.set(linear(a, b, c));
  const Tensor columns = is_turned ? t(b) : b;
  if (!c.defined()) {
    const Tensor out = mm(a, columns);
    return n.set(alpha == 1 ? out : mul(out, Scalar(alpha)));
  }
  n.set(addmm(c, a, columns, beta, alpha));
}

void einsum_of(N& n) {
  std::string equation(n.text("equation", ""));
  std::erase(equation, ' ');
  n.set(einsum(equation, n.tensors()));
}

/// alpha * A @ B, each with its last two dimensions turned if the node says so.
void fused_product(N& n) {
  const auto turned = [&](size_t i, const char* flag, const char* batch) {
    const Tensor& x = n.tensor(i);
    if (n.flag(batch, false)) n.refuse(ErrorKind::NotImplemented, fmt::format("attribute `{}`", batch));
    return n.flag(flag, false) ? transpose(x, -1, -2) : x;
  };
  const Tensor out = matmul(turned(0, "transA", "transBatchA"), turned(1, "transB", "transBatchB"));
  const double alpha = n.number("alpha", 1);
  n.set(alpha == 1 ? out : mul(out, Scalar(alpha)));
}
void bias_gelu(N& n) { n.set(gelu(add(n.tensor(0), n.tensor(1)))); }
void fast_gelu(N& n) { n.set(gelu(n.has(1) ? add(n.tensor(0), n.tensor(1)) : n.tensor(0), "tanh")); }
void quick_gelu(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(mul(x, sigmoid(mul(x, Scalar(n.number("alpha", 1.702))))));
}
void plain_gelu(N& n) { n.set(gelu(n.tensor(0))); }

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr auto kMatrixRows = std::to_array<Row>({
    {"BiasGelu", 1, bias_gelu, kMicrosoft},
    {"Einsum", 12, einsum_of},
    {"FastGelu", 1, fast_gelu, kMicrosoft},
    {"FusedMatMul", 1, fused_product, kMicrosoft},
    {"Gelu", 1, plain_gelu, kMicrosoft},
    {"Gemm", 1, gemm},
    {"MatMul", 1, product},
    {"QuickGelu", 1, quick_gelu, kMicrosoft},
});

}  // namespace

std::span<const Row> matrix_rows() noexcept { return kMatrixRows; }

}  // namespace tenon::onnx
