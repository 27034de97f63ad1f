#include "tenon/dispatch/operator.h"

#include <fmt/core.h>

#include <bit>
#include <map>
#include <mutex>

#include "tenon/core/error.h"
#include "tenon/core/storage.h"
#include "tenon/dispatch/state.h"

namespace tenon {

const OperatorTraits& traits_of(Tags tags) {
  if (tags.empty()) return kNoTraits;
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<Tags, OperatorTraits>;
  const std::lock_guard lock(mutex);
  return all.try_emplace(tags, OperatorTraits{.tags = tags}).first->second;
}

namespace {

/// As a typed call has them: what the type brings whatever the value is, and what the value does.
DispatchKeySet keys_of_argument(const schema::Argument& argument, const Stack& stack, size_t i) {
  DispatchKeySet keys;
  detail::for_each_base([&]<detail::BaseType b>() {
    using V = detail::ValueType<b>;
    if (argument.type.base != b) return;
    if (!argument.type.list) keys |= V::argument_keys;
    if constexpr (V::brings_keys) {
      if (stack.tag(i) == V::tag) keys |= V::keys(stack.at<typename V::Owned>(i));
      if (stack.tag(i) == V::list_tag) {
        for (const auto& v : stack.at<CellList<typename V::Owned>>(i)) keys |= V::keys(v);
      }
    }
  });
  return keys;
}

/// The arguments that a boxed call writes.
class BoxedWrites : public detail::Writes<detail::kAnyNumber> {
 public:
  BoxedWrites(const OperatorEntry& entry, const schema::FunctionSchema& schema, const Stack& stack,
              size_t first)
      : Writes(entry), entry_(entry), schema_(schema) {
    for (uint64_t m = entry.written.load(std::memory_order_relaxed); m; m &= m - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(m));
      if (i >= schema.arguments.size()) return;
      if (stack.tag(first + i) == CellTag::Tensor) add(stack.at<Tensor>(first + i), i);
      if (stack.tag(first + i) == CellTag::TensorList) add(stack.at<CellList<Tensor>>(first + i).span(), i);
    }
  }
  /// Throws Error{Type} unless each result that the schema says is a written argument is that very tensor.
  void check_results(const Stack& stack) const {
    const size_t first = stack.size() - schema_.returns.size();
    for (size_t i = 0; i < schema_.returns.size(); ++i) {
      const schema::Return& result = schema_.returns[i];
      if (!result.is_write() || !result.type.is_tensor()) continue;
      for (const Write& w : *this) {
        const schema::Argument& declared = schema_.arguments[w.argument];
        if (!declared.type.is_tensor() || declared.alias->before != result.alias->before) continue;
        TENON_CHECK(
            stack.tag(first + i) == CellTag::Tensor && stack.at<Tensor>(first + i).is_same(w.tensor()), Type,
            fmt::format("{}: the kernel's result {} must be its argument `{}`, as the schema says",
                        entry_.full_name(), i, declared.name));
      }
    }
  }

 private:
  const OperatorEntry& entry_;
  const schema::FunctionSchema& schema_;
};

void check_arguments(const OperatorHandle& op, const schema::FunctionSchema& schema, const Stack& stack) {
  TENON_CHECK(stack.size() >= schema.arguments.size(), Type,
              fmt::format("{}: takes {} arguments, the stack has {} values", op.full_name(),
                          schema.arguments.size(), stack.size()));
}

void dispatch_boxed(const OperatorHandle& op, const schema::FunctionSchema& schema, DispatchKeySet keys,
                    bool redispatched, Stack& stack) {
  const Kernel& kernel = detail::find_kernel(op.entry(), keys);
  const size_t below = stack.size() - schema.arguments.size();
  if (!detail::dispatch_trace_enabled.load(std::memory_order_relaxed)) [[likely]] {
    kernel.boxed(kernel, op, keys, stack);
  } else {
    std::vector<detail::TracedArgument> each;
    for (size_t i = below; i < below + schema.arguments.size(); ++i) {
      detail::TracedArgument traced{keys_of_argument(schema.arguments[i - below], stack, i)};
      if (stack.tag(i) == CellTag::Tensor) traced.tensors = {&stack.at<Tensor>(i), 1};
      if (stack.tag(i) == CellTag::TensorList) traced.tensors = stack.at<CellList<Tensor>>(i).span();
      each.push_back(traced);
    }
    const detail::TraceScope scope(op.entry(), keys, redispatched, each);
    kernel.boxed(kernel, op, keys, stack);
  }
  TENON_CHECK(stack.size() == below + schema.returns.size(), Type,
              fmt::format("{}: a boxed kernel left {} results, expected {}", op.full_name(),
                          static_cast<ptrdiff_t>(stack.size()) - static_cast<ptrdiff_t>(below),
                          schema.returns.size()));
}

}  // namespace

namespace detail {

void fallthrough_entry(const Kernel&, const OperatorHandle& op, DispatchKeySet, Stack&) {
  throw_error(ErrorKind::Internal, fmt::format("{}: a fallthrough was called", op.full_name()));
}

void call_boxed(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, void* frame,
                std::span<const Argument> arguments, size_t results, Stack& stack) {
  stack.set_caller(frame);
  for (const Argument& a : arguments) a.type->push(stack, a.value);
  kernel.boxed(kernel, op, keys, stack);
  TENON_CHECK(stack.size() == results, Type,
              fmt::format("a boxed kernel left {} results, expected {}", stack.size(), results));
}

void not_implemented_entry(const Kernel&, const OperatorHandle& op, DispatchKeySet keys, Stack&) {
  missing_kernel(op.entry(), keys);
}

}  // namespace detail

const schema::FunctionSchema& OperatorHandle::schema() const {
  const OperatorRegistrations* known = entry_->registrations.load(std::memory_order_acquire);
  const auto* schema = known ? known->schema.load(std::memory_order_acquire) : nullptr;
  if (schema) [[likely]]
    return *schema;
  Dispatcher& dispatcher = Dispatcher::singleton();
  dispatcher.commit_pending();
  {
    const std::lock_guard lock(dispatcher.state().mutex);
    OperatorRegistrations* op = dispatcher.state().of(*entry_);
    schema = op ? op->declared_schema() : nullptr;
  }
  TENON_CHECK(schema, NotImplemented, fmt::format("Operator '{}' has no declaration", full_name()));
  return *schema;
}

void detail::prepare_write(const OperatorEntry& entry, const Tensor& t) {
  StorageImpl& storage = *t.storage();
  if (!is_read_only(t)) {
    if (storage.is_pending() && storage.work()->has_failed()) (void)storage.address();  // throws
    // Null where no program was ever recorded; then the storage was lost in this moment.
    if (const RecordingHooks* hooks = recording_hooks.load(std::memory_order_acquire))
      hooks->before_write(storage);
    return;
  }
  TENON_CHECK(!storage.read_only(), Runtime,
              fmt::format("{}: a written argument lies in memory that may only be read; clone() it first",
                          entry.full_name()));
  throw_error(
      ErrorKind::Runtime,
      fmt::format("{}: Inplace update to inference tensor outside InferenceMode is not allowed. You can make "
                  "a clone to get a normal tensor before doing inplace update.",
                  entry.full_name()));
}

void OperatorHandle::call_boxed(Stack& stack) const {
  const schema::FunctionSchema& s = schema();
  check_arguments(*this, s, stack);
  const size_t first = stack.size() - s.arguments.size();
  DispatchKeySet keys;
  for (size_t i = 0; i < s.arguments.size(); ++i) keys |= keys_of_argument(s.arguments[i], stack, first + i);
  const BoxedWrites writes(*entry_, s, stack, first);
  writes.around([&] { dispatch_boxed(*this, s, detail::with_thread_keys(keys), false, stack); });
  writes.check_results(stack);
}

void OperatorHandle::redispatch_boxed(DispatchKeySet keys, Stack& stack) const {
  const schema::FunctionSchema& s = schema();
  check_arguments(*this, s, stack);
  dispatch_boxed(*this, s, keys, true, stack);
}

}  // namespace tenon
