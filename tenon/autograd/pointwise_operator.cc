#include "tenon/autograd/pointwise_operator.h"

#include <fmt/core.h>

#include <mutex>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/history.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/schema/schema.h"

namespace tenon {

/// Everything about one of these operators; lives as long as the process.
struct detail::PointwiseOperator {
  const PointwiseInfo& info;
  OperatorEntry& entry;
  autograd::CallShape shape;  ///< The tensors, then the numbers.
  std::string node_name;
  /// What its history needs, worked out when it is first recorded: derivatives of derivatives cost nothing
  /// unless a program asks for them.
  std::once_flag once;
  std::vector<autograd::ArgumentUse> uses;
  autograd::DerivativeInfo history;
};

namespace autograd {
namespace {

using tenon::detail::PointwiseOperator;
using Tensors = std::span<const Tensor* const>;
using Scalars = std::span<const Scalar* const>;

CallShape shape_of(const PointwiseInfo& info) {
  const size_t tensors = info.tensor_names.size(), numbers = info.scalar_names.size();
  const uint64_t bits = (uint64_t{1} << tensors) - 1;
  return {bits, 0, 0, ((uint64_t{1} << numbers) - 1) << tensors};
}

/// The node of one recorded call.
class PointwiseCallNode final : public OpNode {
 public:
  PointwiseCallNode(const PointwiseOperator& op, Scalars scalars)
      : OpNode(op.history, op.shape, saved_, op.info.tensor_names.size() + 1),
        tensors_(op.info.tensor_names.size()) {
    for (size_t i = 0; i < scalars.size(); ++i) scalars_[i] = *scalars[i];
  }

  Scalar scalar(size_t i) const final { return scalars_[i - tensors_]; }

 protected:
  SavedList& saved_list(size_t) noexcept final { return no_list_; }

 private:
  size_t tensors_;
  SavedTensor saved_[PointwiseInfo::kMaxTensors + 1];  // the result last
  Scalar scalars_[PointwiseInfo::kMaxScalars];
  SavedList no_list_;
};

void work_out_history(PointwiseOperator& op) {
  op.uses.clear();
  for (size_t i = 0; i < op.info.tensor_names.size(); ++i) {
    ArgumentUse use{.argument = static_cast<uint8_t>(i)};
    try {
      const PointwiseDerivative* d = derivative_of(op.info, static_cast<int>(i));
      if (!d) continue;
      for (const int8_t from : d->tensors) {
        if (from >= 0) use.saves |= uint64_t{1} << from;
        if (from == PointwiseDerivative::kResult) use.saves_results = 1;
      }
    } catch (const Error& e) {
      // It has more operands than a kernel takes: an error for a program that asks for this derivative.
      if (e.kind() != ErrorKind::NotImplemented) throw;
    }
    op.uses.push_back(use);
  }
  op.history = {.entry = &op.entry,
                .node_name = op.node_name.c_str(),
                .uses = op.uses,
                .backward = &pointwise_backward,
                .data = &op.info};
}

void enter_pointwise(const Kernel&, const OperatorHandle&, DispatchKeySet, Stack&);
void enter_history(const Kernel&, const OperatorHandle&, DispatchKeySet, Stack&);
Tensor record(PointwiseOperator& op, DispatchKeySet keys, Tensors tensors, Scalars scalars);

/// Continues a call whose tables hold other kernels than ours, or none yet, or that is traced.
[[gnu::noinline]] Tensor call_boxed(const PointwiseOperator& op, DispatchKeySet keys, bool redispatched,
                                    Tensors tensors, Scalars scalars) {
  Stack stack;
  for (const Tensor* t : tensors) stack.push(*t);
  for (const Scalar* s : scalars) stack.push(*s);
  const OperatorHandle handle(op.entry);
  if (redispatched)
    handle.redispatch_boxed(keys, stack);
  else
    handle.call_boxed(stack);
  return stack.pop<Tensor>();
}

Tensor dispatch(PointwiseOperator& op, DispatchKeySet keys, bool redispatched, Tensors tensors,
                Scalars scalars) {
  // What a boxed kernel would unpack is at hand: our own are called without a stack.
  const Kernel& kernel = tenon::detail::column_of(op.entry, keys).lookup(keys);
  if (kernel.boxed == &enter_pointwise) [[likely]]
    return pointwise(op.info, tensors, scalars);
  if (kernel.boxed == &enter_history) return record(op, keys, tensors, scalars);
  return call_boxed(op, keys, redispatched, tensors, scalars);
}

Tensor call(PointwiseOperator& op, Tensors tensors, Scalars scalars) {
  DispatchKeySet keys;
  for (const Tensor* t : tensors) keys |= t->key_set();
  return dispatch(op, tenon::detail::with_thread_keys(keys), false, tensors, scalars);
}

Tensor record(PointwiseOperator& op, DispatchKeySet keys, Tensors tensors, Scalars scalars) {
  const DispatchKeySet rest = keys.below(Functionality::Autograd);
  bool wanted = false;
  for (const Tensor* t : tensors) wanted |= t->defined() && requires_grad(*t->impl());
  if (!wanted || !thread_state.grad_enabled) {
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    return dispatch(op, rest, true, tensors, scalars);
  }
  for (const Tensor* t : tensors) {
    TENON_CHECK(op.info.holomorphic || !t->defined() || !t->is_complex(), NotImplemented,
                fmt::format("{}: no derivative on complex tensors of an expression with abs, real, imag, "
                            "conj, angle or sgn; call these as operators",
                            op.info.name));
  }
  std::call_once(op.once, [&] { work_out_history(op); });
  const CallTensors arguments{op.shape, tensors.data(), nullptr};
  HistoryWriter writer(op.history, arguments);
  if (writer.recording()) {
    writer.begin(IntrusivePtr<OpNode>::adopt(new PointwiseCallNode(op, scalars)), __builtin_frame_address(0));
  }
  const ExcludeDispatchKeyGuard below(kAutogradKeys);
  Tensor result = dispatch(op, rest, true, tensors, scalars);
  Tensor* const results[] = {&result};
  if (writer.recording()) writer.finish(results, false);
  return result;
}

/// A boxed call's arguments, and where its result goes.
class BoxedCall {
 public:
  BoxedCall(const PointwiseInfo& info, Stack& stack)
      : stack_(stack),
        num_tensors_(info.tensor_names.size()),
        num_scalars_(info.scalar_names.size()),
        first_(stack.size() - num_tensors_ - num_scalars_) {
    for (size_t i = 0; i < num_tensors_; ++i) tensors_[i] = &stack.at<Tensor>(first_ + i);
    for (size_t i = 0; i < num_scalars_; ++i) scalars_[i] = &stack.at<Scalar>(first_ + num_tensors_ + i);
  }

  Tensors tensors() const noexcept { return {tensors_, num_tensors_}; }
  Scalars scalars() const noexcept { return {scalars_, num_scalars_}; }
  void finish(Tensor result) {
    stack_.push(std::move(result));
    stack_.erase(first_, num_tensors_ + num_scalars_);
  }

 private:
  Stack& stack_;
  size_t num_tensors_, num_scalars_, first_;
  const Tensor* tensors_[PointwiseInfo::kMaxTensors];
  const Scalar* scalars_[PointwiseInfo::kMaxScalars];
};

void enter_pointwise(const Kernel& kernel, const OperatorHandle&, DispatchKeySet, Stack& stack) {
  const auto& info = *static_cast<const PointwiseInfo*>(kernel.data);
  BoxedCall call(info, stack);
  call.finish(pointwise(info, call.tensors(), call.scalars()));
}

void enter_history(const Kernel& kernel, const OperatorHandle&, DispatchKeySet keys, Stack& stack) {
  auto& op = *static_cast<PointwiseOperator*>(const_cast<void*>(kernel.data));
  BoxedCall call(op.info, stack);
  call.finish(record(op, keys, call.tensors(), call.scalars()));
}

std::string schema_text(std::string_view name, const std::string& overload, const PointwiseInfo& info) {
  std::string arguments;
  const auto add = [&](const char* type, const char* argument) {
    arguments += fmt::format("{}{} {}", arguments.empty() ? "" : ", ", type, argument);
  };
  for (const char* t : info.tensor_names) add("Tensor", t);
  for (const char* s : info.scalar_names) add("Scalar", s);
  return fmt::format("{}.{}({}) -> Tensor", name, overload, arguments);
}

/// Declares the operator `name`.`overload`, and registers its kernels. Where that name is declared already,
/// the next free one.
PointwiseOperator& declare(const PointwiseInfo& info, const std::string& name, std::string overload) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  const std::string wanted = overload;
  for (int i = 2; dispatcher.find_op(name, overload); ++i) overload = fmt::format("{}_{}", wanted, i);
  const auto where = SourceLocation::here();
  dispatcher.define(schema::parse_schema(schema_text(name, overload, info)), where, Dispatcher::Listed::No,
                    {Tag::pointwise});
  OperatorEntry& entry = dispatcher.find_op(name, overload)->entry();
  auto* op = new PointwiseOperator{.info = info,
                                   .entry = entry,
                                   .shape = shape_of(info),
                                   .node_name = fmt::format("{}Backward0", info.name),
                                   .once = {},
                                   .uses = {},
                                   .history = {}};
  dispatcher.implement(name, overload, kCompositeDense,
                       CppFunction::from_parts({nullptr, &enter_pointwise, &info}, nullptr)
                           .serving({&tenon::detail::pointwise_serves, nullptr}),
                       where);
  dispatcher.implement(name, overload, kAutogradAlias,
                       info.result == ResultRule::Bool
                           ? CppFunction::make_fallthrough()
                           : CppFunction::from_parts({nullptr, &enter_history, op}, nullptr),
                       where);
  info.op.store(op, std::memory_order_release);
  return *op;
}

std::mutex& declaring() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

[[gnu::noinline]] PointwiseOperator& declare_derivative(const PointwiseInfo& info,
                                                        const DerivativeName& from) {
  const std::lock_guard lock(declaring());
  if (PointwiseOperator* op = info.op.load(std::memory_order_acquire)) return *op;
  const PointwiseOperator* forward = from.forward.op.load(std::memory_order_acquire);
  std::string name = forward ? std::string(forward->entry.name)
                             : fmt::format("{}::{}", tenon::detail::kBuiltinNamespace, from.forward.name);
  std::string overload(forward ? forward->entry.overload : from.overload);
  if (!overload.empty()) overload += '_';
  return declare(info, name + "_backward", overload + from.forward.tensor_names[from.operand]);
}

[[gnu::noinline]] PointwiseOperator& declare_expression(const PointwiseInfo& info) {
  static int count = 0;
  const std::lock_guard lock(declaring());
  if (PointwiseOperator* op = info.op.load(std::memory_order_acquire)) return *op;
  return declare(info, fmt::format("{}::{}", tenon::detail::kBuiltinNamespace, info.name),
                 fmt::format("expr{}", ++count));
}

}  // namespace

Tensor call_derivative(const PointwiseInfo& derivative, const DerivativeName& name, Tensors tensors,
                       Scalars scalars) {
  PointwiseOperator* op = derivative.op.load(std::memory_order_acquire);
  if (!op) [[unlikely]]
    op = &declare_derivative(derivative, name);
  return call(*op, tensors, scalars);
}

Tensor call_expression(const PointwiseInfo& expression, Tensors tensors, Scalars scalars) {
  PointwiseOperator* op = expression.op.load(std::memory_order_acquire);
  if (!op) [[unlikely]]
    op = &declare_expression(expression);
  return call(*op, tensors, scalars);
}

}  // namespace autograd
}  // namespace tenon
