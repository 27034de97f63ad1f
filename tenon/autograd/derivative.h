// DerivativeInfo: what autograd knows about one operator, as constant data. OpNode and SavedCall: the node of
// a recorded call. Gradients: where a formula stores the gradients that it computes. Used by generated
// derivatives and by history.h.
//
// The generator prints for an operator with formulas (here mm), one function and one row of data:
//
//     static void mm_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out) {
//       using Call = SavedCall<Tensor(const Tensor&, const Tensor&)>;   // the operator's canonical signature
//       const auto& saved = static_cast<const Call&>(node);
//       const Tensor& grad = grads[0];
//       if (out.wanted(0)) {                       // argument 0, with only what its formula uses
//         const Tensor mat2 = saved.arg<1>();      // elements: in `saves` below
//         out.set(0, mm(grad, mat2.t()));
//       }
//       if (out.wanted(1)) { const auto& self = saved.meta(0); ... }    // self.sizes(): in `metas` below
//     }
//     constexpr ArgumentUse mm_uses[] = {{.argument = 0, .saves = 1 << 1}, {.argument = 1, .saves = 1 << 0}};
//     constinit const DerivativeInfo mm_info = {.entry = &operator_entries[17], .node_name = "MmBackward0",
//                                               .uses = mm_uses, .backward = &mm_backward};
//
// and registers HistoryCall<Sig> (history.h) for the key Autograd with &mm_info as its data. A pointwise
// operator has .backward = &pointwise_backward and .data = its PointwiseInfo instead of a function of its
// own; its uses follow from PointwiseDerivative::tensors. An in-place operator that leaves nothing of the old
// elements and has `derivative: none` (uniform_) has one use {.argument = 0} and no backward: its arguments
// get no gradient, but its history is written. An out form needs .entry and the same .uses (its arguments say
// whether it must be refused). A functional operator with `derivative: none` is registered as a fallthrough.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "tenon/autograd/node.h"
#include "tenon/autograd/saved_tensor.h"
#include "tenon/autograd/tensor_meta.h"
#include "tenon/dispatch/operator.h"

namespace tenon::autograd {

class OpNode;
class Gradients;

/// An argument that has a formula, and what the formula needs. Bits are positions among all arguments, or
/// among the results.
struct ArgumentUse {
  uint8_t argument = 0;
  uint64_t saves = 0;          ///< Tensor arguments whose elements it uses.
  uint64_t saves_results = 0;  ///< Results whose elements it uses.
  uint64_t metas = 0;          ///< Tensor arguments whose sizes, strides, dtype or options it uses.
};

/// Computes the gradients of a call's arguments from those of its results. `grads[i]` is the gradient of
/// result i. With one result it is always defined; with several, missing ones are filled in with zeros,
/// except those of results that are not differentiable or in `undefined_grads`, which stay undefined.
using BackwardFn = void (*)(const OpNode& node, std::span<const Tensor> grads, Gradients& out);

/// The kinds of a call's arguments, for code that does not depend on the signature. Bits are argument
/// positions.
struct CallShape {
  uint64_t tensors = 0;  ///< Single tensors, written ones included.
  uint64_t lists = 0;    ///< Lists of tensors.
  uint64_t written = 0;
  uint64_t numbers = 0;  ///< Scalar, float, int, bool, optional ones included; not lists.
  uint8_t count = 0;     ///< Of single tensors.
  uint8_t slots[64] = {};

  /// The index of tensor argument i among the tensors.
  constexpr size_t slot(size_t i) const noexcept { return slots[i]; }
  constexpr size_t num_tensors() const noexcept { return count; }

  constexpr CallShape() = default;
  constexpr CallShape(uint64_t tensors, uint64_t lists, uint64_t written, uint64_t numbers) noexcept
      : tensors(tensors), lists(lists), written(written), numbers(numbers) {
    for (size_t i = 0; i < 64; ++i) {
      slots[i] = count;
      count += tensors >> i & 1;
    }
  }
};

/// Constant data of one differentiable operator.
struct DerivativeInfo {
  OperatorEntry* entry = nullptr;     ///< The operator itself, to continue the call below Autograd.
  const char* node_name = "";         ///< "MulBackward0"
  std::span<const ArgumentUse> uses;  ///< In the order of the arguments.
  BackwardFn backward = nullptr;      ///< Null: no argument gets a gradient.
  const void* data = nullptr;         ///< The PointwiseInfo of a pointwise operator.
  uint64_t differentiable_results = ~uint64_t{0};
  uint64_t undefined_grads = 0;  ///< Results whose formulas ask whether their gradient is defined.
  /// Whether the result is a view of argument 0, so that an in-place write to one changes the history of the
  /// other.
  bool is_view = false;
  /// The out= arguments. Every other `Tensor&` is written in place. Argument 0 is then `self`, and has a
  /// formula if any argument does; other written arguments have no history.
  uint64_t outs = 0;
  /// For calls that are recorded over cells (cell_history.h): the kinds of the arguments, how many there are,
  /// and how many results are single tensors.
  const CallShape* shape = nullptr;
  uint8_t num_arguments = 0, num_tensor_results = 0;
};

/// The derivative of every pointwise operator, computed from its PointwiseInfo.
void pointwise_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out);

/// What is kept of a tensor argument for formulas that use its shape, strides or dtype.
class ArgumentMeta : public TensorMeta {
 public:
  ArgumentMeta() = default;
  explicit ArgumentMeta(const Tensor& t)
      : TensorMeta(t), strides_(t.strides()), storage_offset_(t.storage_offset()), defined_(true) {}

  /// Whether the call had that argument at all.
  bool defined() const noexcept { return defined_; }

  IntArrayRef strides() const noexcept { return strides_; }
  int64_t stride(int64_t d) const { return strides_[wrap_dim(d, dim(), "stride")]; }
  int64_t storage_offset() const noexcept { return storage_offset_; }

 private:
  Dims strides_;
  int64_t storage_offset_ = 0;
  bool defined_ = false;
};

/// A list argument: the number of its tensors, and of those what a formula needs.
struct SavedList {
  std::vector<SavedTensor> tensors;
  std::vector<ArgumentMeta> metas;
  uint32_t length = 0;
};

/// What is kept of a list argument for formulas that use the shapes and dtypes of its tensors.
class ListMeta {
 public:
  explicit ListMeta(const SavedList& list) noexcept : metas_(list.metas) {}
  std::span<const ArgumentMeta> metas() const noexcept { return metas_; }

 private:
  std::span<const ArgumentMeta> metas_;
};

/// The node of one recorded call: the part that does not depend on the signature.
class OpNode : public Node {
 public:
  const DerivativeInfo& info() const noexcept { return *info_; }
  const CallShape& shape() const noexcept { return *shape_; }
  std::string_view name() const noexcept final { return info_->node_name; }

  /// Tensor argument i; undefined if it was not saved. Throws Error{Runtime} if it was changed in place
  /// since, or if the graph was freed.
  Tensor tensor(size_t i) const;
  /// Result i as it was returned. Throws as `tensor` does.
  Tensor result(size_t i) const;
  /// Shape, dtype and device of tensor argument i; only for arguments of some `metas`.
  const ArgumentMeta& meta(size_t i) const noexcept { return metas_[shape_->slot(i)]; }
  /// The same of each tensor of list argument i.
  ListMeta list_meta(size_t i) const noexcept { return ListMeta(saved_list(i)); }
  /// Number argument i as a Scalar; 0 if the call did not have it.
  virtual Scalar scalar(size_t i) const = 0;
  /// Whether the call had number argument i, which may be optional.
  virtual bool has_scalar(size_t) const { return true; }

  void apply(NodeCall& call) final;
  void release_variables() noexcept final;
  void visit_saved(SavedVisitor& visitor) const final;
  void visit_kept(KeptVisitor& visitor) const noexcept final;

 protected:
  OpNode(const DerivativeInfo& info, const CallShape& shape, SavedTensor* tensors,
         size_t num_tensors) noexcept
      : info_(&info), shape_(&shape), saved_(tensors), num_saved_(static_cast<uint32_t>(num_tensors)) {}
  ~OpNode() override;

  /// List argument i.
  virtual SavedList& saved_list(size_t i) noexcept = 0;
  const SavedList& saved_list(size_t i) const noexcept { return const_cast<OpNode*>(this)->saved_list(i); }
  std::vector<Tensor> unpack_list(const SavedList& list, size_t i) const;
  std::string saved_name(size_t slot) const;

 private:
  friend class HistoryWriter;
  friend class Gradients;

  const DerivativeInfo* info_;
  const CallShape* shape_;
  SavedTensor* saved_;  // arguments by slot, then results
  uint32_t num_saved_;
  std::unique_ptr<ArgumentMeta[]> metas_;
};

/// Where a formula puts the gradients of a call's arguments.
class Gradients {
 public:
  Gradients(const OpNode& node, NodeCall& call) noexcept : node_(node), call_(call) {}

  /// Whether the gradient of the argument is needed; for a list, the gradient of any element.
  bool wanted(size_t argument) const noexcept;
  /// Sets the gradient of an argument; an undefined tensor means zero. The engine sums broadcast dimensions
  /// and converts the dtype.
  void set(size_t argument, Tensor grad);
  /// Sets the gradients of a list argument, one for each element.
  void set(size_t argument, std::vector<Tensor> grads);

 private:
  size_t edges_of(size_t argument) const noexcept;
  size_t edge_of(size_t argument) const noexcept;

  const OpNode& node_;
  NodeCall& call_;
};

/// How a node keeps an argument of each canonical C++ type: it owns what the argument borrows. OpNode keeps
/// the tensors that a formula needs.
struct KeptByNode {};
namespace detail {
template <class T>
struct Owning {
  using type = T;
};
template <class T>
requires(tenon::detail::kBorrowedBase<T>.found) struct Owning<T> {
  using type = typename tenon::detail::ValueType<tenon::detail::kBorrowedBase<T>.base>::Owned;
};
template <class T>
requires(tenon::detail::kListBase<T>.found) struct Owning<T> {
  using type = std::vector<typename tenon::detail::ElementOf<T>::type>;
};
template <>
struct Owning<IntArrayRef> {
  using type = Dims;
};
template <class T>
struct Owning<std::optional<T>> {
  using type = std::optional<typename Owning<T>::type>;
};
}  // namespace detail
template <class A>
struct SavedArg {
  using Stored = typename detail::Owning<A>::type;
};
template <class A>
requires(tenon::detail::kOwnedBase<std::remove_cvref_t<A>>.found &&
         !tenon::detail::ValueType<
             tenon::detail::kOwnedBase<std::remove_cvref_t<A>>.base>::saved) struct SavedArg<A> {
  using Stored = KeptByNode;
};
template <>
struct SavedArg<TensorList> {
  using Stored = SavedList;
};

namespace detail {

template <class A>
inline constexpr bool kIsTensor = std::is_same_v<std::remove_cvref_t<A>, Tensor>;
template <class A>
inline constexpr bool kIsNumber = std::is_same_v<std::remove_cvref_t<A>, Scalar> || std::is_arithmetic_v<A>;
template <class A>
inline constexpr bool kIsOptionalNumber = false;
template <class T>
inline constexpr bool kIsOptionalNumber<std::optional<T>> = kIsNumber<T>;

template <class... A>
constexpr CallShape call_shape() {
  uint64_t tensors = 0, lists = 0, written = 0, numbers = 0;
  uint64_t bit = 1;
  ((tensors |= kIsTensor<A> ? bit : 0, lists |= std::is_same_v<A, TensorList> ? bit : 0,
    written |= std::is_same_v<A, Tensor&> ? bit : 0,
    numbers |= kIsNumber<A> || kIsOptionalNumber<A> ? bit : 0, bit <<= 1),
   ...);
  return {tensors, lists, written, numbers};
}

/// Results that are single tensors.
template <class R>
inline constexpr size_t kTensorResults = kIsTensor<R> ? 1 : 0;
template <class... R>
inline constexpr size_t kTensorResults<std::tuple<R...>> = (size_t{0} + ... + (kIsTensor<R> ? 1 : 0));

template <class Stored, class A>
Stored keep(const A& value) {
  if constexpr (std::is_same_v<Stored, KeptByNode> || std::is_same_v<Stored, SavedList>) {
    return Stored{};
  } else if constexpr (std::is_same_v<Stored, std::optional<Dims>>) {
    return value ? Stored(value->to_dims()) : Stored();
  } else if constexpr (std::is_same_v<A, IntArrayRef>) {
    return value.to_dims();
  } else if constexpr (requires { value.begin(); }) {
    return Stored(value.begin(), value.end());
  } else if constexpr (requires { value->begin(); }) {
    return value ? Stored(std::in_place, value->begin(), value->end()) : Stored();
  } else {
    return value;
  }
}

}  // namespace detail

/// Of the arguments of a signature, with its tensors.
template <class... A>
inline constexpr CallShape kCallShape = detail::call_shape<A...>();

/// The node of one recorded call with arguments A, no matter which of them it wrote, and that many tensors as
/// results. Named by its signature: see SavedCall.
template <size_t TensorResults, class... A>
class SavedArguments final : public OpNode {
 public:
  SavedArguments(const DerivativeInfo& info, const CallShape& shape,
                 const std::remove_reference_t<A>&... args)
      : OpNode(info, shape, tensors_.data(), kSaved),
        args_(detail::keep<typename SavedArg<A>::Stored>(args)...) {}

  /// Argument I as a formula sees it: a Tensor, possibly undefined; a std::vector<Tensor>; or the value that
  /// was passed.
  template <size_t I>
  decltype(auto) arg() const {
    using Argument = std::tuple_element_t<I, std::tuple<A...>>;
    if constexpr (detail::kIsTensor<Argument>)
      return tensor(I);
    else if constexpr (std::is_same_v<Argument, TensorList>)
      return unpack_list(std::get<I>(args_), I);
    else if constexpr (std::is_same_v<Argument, std::optional<IntArrayRef>>)
      return Argument(std::get<I>(args_));
    else
      return (std::get<I>(args_));
  }

  Scalar scalar(size_t i) const final {
    Scalar value;
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((I == i ? (pick(value, std::get<I>(args_)), true) : false) || ...);
    }
    (std::index_sequence_for<A...>());
    return value;
  }
  bool has_scalar(size_t i) const final {
    if constexpr ((detail::kIsOptionalNumber<A> || ...)) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return ((I != i || is_given(std::get<I>(args_))) && ...);
      }
      (std::index_sequence_for<A...>());
    }
    return true;
  }

 protected:
  SavedList& saved_list(size_t i) noexcept final {
    SavedList* list = nullptr;
    [&]<size_t... I>(std::index_sequence<I...>) { (pick_list<I>(list, i), ...); }
    (std::index_sequence_for<A...>());
    return *list;
  }

 private:
  static constexpr size_t kSaved = kCallShape<A...>.num_tensors() + TensorResults;

  template <class T>
  static void pick(Scalar& out, const T& value) {
    if constexpr (detail::kIsNumber<T>) out = Scalar(value);
    if constexpr (detail::kIsOptionalNumber<T>) out = value ? Scalar(*value) : Scalar();
  }
  template <class T>
  static bool is_given(const T& value) {
    if constexpr (detail::kIsOptionalNumber<T>) return value.has_value();
    return true;
  }
  template <size_t I>
  void pick_list(SavedList*& out, size_t i) noexcept {
    if constexpr (std::is_same_v<std::tuple_element_t<I, std::tuple<A...>>, TensorList>) {
      if (I == i) out = &std::get<I>(args_);
    }
  }

  std::array<SavedTensor, kSaved == 0 ? 1 : kSaved> tensors_;
  [[no_unique_address]] std::tuple<typename SavedArg<A>::Stored...> args_;
};

namespace detail {
template <class A>
using Read = std::conditional_t<std::is_same_v<A, Tensor&>, const Tensor&, A>;
template <class Sig>
struct SavedCallOf;
template <class R, class... A>
struct SavedCallOf<R(A...)> {
  using type = SavedArguments<kTensorResults<R>, Read<A>...>;
};
}  // namespace detail

/// The node of a recorded call of signature Sig. An operator and its in-place form have the same.
template <class Sig>
using SavedCall = typename detail::SavedCallOf<Sig>::type;

}  // namespace tenon::autograd
