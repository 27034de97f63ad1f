// Operators that draw numbers. A node with a seed draws the same ones in each run; the others go on in the
// stream of the default generator.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "tenon/core/generator.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

Generator generator_of(N& n) {
  if (!n.has("seed")) return {};
  const double seed = n.number("seed", 0);
  const bool is_whole = std::trunc(seed) == seed && 0 <= seed && seed < 9e18;
  return Generator(is_whole ? static_cast<uint64_t>(seed) : std::bit_cast<uint64_t>(seed));
}

/// Numbers of the distribution that the node is named for.
void draw(N& n, IntArrayRef sizes, DType dtype) {
  const bool is_real = is_floating_point(dtype);
  TENON_NODE_CHECK(n, is_real, NotImplemented, fmt::format("numbers of {}", name(dtype)));
  const Generator generator = generator_of(n);
  if (n.op().starts_with("RandomNormal")) {
    const Tensor unit = randn(sizes, generator, TensorOptions(dtype));
    return n.set(add(mul(unit, Scalar(n.number("scale", 1))), Scalar(n.number("mean", 0))));
  }
  const double low = n.number("low", 0), high = n.number("high", 1);
  n.set(add(mul(rand(sizes, generator, TensorOptions(dtype)), Scalar(high - low)), Scalar(low)));
}
void random_of_shape(N& n) {
  const auto sizes = n.ints("shape");
  TENON_NODE_CHECK(n, sizes.has_value(), Value, "attribute `shape` is missing");
  draw(n, *sizes, n.dtype("dtype").value_or(kFloat32));
}
void random_like(N& n) {
  const Tensor& x = n.tensor(0);
  draw(n, x.sizes(), n.dtype("dtype").value_or(x.dtype()));
}
void bernoulli_of(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(bernoulli(x, generator_of(n)).to(n.dtype("dtype").value_or(x.dtype())));
}
void multinomial_of(N& n) {
  const DType dtype = n.dtype("dtype").value_or(kInt32);
  n.set(multinomial(softmax(n.tensor(0), -1), n.integer("sample_size", 1), true, generator_of(n)).to(dtype));
}

void dropout_of(N& n) {
  const Tensor& x = n.tensor(0);
  const double ratio = n.has(1) ? n.number(1) : 0.5;
  if (n.opset() < 12 || !n.has(2) || !n.flag(2) || ratio == 0) {
    n.set(0, x);
    // Before version 10 the mask had the dtype of x.
    if (n.wants(1)) n.set(1, ones(x.sizes(), TensorOptions(n.opset() < 10 ? x.dtype() : kBool)));
    return;
  }
  TENON_NODE_CHECK(n, 0 <= ratio && ratio < 1, Value,
                   fmt::format("`ratio` is {}, expected one from 0 up to and without 1", ratio));
  const Tensor mask = ge(rand(x.sizes(), generator_of(n)), Scalar(ratio));
  n.set(0, mul(mul(x, mask.to(x.dtype())), Scalar(1 / (1 - ratio))));
  n.set(1, mask);
}

constexpr auto kRandomRows = std::to_array<Row>({
    {"Bernoulli", 15, bernoulli_of},
    {"Dropout", 7, dropout_of},
    {"Multinomial", 7, multinomial_of},
    {"RandomNormal", 1, random_of_shape},
    {"RandomNormalLike", 1, random_like},
    {"RandomUniform", 1, random_of_shape},
    {"RandomUniformLike", 1, random_like},
});

}  // namespace

std::span<const Row> random_rows() noexcept { return kRandomRows; }

}  // namespace tenon::onnx
