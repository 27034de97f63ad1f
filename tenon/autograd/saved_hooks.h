// Saved-tensor hooks: functions that a thread applies to the tensors that nodes save for backward, to
// compress them, move them elsewhere, or record them. Used by users, SavedTensor and bindings.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/core/small_alloc.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// `pack` gets each saved tensor without history, and must not write to it. `unpack` gets what `pack`
/// returned, whenever backward needs the tensor, and returns a tensor with the same elements. `pack` runs
/// with grad mode off, `unpack` in the mode of the backward pass.
struct SavedTensorHooks {
  std::function<std::any(const Tensor&)> pack;
  std::function<Tensor(const std::any&)> unpack;
};

/// Adds a pair of hooks; the innermost pair of a thread applies. Throws Error{Runtime} while hooks are
/// disabled.
void push_saved_tensor_hooks(SavedTensorHooks hooks);
void pop_saved_tensor_hooks() noexcept;

/// Applies a pair of hooks for a scope.
class SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks) { push_saved_tensor_hooks(std::move(hooks)); }
  ~SavedTensorHooksGuard() { pop_saved_tensor_hooks(); }
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
};

/// Disables hooks while a message is set: pushing hooks then throws it as Error{Runtime}. Throws it at once
/// if hooks are in use now. Returns the message that was set before.
std::optional<std::string> disable_saved_tensor_hooks(std::optional<std::string> message);

namespace detail {
/// The pair that applies on this thread, or null.
std::shared_ptr<const SavedTensorHooks> saved_tensor_hooks() noexcept;
extern thread_local constinit bool has_saved_tensor_hooks TENON_FAST_TLS;
bool are_saved_tensor_hooks_disabled() noexcept;

/// All that a thread has of them, for another thread that continues its work.
struct SavedHooks {
  std::vector<std::shared_ptr<const SavedTensorHooks>> stack;
  std::optional<std::string> disabled;
};
SavedHooks all_saved_hooks();
void set_all_saved_hooks(SavedHooks hooks);
}  // namespace detail

}  // namespace tenon::autograd
