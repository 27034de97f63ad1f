// A library of operators whose derivative is a Function, for Python; consumers_test.py compiles it without
// RTTI.
#include <tenon/tenon.h>

namespace {

using tenon::Tensor;

struct Scaled : tenon::autograd::Function<Scaled> {
  static Tensor forward(tenon::autograd::AutogradContext* ctx, const Tensor& x, double scale) {
    ctx->saved_data["scale"] = scale;
    return x * scale;
  }
  static std::vector<Tensor> backward(tenon::autograd::AutogradContext* ctx,
                                      const std::vector<Tensor>& grads) {
    return {grads[0] * ctx->saved_data["scale"].to<double>(), {}};
  }
};

Tensor doubled(const Tensor& x) { return Scaled::apply(x, 2.0); }

TENON_LIBRARY(consumer, m) { m.def("doubled(Tensor x) -> Tensor"); }
TENON_LIBRARY_IMPL(consumer, CompositeImplicit, m) { m.impl("doubled", &doubled); }

}  // namespace
