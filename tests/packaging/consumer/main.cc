// A program of somebody else: trains, registers an operator, differentiates a function of its own, catches an
// error.
#include <tenon/core/dispatch_dtype.h>
#include <tenon/iter/cpu_kernel.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/record/compile.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>

using tenon::Tensor;

namespace {

Tensor thrice(const Tensor& self) {
  Tensor out = tenon::empty_like(self);
  auto iter = tenon::TensorIteratorConfig().add_output(out).add_input(self).build();
  TENON_DISPATCH_FLOATING_TYPES(
      iter.dtype(), "thrice", [&] { tenon::cpu_kernel(iter, [](scalar_t x) -> scalar_t { return 3 * x; }); });
  return out;
}

TENON_LIBRARY(consumer, m) { m.def("thrice(Tensor self) -> Tensor"); }
TENON_LIBRARY_IMPL(consumer, CPU, m) { m.impl("thrice", &thrice); }

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

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

}  // namespace

int main() {
  tenon::manual_seed(0);
  tenon::nn::Sequential model{tenon::nn::Linear(16, 32), tenon::nn::ReLU(), tenon::nn::Linear(32, 4)};
  tenon::optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  Tensor x = tenon::randn({64, 16}), y = tenon::randint(0, 4, {64});
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    Tensor loss = tenon::cross_entropy_loss(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  check(last < first / 2, "the loss falls");

  Tensor p = tenon::tensor({1.0, 2.0}).requires_grad_();
  Scaled::apply(p, 0.5).sum().backward();
  check(p.grad()[0].item<double>() == 0.5, "the gradient of a Function");

  auto op = tenon::Dispatcher::singleton()
                .find_schema_or_throw("consumer::thrice", "")
                .typed<Tensor(const Tensor&)>();
  check(op.call(tenon::tensor({2.0}))[0].item<double>() == 6, "an operator of the program");

  auto gated = tenon::compile([](const Tensor& t) { return tenon::silu(t) * t; });
  Tensor large = tenon::randn({300, 300});
  check(tenon::equal(gated(large), tenon::silu(large) * large), "a compiled function");

  bool caught = false;
  try {
    tenon::add(tenon::zeros({3}), tenon::zeros({4}));
  } catch (const tenon::Error& error) {
    caught = error.kind() == tenon::ErrorKind::Shape;
  }
  check(caught, "an error that is caught");
  std::puts("all good");
}
