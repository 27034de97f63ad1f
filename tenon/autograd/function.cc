#include "tenon/autograd/function.h"

#include <fmt/core.h>

#include "tenon/autograd/autograd.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::autograd {
namespace {

// "tenon::(anonymous namespace)::Square" is called SquareBackward.
std::string node_name(std::string_view type) {
  const size_t at = type.find('<') == type.npos ? type.rfind(':') : type.npos;
  return std::string(at == type.npos ? type : type.substr(at + 1)) + "Backward";
}

// The run of a node that this thread is in, for needs_input_grad.
struct Run {
  const CustomNode* node;
  const NodeCall* call;
};
thread_local Run current{nullptr, nullptr};

class RunScope {
 public:
  RunScope(const CustomNode& node, const NodeCall& call) noexcept : outer_(current) {
    current = {&node, &call};
  }
  ~RunScope() { current = outer_; }
  RunScope(const RunScope&) = delete;

 private:
  Run outer_;
};

}  // namespace

void SavedValue::refuse(std::string_view wanted) const {
  throw_error(ErrorKind::Type,
              fmt::format("saved_data: holds {}, asked for {}", has_value() ? type_ : "nothing", wanted));
}

std::vector<Tensor> AutogradContext::get_saved_variables() const {
  std::vector<Tensor> out;
  if (!node_) return to_save_;  // forward has not returned yet
  for (size_t i = 0; i < saved_.size(); ++i) {
    out.push_back(saved_[i].unpack(*node_, node_->name(), fmt::format("tensor {} of save_for_backward", i)));
  }
  return out;
}

bool AutogradContext::needs_input_grad(size_t i) const noexcept {
  if (!node_ || i >= node_->next_edges().size()) return false;
  if (current.node == node_) return current.call->wanted(i);
  return static_cast<bool>(node_->next_edges()[i]);
}

CustomNode::CustomNode(std::string_view function) : name_(node_name(function)) {}

void CustomNode::begin(std::span<const Tensor> inputs, std::vector<bool> is_tensor, void* caller) {
  is_tensor_ = std::move(is_tensor);
  set_source(note_caller(caller));
  reserve_edges(inputs.size());
  for (const Tensor& t : inputs) add_edge(t.defined() ? gradient_edge(t) : Edge());
}

void CustomNode::finish(bool recorded, std::span<const Tensor> inputs, std::span<Tensor> results) {
  const std::vector<Tensor> returned(results.begin(), results.end());
  const auto self = IntrusivePtr<Node>::share(this);
  finish_custom_call({recorded ? self : nullptr, inputs, context_.dirty_, context_.non_differentiable_},
                     results);
  const std::vector<Tensor> to_save = std::exchange(context_.to_save_, {});
  context_.dirty_.clear();
  context_.non_differentiable_.clear();
  if (!recorded) return;
  context_.node_ = this;
  context_.saved_.resize(to_save.size());
  for (size_t i = 0; i < to_save.size(); ++i) {
    uint32_t nr = 0;
    while (nr < results.size() && !(results[nr].defined() && results[nr].is_same(to_save[i]))) ++nr;
    if (nr < results.size())
      context_.saved_[i].save_output(to_save[i], nr, to_save[i]._version());
    else
      context_.saved_[i].save_input(to_save[i]);
  }
}

void CustomNode::apply(NodeCall& call) {
  std::vector<Tensor> grads(call.grads.begin(), call.grads.end());
  for (size_t i = 0; i < grads.size() && context_.materialize_; ++i) {
    if (!grads[i].defined()) grads[i] = tenon::zeros(input_meta(i).sizes(), input_meta(i).options());
  }
  const RunScope run(*this, call);
  std::vector<Tensor> out = backward(&context_, std::move(grads));
  // More than there are arguments is allowed where nothing is in them.
  while (out.size() > is_tensor_.size() && !out.back().defined()) out.pop_back();
  TENON_CHECK(out.size() == is_tensor_.size(), Runtime,
              fmt::format("Function {} returned an incorrect number of gradients (expected {}, got {})",
                          name_, is_tensor_.size(), out.size()));
  size_t edge = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (is_tensor_[i]) {
      call.out[edge++] = std::move(out[i]);
      continue;
    }
    TENON_CHECK(!out[i].defined(), Runtime,
                fmt::format("Function {} returned a gradient different from None at position {}, but the "
                            "corresponding forward input was not a Variable",
                            name_, i + 1));
  }
}

void CustomNode::release_variables() noexcept {
  for (SavedTensor& t : context_.saved_) t.release();
}

void CustomNode::visit_kept(KeptVisitor& visitor) const noexcept {
  for (const SavedTensor& t : context_.saved_) t.visit_kept(visitor);
}

void CustomNode::visit_saved(SavedVisitor& visitor) const {
  if (context_.saved_.empty()) return;
  visitor.list("tensors", context_.get_saved_variables());
}

}  // namespace tenon::autograd
