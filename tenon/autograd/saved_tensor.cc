#include "tenon/autograd/saved_tensor.h"

#include <fmt/core.h>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/saved_hooks.h"
#include "tenon/autograd/strided.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {

/// What a pack hook returned, and who can undo it.
struct PackedTensor {
  std::any value;
  std::shared_ptr<const SavedTensorHooks> hooks;
};

namespace {

uint64_t version_of(const Tensor& t) noexcept { return t.storage() ? t._version() : 0; }

void refuse_inference(const Tensor& t) {
  TENON_CHECK(
      !t.impl()->is_inference() || thread_state.inference_mode, Runtime,
      "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
      "tensor and use it in autograd.");
}

PackedTensor* pack(const Tensor& elements) {
  auto hooks = detail::saved_tensor_hooks();
  const NoGradGuard no_grad;
  const uint64_t before = version_of(elements);
  auto packed = std::make_unique<PackedTensor>(PackedTensor{hooks->pack(elements), hooks});
  TENON_CHECK(version_of(elements) == before, Runtime,
              "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
              "hook can not be modified by in-place operations as this can lead to unexpected side-effects. "
              "Please open an issue if you need to perform in-place operations on the input to a pack hook.");
  return packed.release();
}

}  // namespace

SavedTensor::SavedTensor(SavedTensor&& other) noexcept
    : data_(std::move(other.data_)),
      history_(std::move(other.history_)),
      version_(other.version_),
      packed_(std::exchange(other.packed_, nullptr)),
      identity_(other.identity_),
      state_(std::exchange(other.state_, State::Empty)) {}

SavedTensor& SavedTensor::operator=(SavedTensor&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(history_, other.history_);
  std::swap(version_, other.version_);
  std::swap(packed_, other.packed_);
  std::swap(identity_, other.identity_);
  std::swap(state_, other.state_);
  return *this;
}

void SavedTensor::drop_packed() noexcept { delete std::exchange(packed_, nullptr); }

void SavedTensor::release() noexcept {
  data_.reset();
  history_ = {};
  if (packed_) drop_packed();
  if (state_ != State::Empty) state_ = State::Released;
}

void SavedTensor::keep(Tensor elements, uint64_t version) {
  version_ = version;
  if (elements.storage()) elements.storage()->watch();
  data_ = std::move(elements);
}

void SavedTensor::save_input(const Tensor& t) {
  if (!t.defined()) return;
  refuse_inference(t);
  const AutogradMeta* meta = meta_of(*t.impl());
  if (detail::has_saved_tensor_hooks) [[unlikely]] {
    packed_ = pack(alias_without_history(t));
    history_ = gradient_edge(t);
  } else if (meta && meta->requires_grad && !meta->grad_fn) {
    keep(t, version_of(t));
  } else {
    history_ = gradient_edge(t);
    if (!history_) identity_ = t.impl()->identity();
    keep(alias_without_history(t), version_of(t));
  }
  state_ = State::Input;
}

void SavedTensor::save_output(const Tensor& t, uint32_t output_nr, uint64_t version) {
  if (!t.defined()) return;
  refuse_inference(t);
  if (detail::has_saved_tensor_hooks) [[unlikely]]
    packed_ = pack(alias_without_history(t));
  else
    keep(alias_without_history(t), version);
  history_.input_nr = output_nr;
  state_ = State::Output;
}

bool SavedTensor::changed() const noexcept { return saved() && !packed_ && version_of(data_) != version_; }

Edge SavedTensor::input_history() const {
  if (history_ || identity_ == 0) return history_;
  IntrusivePtr<Node> accumulator = late_leaf(identity_);
  return accumulator ? Edge(std::move(accumulator), 0) : Edge();
}

Tensor SavedTensor::get(const Node& owner) const {
  Tensor t = data_;
  if (packed_) {
    t = packed_->hooks->unpack(packed_->value);
    TENON_CHECK(t.defined(), Type, "a saved-tensor unpack hook must return a Tensor");
  }
  if (!thread_state.grad_enabled) return t;
  const Edge input = state_ == State::Input ? input_history() : Edge();
  if (state_ != State::Output && !input) return t;
  t = alias_without_history(t);
  if (input)
    set_history(t, input);
  else if (owner.enclosing())
    set_history(t, {make_written_view_node(*owner.enclosing()), 0});
  else
    set_history(t, {IntrusivePtr<Node>::share(const_cast<Node*>(&owner)), history_.input_nr});
  return t;
}

Tensor SavedTensor::unpack(const Node& owner, std::string_view op, std::string_view what) const {
  if (released() || changed()) [[unlikely]]
    throw_unusable(owner, op, what);
  return get(owner);
}

void SavedTensor::throw_unusable(const Node& owner, std::string_view op, std::string_view what) const {
  TENON_CHECK(
      !released(), Runtime,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
      "if you need to access saved tensors after calling backward.");
  throw_error(
      ErrorKind::Runtime,
      fmt::format(
          "backward: `{}` saved {}, which was changed in place (version {}, expected {}); use the "
          "out-of-place form instead, or write to a clone() of it: writes through `.data` and detach() "
          "count too. Saved at {}, changed at {}",
          op, what, version_of(data_), version_, describe_source(owner.source()),
          describe_source(data_.storage()->changed_at())));
}

}  // namespace tenon::autograd
