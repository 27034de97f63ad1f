#include "tenon/autograd/saved_tensor.h"

#include <fmt/core.h>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {
namespace {

uint64_t version_of(const Tensor& t) noexcept { return t.storage() ? t._version() : 0; }

void refuse_inference(const Tensor& t) {
  TENON_CHECK(
      !t.impl()->is_inference() || thread_state.inference_mode, Runtime,
      "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
      "tensor and use it in autograd.");
}

}  // namespace

void SavedTensor::save_input(const Tensor& t) {
  if (!t.defined()) return;
  refuse_inference(t);
  const AutogradMeta* meta = meta_of(*t.impl());
  if (meta && meta->requires_grad && !meta->grad_fn) {
    data_ = t;
  } else {
    data_ = alias_without_history(t);
    history_ = gradient_edge(t);
  }
  version_ = version_of(t);
  state_ = State::Input;
}

void SavedTensor::save_output(const Tensor& t, uint32_t output_nr, uint64_t version) {
  if (!t.defined()) return;
  refuse_inference(t);
  data_ = alias_without_history(t);
  version_ = version;
  history_.input_nr = output_nr;
  state_ = State::Output;
}

bool SavedTensor::changed() const noexcept { return saved() && version_of(data_) != version_; }

Tensor SavedTensor::get(const Node& owner) const {
  const bool has_history = state_ == State::Output || (state_ == State::Input && history_);
  if (!thread_state.grad_enabled || !has_history) return data_;
  Tensor t = alias_without_history(data_);
  if (state_ == State::Input)
    set_history(t, history_);
  else
    set_history(t, {IntrusivePtr<Node>::share(const_cast<Node*>(&owner)), history_.input_nr});
  return t;
}

Tensor SavedTensor::unpack(const Node& owner, std::string_view op, std::string_view what) const {
  if (released() || changed()) [[unlikely]]
    throw_unusable(op, what);
  return get(owner);
}

void SavedTensor::throw_unusable(std::string_view op, std::string_view what) const {
  TENON_CHECK(
      !released(), Runtime,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
      "if you need to access saved tensors after calling backward.");
  throw_error(
      ErrorKind::Runtime,
      fmt::format("backward: `{}` saved {}, which was changed in place (version {}, expected {}); use the "
                  "out-of-place form instead",
                  op, what, version_of(data_), version_));
}

}  // namespace tenon::autograd
