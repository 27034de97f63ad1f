#include "tenon/dispatch/stub.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "tenon/core/error.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon {
namespace {

constinit std::atomic<StubBase*> last_stub{nullptr};

}  // namespace

bool StubBase::list() noexcept {
  if (std::exchange(listed_, true)) return false;
  next_ = last_stub.load(std::memory_order_relaxed);
  while (
      !last_stub.compare_exchange_weak(next_, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return true;
}

void StubBase::set(Backend backend, detail::AnyFunction f) noexcept {
  __atomic_store_n(&functions_[backend], f, __ATOMIC_RELEASE);
  // The CPU's functions are there before any table is, but for those that libraries have for expressions.
  if (backend == kCpuBackend && !host_changed_) return;
  if (backend == kCpuBackend) host_changed_(*this, of_host_);
  Dispatcher::singleton().invalidate_tables();
}

void StubBase::set_boxed(Backend backend, BoxedStubFunction f, void* data) {
  const detail::BoxedStub* replaced = __atomic_load_n(&boxed_[backend], __ATOMIC_ACQUIRE);
  __atomic_store_n(&boxed_[backend], new detail::BoxedStub{f, data, replaced}, __ATOMIC_RELEASE);
  set(backend, nullptr);
}

void StubBase::set_otherwise(detail::AnyFunction f, bool (*serves)(Backend)) noexcept {
  if (otherwise_) return;  // by a second copy of the library, which may go before this one
  otherwise_serves_ = serves;
  otherwise_ = f;
}

bool StubBase::call_boxed(Device device, Stack& stack, size_t results) const {
  const detail::BoxedStub* boxed = get_boxed(device.backend);
  if (!boxed || !boxed->call(boxed->data, current_stream(device), stack)) return false;
  if (stack.size() != results) wrong_results(stack.size());
  return true;
}

std::string StubBase::signature() const {
  if (!text_.empty() || !types_.valid) return std::string(text_);
  const auto type = [](const detail::StubType& t) {
    return fmt::format("{}{}{}", t.base, t.list ? "[]" : "", t.optional ? "?" : "");
  };
  std::string text = "(";
  for (size_t i = 0; i < types_.count; ++i)
    text += fmt::format("{}{} _{}", i == 0 ? "" : ", ", type(types_.arguments[i]), i);
  return text + ") -> " + (types_.result.base.empty() ? "()" : type(types_.result));
}

bool StubBase::accepts(std::string_view signature) const noexcept {
  return same_types(detail::parse_stub_signature(signature),
                    text_.empty() ? types_ : detail::parse_stub_signature(text_)) &&
         types_.valid;
}

void StubBase::wrong_results(size_t count) const {
  throw_error(ErrorKind::Type,
              fmt::format("Stub '{}': its boxed function left {} values on the stack; its type is {}", name_,
                          count, signature()));
}

std::vector<const StubBase*> StubBase::all() {
  std::vector<const StubBase*> stubs;
  for (const StubBase* s = last_stub.load(std::memory_order_acquire); s; s = s->next_) stubs.push_back(s);
  std::sort(stubs.begin(), stubs.end(), [](const auto* a, const auto* b) { return a->name() < b->name(); });
  return stubs;
}

std::vector<Backend> StubBase::backends() const {
  std::vector<Backend> have;
  for (int b = 0; b < 32; ++b) {
    if (has(static_cast<Backend>(b))) have.push_back(static_cast<Backend>(b));
  }
  return have;
}

void StubBase::missing(Device device) const {
  TENON_CHECK(!has_own(device.backend), NotImplemented,
              fmt::format("Stub '{}': device {} declines this call, and may not fall back", name_,
                          to_string(device)));
  std::string have;
  for (const Backend b : backends()) have += (have.empty() ? "" : ", ") + std::string(backend_name(b));
  throw_error(ErrorKind::NotImplemented,
              fmt::format("Stub '{}' has no function for device {}; it is filled in for: {}", name_,
                          to_string(device), have.empty() ? "no device" : have));
}

}  // namespace tenon
