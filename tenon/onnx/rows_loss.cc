// Losses, and steps of optimizers.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

/// The negative log-likelihood of [N, C, ...] at the classes of input 1, [N, ...].
Tensor likelihood_loss(N& n, const Tensor& log_prob) {
  const Tensor& target = n.tensor(1);
  const std::string_view given = n.text("reduction", "mean");
  const int64_t reduction = given == "none" ? 0 : given == "mean" ? 1 : given == "sum" ? 2 : -1;
  TENON_NODE_CHECK(n, reduction >= 0, Value,
                   fmt::format("attribute `reduction` is {}, expected none, mean or sum", given));
  const size_t rank = log_prob.sizes().size();
  TENON_NODE_CHECK(n, rank >= 2 && target.sizes().size() + 1 == rank, Shape,
                   fmt::format("an input of shape {} with a target of shape {}", to_string(log_prob.sizes()),
                               to_string(target.sizes())));
  const Tensor rows = movedim(log_prob, 1, -1).reshape({-1, log_prob.sizes()[1]});
  const Tensor out = nll_loss(rows, target.to(kInt64).reshape({-1}), n.optional(2), reduction,
                              n.integer("ignore_index", -100));
  return reduction == 0 ? out.reshape(target.sizes()) : out;
}
void negative_log_likelihood(N& n) { n.set(likelihood_loss(n, n.tensor(0))); }
void softmax_cross_entropy(N& n) {
  const Tensor log_prob = log_softmax(n.tensor(0), 1);
  n.set(0, likelihood_loss(n, log_prob));
  n.set(1, log_prob);
}

/// Calls `step(rate, t, tensors, g)` for each weight: its `count` tensors, and its
/// gradient with what the norm of the weight adds. The tensors are then the new ones: the weight, and its
/// states.
template <class F>
void optimize(N& n, size_t count, const F& step) {
  const size_t given = n.num_inputs() - std::min<size_t>(n.num_inputs(), 2), weights = given / (count + 1);
  TENON_NODE_CHECK(
      n, weights > 0 && weights * (count + 1) == given, Value,
      fmt::format("it has {} inputs, expected 2 and {} for each weight", n.num_inputs(), count + 1));
  const Tensor& rate = n.tensor(0);
  const auto t = static_cast<double>(n.integer(1));
  for (size_t i = 0; i < weights; ++i) {
    // Weights, gradients, then each kind of state.
    std::vector<Tensor> tensors{n.tensor(2 + i)};
    for (size_t s = 1; s < count; ++s) tensors.push_back(n.tensor(2 + (s + 1) * weights + i));
    const Tensor g = add(n.tensor(2 + weights + i), tensors[0], Scalar(n.number("norm_coefficient", 0)));
    step(rate, t, tensors, g);
    for (size_t s = 0; s < count; ++s) n.set(s * weights + i, tensors[s]);
  }
}
Tensor mixed(const Tensor& a, const Tensor& b, double share) {
  return add(mul(a, Scalar(share)), b, Scalar(1 - share));
}
void adagrad(N& n) {
  const double epsilon = n.number("epsilon", 1e-6), decay = n.number("decay_factor", 0);
  optimize(n, 2, [&](const Tensor& rate, double t, std::vector<Tensor>& w, const Tensor& g) {
    w[1] = add(w[1], square(g));
    const Tensor step = div(mul(g, div(rate, Scalar(1 + t * decay))), add(sqrt(w[1]), Scalar(epsilon)));
    w[0] = sub(w[0], step);
  });
}
void momentum(N& n) {
  const double alpha = n.number("alpha", 0), beta = n.number("beta", 0);
  const std::string_view mode = n.text("mode", "standard");
  TENON_NODE_CHECK(n, mode == "standard" || mode == "nesterov", Value,
                   fmt::format("attribute `mode` is {}, expected standard or nesterov", mode));
  optimize(n, 2, [&](const Tensor& rate, double t, std::vector<Tensor>& w, const Tensor& g) {
    w[1] = add(mul(w[1], Scalar(alpha)), g, Scalar(t > 0 ? beta : 1));
    w[0] = sub(w[0], mul(rate, mode == "standard" ? w[1] : add(g, w[1], Scalar(alpha))));
  });
}
void adam(N& n) {
  const double alpha = n.number("alpha", 0.9F), beta = n.number("beta", 0.999F);
  const double epsilon = n.number("epsilon", 1e-6), shrink = 1 - n.number("norm_coefficient_post", 0);
  optimize(n, 3, [&](const Tensor& rate, double t, std::vector<Tensor>& w, const Tensor& g) {
    w[1] = mixed(w[1], g, alpha);
    w[2] = mixed(w[2], square(g), beta);
    const double correction = t > 0 ? std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t)) : 1;
    const Tensor step = div(w[1], add(sqrt(w[2]), Scalar(epsilon)));
    w[0] = mul(sub(w[0], mul(step, mul(rate, Scalar(correction)))), Scalar(shrink));
  });
}

constexpr auto kLossRows = std::to_array<Row>({
    {"Adagrad", 1, adagrad, "ai.onnx.preview.training"},
    {"Adam", 1, adam, "ai.onnx.preview.training"},
    {"Momentum", 1, momentum, "ai.onnx.preview.training"},
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
});

}  // namespace

std::span<const Row> loss_rows() noexcept { return kLossRows; }

}  // namespace tenon::onnx
