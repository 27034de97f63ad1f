#include "tenon/autograd/autograd.h"

#include <fmt/core.h>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/engine.h"
#include "tenon/generated/functions.h"

namespace tenon::autograd {
namespace {

Tensor root_gradient(const Tensor& output, const Tensor& given) {
  if (!given.defined()) {
    TENON_CHECK(output.numel() == 1, Runtime, "grad can be implicitly created only for scalar outputs");
    TENON_CHECK(is_differentiable(output.dtype()), Runtime,
                fmt::format("backward: a gradient can be created only for real scalar outputs, got {}",
                            tenon::name(output.dtype())));
    const NoGradGuard no_grad;
    return tenon::ones_like(output);
  }
  TENON_CHECK(
      given.sizes() == output.sizes(), Runtime,
      fmt::format("Mismatch in shape: the gradient has a shape of {} and the output has a shape of {}",
                  to_string(given.sizes()), to_string(output.sizes())));
  TENON_CHECK(given.device() == output.device(), Device,
              fmt::format("backward: the gradient is on {}, the output on {}", to_string(given.device()),
                          to_string(output.device())));
  return given.dtype() == output.dtype() ? given : given.to(output.dtype());
}

std::vector<Tensor> run(TensorList outputs, TensorList grad_outputs, TensorList inputs,
                        std::optional<bool> retain_graph, bool create_graph, bool accumulate) {
  TENON_CHECK(grad_outputs.empty() || grad_outputs.size() == outputs.size(), Runtime,
              fmt::format("got {} tensors and {} gradients", outputs.size(), grad_outputs.size()));
  std::vector<Edge> roots, captures;
  std::vector<Tensor> grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TENON_CHECK(outputs[i].defined(), Type, fmt::format("backward: output {} is undefined", i));
    roots.push_back(gradient_edge(outputs[i]));
    TENON_CHECK(roots.back(), Runtime,
                fmt::format("element {} of tensors does not require grad and does not have a grad_fn", i));
    grads.push_back(root_gradient(outputs[i], grad_outputs.empty() ? Tensor() : grad_outputs[i]));
  }
  for (const Tensor& input : inputs) {
    TENON_CHECK(input.defined(), Type, "grad: an input is undefined");
    captures.push_back(gradient_edge(input));
    TENON_CHECK(captures.back(), Runtime, "One of the differentiated Tensors does not require grad");
  }
  const BackwardOptions options{.retain_graph = retain_graph.value_or(create_graph),
                                .create_graph = create_graph,
                                .accumulate = accumulate};
  return run_backward(roots, grads, captures, options);
}

}  // namespace

void backward(TensorList outputs, TensorList grad_outputs, std::optional<bool> retain_graph,
              bool create_graph, TensorList inputs) {
  for (const Tensor& input : inputs) {
    TENON_CHECK(input.defined() && input.is_leaf(), Runtime,
                "backward: `inputs` must be leaves; use grad() for the gradient of a computed tensor");
  }
  run(outputs, grad_outputs, inputs, retain_graph, create_graph, true);
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  TENON_CHECK(!inputs.empty(), Value, "grad: `inputs` is empty");
  std::vector<Tensor> grads = run(outputs, grad_outputs, inputs, retain_graph, create_graph, false);
  for (const Tensor& g : grads) {
    TENON_CHECK(allow_unused || g.defined(), Runtime,
                "One of the differentiated Tensors appears to not have been used in the graph. Set "
                "allow_unused=True if "
                "this is the desired behavior.");
  }
  return grads;
}

void detach_(const Tensor& t) {
  TENON_CHECK(!t.is_view(), Runtime, "Can't detach views in-place. Use detach() instead.");
  TensorImpl& impl = *t.impl();
  if (AutogradMeta* meta = meta_of(impl)) {
    meta->grad_fn = {};
    meta->requires_grad = meta->retains_grad = false;
  }
  impl.set_keys(impl.own_keys() - kAutogradKeys);
}

uint64_t register_hook(const Tensor& t, TensorHook hook) {
  const Edge edge = gradient_edge(t);
  TENON_CHECK(edge, Runtime, "cannot register a hook on a tensor that doesn't require gradient");
  static std::atomic<uint64_t> next{1};
  const uint64_t id = next.fetch_add(1, std::memory_order_relaxed);
  edge.node->ensure_hooks().hooks.push_back({id, edge.input_nr, std::move(hook)});
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  const Edge edge = gradient_edge(t);
  if (edge && edge.node->hooks())
    std::erase_if(edge.node->hooks()->hooks, [&](const auto& h) { return h.id == id; });
}

}  // namespace tenon::autograd

namespace tenon {

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph) const {
  autograd::backward({this, 1}, {&gradient, 1}, retain_graph, create_graph);
}

}  // namespace tenon
