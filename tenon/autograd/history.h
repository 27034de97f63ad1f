// HistoryCall: the Autograd kernel of every operator that has a DerivativeInfo. It makes a node, continues
// the call below Autograd, and gives the results their history. One instantiation for each C++ signature.
// Used by generated registrations. history.cc has what does not depend on the signature.
#pragma once

#include <bit>

#include "tenon/autograd/derivative.h"

namespace tenon::autograd {

/// The tensor arguments of one call, wherever they are in its signature.
struct CallTensors {
  const CallShape& shape;
  const Tensor* const* tensors;  ///< By slot.
  const TensorList* lists;       ///< In order.

  const TensorList& list(size_t argument) const noexcept {
    return lists[std::popcount(shape.lists & ((uint64_t{1} << argument) - 1))];
  }
};

/// The part of recording a call that does not depend on its signature.
class HistoryWriter {
 public:
  /// Throws Error{Runtime} for an in-place or out call that cannot be recorded.
  HistoryWriter(const DerivativeInfo& info, const CallTensors& call)
      : info_(info), call_(call), recording_(decide()) {}

  bool recording() const noexcept { return recording_; }
  /// Sets the node's edges and saves arguments. Must run before the call continues, which may overwrite an
  /// argument. `frame` is the frame of the kernel, whose caller's line the node remembers.
  void begin(IntrusivePtr<OpNode> node, void* frame);
  /// Makes the results part of the graph. `several`: the operator returns a list or a tuple.
  void finish(std::span<Tensor* const> results, bool several);
  /// For a call that is not recorded: results that are views remember in which mode, and after which writes
  /// to their base, they were made.
  void finish_unrecorded(std::span<Tensor* const> results, bool several) const;

 private:
  bool decide() const;
  bool any_requires_grad() const;
  bool argument_requires_grad(size_t i) const;
  /// The written arguments that are no out= arguments: self, and others that an operator updates.
  uint64_t written_in_place() const noexcept { return call_.shape.written & ~info_.outs; }
  bool writes_self() const noexcept { return written_in_place() & 1; }
  void check_written(bool any) const;
  void save_arguments(uint64_t saves, uint64_t metas);
  IntrusivePtr<Node> owner() const noexcept { return IntrusivePtr<Node>::share(node_.get()); }
  void replace_self_history(const Tensor& self);

  const DerivativeInfo& info_;
  const CallTensors& call_;
  bool recording_;
  IntrusivePtr<OpNode> node_;
  uint64_t saves_results_ = 0;
  uint64_t version_before_ = 0;  // of the written argument
};

namespace detail {

/// Addresses of a call's tensor arguments, in order.
template <class... A>
struct TensorPointers {
  static constexpr const CallShape& kShape = kCallShape<A...>;
  const Tensor* tensors[kShape.num_tensors() + 1];
  TensorList lists[std::popcount(kShape.lists) + 1];

  explicit TensorPointers(const std::remove_reference_t<A>&... args) {
    size_t n = 0, l = 0;
    (add(n, l, args), ...);
  }
  CallTensors call() const noexcept { return {kShape, tensors, lists}; }

 private:
  void add(size_t& n, size_t&, const Tensor& t) noexcept { tensors[n++] = &t; }
  void add(size_t&, size_t& l, const TensorList& list) noexcept { lists[l++] = list; }
  template <class T>
  void add(size_t&, size_t&, const T&) noexcept {}
};

/// Calls `f` with the addresses of all tensors in a call's result.
template <class R, class F>
void with_results(R& result, F&& f) {
  using V = std::remove_cvref_t<R>;
  if constexpr (std::is_same_v<V, Tensor>) {
    Tensor* one[] = {&result};
    f(std::span<Tensor* const>(one));
  } else if constexpr (std::is_same_v<V, std::vector<Tensor>>) {
    std::vector<Tensor*> all;
    for (Tensor& t : result) all.push_back(&t);
    f(std::span<Tensor* const>(all));
  } else if constexpr (requires { std::tuple_size<V>::value; }) {
    Tensor* each[kTensorResults<V> + 1];
    size_t n = 0;
    std::apply(
        [&]<class... T>(T&... element) {
          const auto add = [&](auto& e) {
            if constexpr (kIsTensor<decltype(e)>) each[n++] = &e;
          };
          (add(element), ...);
        },
        result);
    f(std::span<Tensor* const>(each, n));
  } else {
    f(std::span<Tensor* const>());
  }
}

}  // namespace detail

template <class Sig>
struct HistoryCall;
template <class R, class... A>
struct HistoryCall<R(A...)> {
  static R call(const Kernel& kernel, DispatchKeySet keys, A... args) {
    const auto& info = *static_cast<const DerivativeInfo*>(kernel.data);
    const TypedOperator<R(A...)> op(*info.entry);
    const detail::TensorPointers<A...> pointers(args...);
    const CallTensors tensors = pointers.call();
    HistoryWriter writer(info, tensors);
    if (writer.recording())
      writer.begin(IntrusivePtr<OpNode>::adopt(new SavedCall<R(A...)>(info, tensors.shape, args...)),
                   __builtin_frame_address(0));
    // Operators that the kernel itself calls are not recorded.
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    const DispatchKeySet rest = keys.below(Functionality::Autograd);
    if constexpr (std::is_void_v<R>) {
      op.redispatch(rest, std::forward<A>(args)...);
      if (writer.recording()) writer.finish({}, false);
    } else {
      R result = op.redispatch(rest, std::forward<A>(args)...);
      if (writer.recording()) {
        detail::with_results(result,
                             [&](std::span<Tensor* const> results) { writer.finish(results, kSeveral); });
      } else if (info.is_view || is_view(result)) {
        detail::with_results(
            result, [&](std::span<Tensor* const> results) { writer.finish_unrecorded(results, kSeveral); });
      }
      return result;
    }
  }

 private:
  static constexpr bool kSeveral = !detail::kIsTensor<R>;

  template <class T>
  static bool is_view(const T& result) noexcept {
    // Also for operators whose schema does not declare the result a view.
    if constexpr (std::is_same_v<T, Tensor>)
      return result.defined() && result.is_view();
    else
      return false;
  }
};

}  // namespace tenon::autograd
