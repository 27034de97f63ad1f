#include "scaled_abs.h"

#include <tenon/autograd/custom_derivative.h>
#include <tenon/core/dispatch_dtype.h>
#include <tenon/iter/cpu_kernel.h>
#include <tenon/tenon.h>

namespace example {
namespace {

using tenon::Tensor;
using Signature = Tensor(const Tensor&, double);

void check_dtype(const Tensor& self) {
  TENON_CHECK(
      self.dtype() == tenon::DType::Float32 || self.dtype() == tenon::DType::Float64, NotImplemented,
      "scaled_abs: not implemented for " + std::string(name(self.dtype())) + ", only for float32, float64");
}

// The kernel sees elements only: the iterator broadcasts, takes any strides, and splits work over threads.
Tensor scaled_abs_cpu(const Tensor& self, double scale) {
  check_dtype(self);
  const auto iter =
      tenon::TensorIteratorConfig().set_op_name("scaled_abs").add_output(Tensor()).add_input(self).build();
  TENON_DISPATCH_FLOATING_TYPES(iter.dtype(), "scaled_abs", [&] {
    const auto s = static_cast<scalar_t>(scale);
    tenon::cpu_kernel_vec(
        iter, [s](scalar_t x) -> scalar_t { return std::abs(x) * s; },
        [s](tenon::Vectorized<scalar_t> x) { return x.abs() * tenon::Vectorized<scalar_t>(s); });
  });
  return iter.output();
}

// What the result is like, without elements.
Tensor scaled_abs_meta(const Tensor& self, double) {
  check_dtype(self);
  return tenon::empty_like(self);
}

void backward(const tenon::autograd::OpNode& node, std::span<const Tensor> grads,
              tenon::autograd::Gradients& out) {
  const auto& call = static_cast<const tenon::autograd::SavedCall<Signature>&>(node);
  if (out.wanted(0)) out.set(0, grads[0] * call.arg<0>().sign() * call.arg<1>());
}

constexpr tenon::autograd::ArgumentUse kUses[] = {{.argument = 0, .saves = 1 << 0}};
tenon::autograd::DerivativeInfo derivative{
    .node_name = "ScaledAbsBackward0", .uses = kUses, .backward = &backward};

}  // namespace

TENON_LIBRARY(example, m) { m.def("scaled_abs(Tensor self, float scale=1.0) -> Tensor"); }
TENON_LIBRARY_IMPL(example, CPU, m) { m.impl("scaled_abs", &scaled_abs_cpu); }
TENON_LIBRARY_IMPL(example, Meta, m) { m.impl("scaled_abs", &scaled_abs_meta); }
TENON_LIBRARY_IMPL(example, Autograd, m) {
  m.impl("scaled_abs", tenon::autograd::custom_derivative<Signature>("example::scaled_abs", derivative));
}

Tensor scaled_abs(const Tensor& self, double scale) {
  static const auto op =
      tenon::Dispatcher::singleton().find_schema_or_throw("example::scaled_abs").typed<Signature>();
  return op.call(self, scale);
}

}  // namespace example
