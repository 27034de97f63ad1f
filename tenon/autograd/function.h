// Function: a differentiable function with a forward and a backward written in C++ (PyTorch's
// torch::autograd::Function). Used by users.
//
//     struct Square : tenon::autograd::Function<Square> {
//       static Tensor forward(AutogradContext* ctx, const Tensor& x) {
//         ctx->save_for_backward({x});
//         return x * x;
//       }
//       static std::vector<Tensor> backward(AutogradContext* ctx, const std::vector<Tensor>& grads) {
//         return {grads[0] * ctx->get_saved_variables()[0] * 2};
//       }
//     };
//     Tensor y = Square::apply(x);
#pragma once

#include <any>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/autograd/custom_function.h"
#include "tenon/autograd/saved_tensor.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {

/// The name of a type as the compiler prints it, in programs without RTTI, too: "ns::Square". Two compilers
/// may spell one type differently.
template <class T>
constexpr std::string_view type_name() noexcept {
  // GCC: "... [with T = ns::Square; std::string_view = ...]"; clang: "... [T = ns::Square]".
  const std::string_view text = __PRETTY_FUNCTION__;
  const size_t begin = text.find("T = ") + 4, aliases = text.rfind("; std::string_view = ");
  return text.substr(begin, (aliases == text.npos ? text.size() - 1 : aliases) - begin);
}

/// A value of any type that forward keeps for backward. Keep tensors with save_for_backward instead, which
/// notices changes and makes no cycles.
class SavedValue {
 public:
  SavedValue() = default;
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, SavedValue>) SavedValue& operator=(T&& value) {
    value_ = std::forward<T>(value);
    type_ = type_name<std::decay_t<T>>();
    return *this;
  }
  /// Throws Error{Type} when another type was kept.
  template <class T>
  const T& to() const {
    if (const T* value = std::any_cast<T>(&value_)) return *value;
    refuse(type_name<T>());
  }
  bool has_value() const noexcept { return value_.has_value(); }

 private:
  [[noreturn]] void refuse(std::string_view wanted) const;
  std::any value_;
  std::string_view type_;
};

class CustomNode;

/// The state that forward and backward of one call share.
class AutogradContext {
 public:
  /// Keeps arguments and results of forward, and other tensors computed in it. To be called at most once.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /// The saved tensors. Throws Error{Runtime} if one was changed in place since, or if the graph was freed.
  std::vector<Tensor> get_saved_variables() const;
  /// Marks the arguments that forward has written in place; it must return all of them.
  void mark_dirty(std::vector<Tensor> tensors) { dirty_ = std::move(tensors); }
  /// Marks results that have no gradient.
  void mark_non_differentiable(std::vector<Tensor> tensors) { non_differentiable_ = std::move(tensors); }
  /// Whether backward gets zeros (the default) or undefined tensors for results that had no gradient.
  void set_materialize_grads(bool on) noexcept { materialize_ = on; }
  /// In backward: whether the gradient of tensor argument `i` (counting tensors only) is wanted.
  bool needs_input_grad(size_t i) const noexcept;

  std::unordered_map<std::string, SavedValue> saved_data;

 private:
  friend class CustomNode;
  const CustomNode* node_ = nullptr;
  std::vector<Tensor> to_save_, dirty_, non_differentiable_;
  std::vector<SavedTensor> saved_;
  bool materialize_ = true;
};

/// The node of one call of a Function.
class CustomNode : public Node {
 public:
  std::string_view name() const noexcept final { return name_; }
  void apply(NodeCall& call) final;
  void release_variables() noexcept final;
  void visit_saved(SavedVisitor& visitor) const final;
  void visit_kept(KeptVisitor& visitor) const noexcept final;

  AutogradContext& context() noexcept { return context_; }
  /// Sets the node's edges. `is_tensor[i]` says whether argument i is a tensor; `caller` is the return
  /// address whose line errors name.
  void begin(std::span<const Tensor> inputs, std::vector<bool> is_tensor, void* caller);
  /// Gives the results their history if `recorded`, and saves the tensors that forward asked to save.
  void finish(bool recorded, std::span<const Tensor> inputs, std::span<Tensor> results);

 protected:
  explicit CustomNode(std::string_view function);
  virtual std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) = 0;

 private:
  friend class AutogradContext;
  std::string name_;
  AutogradContext context_;
  std::vector<bool> is_tensor_;
};

namespace detail {

/// Collects the tensors among a call's arguments, including the elements of lists.
struct FunctionInputs {
  std::vector<Tensor> tensors;
  std::vector<bool> is_tensor;

  void add(const Tensor& t) {
    tensors.push_back(t);
    is_tensor.push_back(true);
  }
  void add(const std::vector<Tensor>& list) {
    for (const Tensor& t : list) add(t);
  }
  void add(TensorList list) {
    for (const Tensor& t : list) add(t);
  }
  template <class T>
  void add(const T&) {
    is_tensor.push_back(false);
  }
};

}  // namespace detail

template <class T>
struct Function {
  /// Calls T::forward(ctx, args...) without recording, and records the call itself where grad mode is on and
  /// a tensor among `args` requires grad. Returns what forward returned: a Tensor or a std::vector<Tensor>.
  template <class... Args>
  [[gnu::noinline]] static auto apply(Args&&... args) {
    class Call final : public CustomNode {
     public:
      Call() : CustomNode(type_name<T>()) {}

     private:
      std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) final {
        return T::backward(ctx, std::move(grads));
      }
    };
    detail::FunctionInputs inputs;
    (inputs.add(args), ...);
    const auto node = IntrusivePtr<CustomNode>::adopt(new Call);
    const bool recorded = records(inputs.tensors);
    if (recorded) node->begin(inputs.tensors, std::move(inputs.is_tensor), __builtin_return_address(0));
    auto result = [&] {
      const NoGradGuard no_grad;
      return T::forward(&node->context(), std::forward<Args>(args)...);
    }();
    if constexpr (std::is_same_v<decltype(result), Tensor>)
      node->finish(recorded, inputs.tensors, {&result, 1});
    else
      node->finish(recorded, inputs.tensors, result);
    return result;
  }
};

}  // namespace tenon::autograd
