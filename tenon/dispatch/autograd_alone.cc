#include "tenon/dispatch/autograd_alone.h"

#include <string>

#include "tenon/core/thread_state.h"

namespace tenon::detail {
namespace {

/// The arguments of a call: which tensors, and which numbers.
std::string identity(const Stack& stack, size_t first) {
  std::string text;
  const auto append = [&](const auto& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (size_t i = first; i < stack.size(); ++i) {
    append(stack.tag(i));
    if (stack.tag(i) == CellTag::Tensor) append(stack.at<Tensor>(i));
    if (stack.tag(i) == CellTag::Int) append(stack.at<int64_t>(i));
    if (stack.tag(i) == CellTag::Float) append(stack.at<double>(i));
    if (stack.tag(i) == CellTag::Bool) append(stack.at<bool>(i));
    if (stack.tag(i) == CellTag::TensorList)
      for (const Tensor& t : stack.at<CellList<Tensor>>(i)) append(t);
    if (stack.tag(i) == CellTag::IntList)
      for (const int64_t n : stack.at<CellList<int64_t>>(i)) append(n);
  }
  return text;
}

/// The calls of this thread that went from a dense key to Autograd.
struct Frame {
  Frame(const OperatorEntry& entry, std::string arguments)
      : entry(entry), arguments(std::move(arguments)), outer(innermost) {
    innermost = this;
  }
  ~Frame() { innermost = outer; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const OperatorEntry& entry;
  const std::string arguments;
  const Frame* const outer;
  static constinit thread_local const Frame* innermost;
};
constinit thread_local const Frame* Frame::innermost = nullptr;

/// Whether the call came from its own kernel: with the very arguments that this one is busy with.
bool is_redispatched(const OperatorEntry& entry, const std::string& arguments) {
  for (const Frame* f = Frame::innermost; f; f = f->outer) {
    if (&f->entry == &entry && f->arguments == arguments) return true;
  }
  return false;
}

void call_below_autograd(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  Kernel kernel;
  {
    Dispatcher::State& state = Dispatcher::singleton().state();
    const std::lock_guard lock(state.mutex);
    const OperatorRegistrations* const known = state.of(op.entry());
    const DispatchKey key(Functionality::Dense, keys.backend());
    const KernelRecord* const fallback = known ? fallback_for(state, *known, key) : nullptr;
    if (fallback) kernel = fallback->kernel;
  }
  if (!kernel.valid()) missing_kernel(op.entry(), keys);
  kernel.boxed(kernel, op, keys, stack);
}

void call_autograd_alone(const Kernel&, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const DispatchKeySet autograd(Functionality::Autograd);
  std::string arguments = identity(stack, stack.size() - op.schema().arguments.size());
  if ((thread_state.excluded.bits() & autograd.bits()) != 0 || is_redispatched(op.entry(), arguments))
    return call_below_autograd(op, keys, stack);
  const Frame frame(op.entry(), std::move(arguments));
  op.redispatch_boxed(keys | autograd, stack);
}

bool computes(const KernelRecord& record) {
  return !record.function.is_fallthrough() && !record.function.is_not_implemented();
}

}  // namespace

constinit const Kernel kAutogradAlone{nullptr, &call_autograd_alone, nullptr};

const KernelRecord* autograd_alone(const OperatorRegistrations& op, Backend backend) {
  const KernelRecord* alias = nullptr;
  bool others = false;
  for (const KernelRecord& r : op.kernels) {
    if (r.key == DispatchKey(Functionality::Autograd, backend)) return computes(r) ? &r : nullptr;
    if (r.key == kAutogradAlias && !alias) alias = &r;
    others |= r.key != kAutogradAlias;
  }
  return alias && !others && computes(*alias) ? alias : nullptr;
}

}  // namespace tenon::detail
