#include "tenon/autograd/cell_history.h"

#include "tenon/autograd/history.h"

namespace tenon::autograd {

CellCall::CellCall(const DerivativeInfo& info, const Stack& stack, size_t first,
                   std::unique_ptr<SavedTensor[]> tensors)
    : OpNode(info, *info.shape, tensors.get(), info.shape->num_tensors() + info.num_tensor_results),
      tensors_(std::move(tensors)),
      lists_(static_cast<size_t>(std::popcount(info.shape->lists))) {
  const uint64_t kept_by_node = info.shape->tensors | info.shape->lists;
  for (size_t i = first; i < stack.size(); ++i) {
    bool saved = !(kept_by_node >> (i - first) & 1);
    tenon::detail::for_each_base([&]<tenon::detail::BaseType b>() {
      using V = tenon::detail::ValueType<b>;
      if (stack.tag(i) == V::tag) saved &= V::saved;
    });
    if (!saved)
      args_.push_none();
    else
      args_.push_copy(stack, i);
  }
}

Scalar CellCall::scalar(size_t i) const {
  switch (args_.tag(i)) {
    case CellTag::Int:
      return Scalar(args_.at<int64_t>(i));
    case CellTag::Float:
      return Scalar(args_.at<double>(i));
    case CellTag::Bool:
      return Scalar(args_.at<bool>(i));
    case CellTag::Scalar:
      return args_.at<Scalar>(i);
    default:
      return {};
  }
}

namespace {

/// The tensors of a call on a stack. Copies of the handles, because the call that follows takes its arguments
/// away.
class StackTensors {
 public:
  StackTensors(const CallShape& shape, const Stack& stack, size_t first) : shape_(shape) {
    for (size_t i = first; i < stack.size(); ++i) {
      if (shape.tensors >> (i - first) & 1) {
        tensors_.push_back(stack.is_none(i) ? Tensor() : stack.at<Tensor>(i));
      } else if (shape.lists >> (i - first) & 1) {
        const auto& list = stack.at<CellList<Tensor>>(i);
        kept_lists_.emplace_back(list.begin(), list.end());
      }
    }
    for (const Tensor& t : tensors_) pointers_.push_back(&t);
    for (const auto& list : kept_lists_) lists_.push_back(list);
  }
  StackTensors(const StackTensors&) = delete;

  CallTensors call() const noexcept { return {shape_, pointers_.data(), lists_.data()}; }

 private:
  const CallShape& shape_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<Tensor>> kept_lists_;
  std::vector<const Tensor*> pointers_;
  std::vector<TensorList> lists_;
};

void write_history(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const auto& info = *static_cast<const DerivativeInfo*>(kernel.data);
  const size_t first = stack.size() - info.num_arguments;
  const StackTensors tensors(*info.shape, stack, first);
  const CallTensors call = tensors.call();
  HistoryWriter writer(info, call);
  if (writer.recording()) {
    void* const caller = stack.caller();
    writer.begin(IntrusivePtr<OpNode>::adopt(new CellCall(info, stack, first)),
                 caller ? caller : __builtin_frame_address(0));
  }
  // Operators that the kernel calls on the same tensors are its own business.
  const ExcludeDispatchKeyGuard below(kAutogradKeys);
  op.redispatch_boxed(keys.below(Functionality::Autograd), stack);
  std::vector<Tensor*> results;
  const size_t count = stack.size() - first;
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack.tag(i) == CellTag::Tensor) results.push_back(&stack.at<Tensor>(i));
    if (stack.tag(i) == CellTag::TensorList) {
      for (Tensor& t : stack.at<CellList<Tensor>>(i)) results.push_back(&t);
    }
  }
  const bool several = !(count == 1 && stack.tag(first) == CellTag::Tensor);
  const bool view = !several && results[0]->defined() && results[0]->is_view();
  if (writer.recording())
    writer.finish(results, several);
  else if (info.is_view || view)
    writer.finish_unrecorded(results, several);
}

}  // namespace

const tenon::detail::BuiltinCode kHistoryOverCells{{nullptr, &write_history, nullptr}, nullptr};

}  // namespace tenon::autograd
