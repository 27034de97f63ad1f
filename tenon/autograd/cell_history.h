// CellCall: the node of a recorded call whose C++ signature has no generated code, and the one kernel that
// records all such calls. Used by generated derivatives. Typed signatures have SavedCall and HistoryCall
// instead; docs/decisions/0010 says which, and why.
#pragma once

#include "tenon/autograd/derivative.h"
#include "tenon/dispatch/builtin.h"

namespace tenon::autograd {

namespace detail {

/// Reads an argument from a cell as the type in which a typed node would keep it.
template <class T>
struct FromCell {
  static T get(const Stack& s, size_t i) { return s.at<T>(i); }
};
template <>
struct FromCell<Dims> {
  static Dims get(const Stack& s, size_t i) { return Dims(s.at<CellList<int64_t>>(i).span()); }
};
/// Borrowed from the cell: formulas take it as std::optional<IntArrayRef>.
template <>
struct FromCell<IntArrayRef> {
  static IntArrayRef get(const Stack& s, size_t i) {
    const auto& list = s.at<CellList<int64_t>>(i);
    return IntArrayRef(list.data(), list.size());
  }
};
template <>
struct FromCell<std::string> {
  static std::string get(const Stack& s, size_t i) {
    const auto& text = s.at<CellList<char>>(i);
    return std::string(text.data(), text.size());
  }
};
template <class T>
struct FromCell<std::vector<T>> {
  static std::vector<T> get(const Stack& s, size_t i) {
    const auto& list = s.at<CellList<T>>(i);
    return std::vector<T>(list.begin(), list.end());
  }
};
template <class T>
struct FromCell<std::optional<T>> {
  static std::optional<T> get(const Stack& s, size_t i) {
    return s.is_none(i) ? std::optional<T>() : std::optional<T>(FromCell<T>::get(s, i));
  }
};

}  // namespace detail

/// The node of one recorded call over cells. Its DerivativeInfo has a `shape`.
class CellCall final : public OpNode {
 public:
  /// Keeps the arguments from position `first` of the stack on, except tensors.
  CellCall(const DerivativeInfo& info, const Stack& stack, size_t first)
      : CellCall(info, stack, first,
                 std::make_unique<SavedTensor[]>(info.shape->num_tensors() + info.num_tensor_results)) {}

  /// Argument i, of C++ type A, as a formula sees it; compare SavedCall::arg.
  template <class A>
  auto arg(size_t i) const {
    if constexpr (detail::kIsTensor<A>)
      return tensor(i);
    else if constexpr (std::is_same_v<A, TensorList>)
      return unpack_list(lists_[list_place(i)], i);
    else if constexpr (std::is_same_v<A, std::optional<IntArrayRef>>)
      return detail::FromCell<A>::get(args_, i);
    else
      return detail::FromCell<typename SavedArg<A>::Stored>::get(args_, i);
  }
  Scalar scalar(size_t i) const final;
  bool has_scalar(size_t i) const final { return !args_.is_none(i); }

 protected:
  SavedList& saved_list(size_t i) noexcept final { return lists_[list_place(i)]; }

 private:
  CellCall(const DerivativeInfo& info, const Stack& stack, size_t first,
           std::unique_ptr<SavedTensor[]> tensors);
  size_t list_place(size_t i) const noexcept {
    return static_cast<size_t>(std::popcount(shape().lists & ((uint64_t{1} << i) - 1)));
  }

  std::unique_ptr<SavedTensor[]> tensors_;
  Stack args_;
  std::vector<SavedList> lists_;
};

/// The kernel for the key Autograd; its data is the DerivativeInfo.
extern const tenon::detail::BuiltinCode kHistoryOverCells;

}  // namespace tenon::autograd
