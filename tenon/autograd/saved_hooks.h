// Saved-tensor hooks: what a thread does to tensors that nodes save for backward: compress them, move them
// away, record them. Used by users, SavedTensor and bindings.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tenon/core/small_alloc.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// `pack` gets each tensor as it is saved, without history, and must not write to it; `unpack` gets what it
/// returned, whenever backward asks, and gives back a tensor of the same elements. Both run without grad mode
/// for `pack`, and in the mode of the backward pass for `unpack`.
struct SavedTensorHooks {
  std::function<std::any(const Tensor&)> pack;
  std::function<Tensor(const std::any&)> unpack;
};

/// The innermost pair of this thread applies. Throws Error{Runtime} while hooks are disabled.
void push_saved_tensor_hooks(SavedTensorHooks hooks);
void pop_saved_tensor_hooks() noexcept;

/// Applies a pair of hooks for a scope.
class SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks) { push_saved_tensor_hooks(std::move(hooks)); }
  ~SavedTensorHooksGuard() { pop_saved_tensor_hooks(); }
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
};

/// While a message is set, pushing hooks throws it as Error{Runtime}. Throws the same when hooks are in use
/// now. Returns the message that was set before.
std::optional<std::string> disable_saved_tensor_hooks(std::optional<std::string> message);

namespace detail {
/// The pair that applies on this thread, or null.
std::shared_ptr<const SavedTensorHooks> saved_tensor_hooks() noexcept;
extern thread_local constinit bool has_saved_tensor_hooks TENON_FAST_TLS;
}  // namespace detail

}  // namespace tenon::autograd
