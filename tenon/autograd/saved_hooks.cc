#include "tenon/autograd/saved_hooks.h"

namespace tenon::autograd {
namespace {

thread_local detail::SavedHooks hooks;

}  // namespace

namespace detail {

thread_local constinit bool has_saved_tensor_hooks TENON_FAST_TLS = false;

std::shared_ptr<const SavedTensorHooks> saved_tensor_hooks() noexcept {
  return hooks.stack.empty() ? nullptr : hooks.stack.back();
}

bool are_saved_tensor_hooks_disabled() noexcept { return hooks.disabled.has_value(); }

SavedHooks all_saved_hooks() { return hooks; }
void set_all_saved_hooks(SavedHooks taken) {
  // What goes may hold objects of a language binding, whose end may run anything.
  std::swap(hooks, taken);
  has_saved_tensor_hooks = !hooks.stack.empty();
}

}  // namespace detail

void push_saved_tensor_hooks(SavedTensorHooks pair) {
  TENON_CHECK(!hooks.disabled, Runtime, *hooks.disabled);
  hooks.stack.push_back(std::make_shared<const SavedTensorHooks>(std::move(pair)));
  detail::has_saved_tensor_hooks = true;
}

void pop_saved_tensor_hooks() noexcept {
  if (!hooks.stack.empty()) hooks.stack.pop_back();
  detail::has_saved_tensor_hooks = !hooks.stack.empty();
}

std::optional<std::string> disable_saved_tensor_hooks(std::optional<std::string> message) {
  TENON_CHECK(!message || hooks.stack.empty(), Runtime, *message);
  return std::exchange(hooks.disabled, std::move(message));
}

}  // namespace tenon::autograd
