// What libraries fill stubs in with, and take back when they go.
//
// Static initialisers and destructors run under the loader's lock, which therefore comes before the list's;
// the dispatcher's own lock comes after it.
#include <mutex>

#include "tenon/core/recording.h"
#include "tenon/dispatch/stub.h"

namespace tenon::detail {
namespace {

/// Trivially destructible: registrations of other libraries outlive this file's statics.
struct RegistrationList {
  std::mutex mutex;
  StubRegistration* first = nullptr;
  StubRegistration* last = nullptr;
};
constinit RegistrationList g_list;

// What waits runs with the functions that were there when it was called; it may take any lock.
std::unique_lock<std::mutex> locked_for_change() {
  note_switch();
  return std::unique_lock(g_list.mutex);
}

}  // namespace

// Locked before the first member is written: another registration may have been at the same address, which
// ThreadSanitizer remembers.
StubRegistration::StubRegistration(StubBase& stub, Backend backend, AnyFunction f) noexcept
    : StubRegistration(locked_for_change(), stub, backend, f) {}

StubRegistration::StubRegistration(const std::unique_lock<std::mutex>&, StubBase& stub, Backend backend,
                                   AnyFunction f) noexcept
    : stub_(stub), backend_(backend), function_(f) {
  fill_in();
}

StubRegistration::~StubRegistration() {
  const auto lock = locked_for_change();
  take_back();
  (previous_ ? previous_->next_ : g_list.first) = next_;
  (next_ ? next_->previous_ : g_list.last) = previous_;
}

void StubRegistration::fill_in() noexcept {
  replaced_ = stub_.get(backend_);
  stub_.set(backend_, function_);
  filled_in_ = true;
  previous_ = g_list.last;
  next_ = nullptr;
  (previous_ ? previous_->next_ : g_list.first) = this;
  g_list.last = this;
}

void StubRegistration::take_back() noexcept {
  if (!filled_in_) return;
  filled_in_ = false;
  for (StubRegistration* newer = next_; newer; newer = newer->next_) {
    if (!newer->filled_in_ || &newer->stub_ != &stub_ || newer->backend_ != backend_) continue;
    newer->replaced_ = replaced_;
    return;
  }
  // Another function may have been set directly.
  if (stub_.get(backend_) == function_) stub_.set(backend_, replaced_);
}

std::vector<const void*> StubRegistration::all() {
  const std::lock_guard lock(g_list.mutex);
  std::vector<const void*> addresses;
  for (const StubRegistration* r = g_list.first; r; r = r->next_) addresses.push_back(r);
  return addresses;
}

bool StubRegistration::set(const void* registration, bool filled_in) noexcept {
  const auto lock = locked_for_change();
  StubRegistration* r = g_list.first;
  while (r && r != registration) r = r->next_;
  if (!r || r->filled_in_ == filled_in) return false;
  if (!filled_in) {
    r->take_back();
    return true;
  }
  (r->previous_ ? r->previous_->next_ : g_list.first) = r->next_;
  (r->next_ ? r->next_->previous_ : g_list.last) = r->previous_;
  r->fill_in();
  return true;
}

}  // namespace tenon::detail
