// The dispatch trace, and the sink through which all diagnostics of the library are printed.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tenon/core/device.h"
#include "tenon/dispatch/state.h"

namespace tenon {
namespace {

void to_standard_error(std::string_view line) {
  // One write a line, so that threads do not mix within one.
  std::string text(line);
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

constinit std::atomic<DiagnosticSink> sink{&to_standard_error};

/// The key that a call with this set goes to.
std::string highest_key(DispatchKeySet keys) {
  const Functionality f = keys.functionality();
  return key_name(is_per_backend(f) ? DispatchKey(f, keys.backend()) : DispatchKey(f));
}

bool asked_for_by_environment() {
  const char* value = std::getenv("TENON_SHOW_DISPATCH_TRACE");
  return value && *value && std::strcmp(value, "0") != 0;
}

}  // namespace

namespace detail {

constinit std::atomic<bool> dispatch_trace_enabled{false};

namespace {
[[maybe_unused]] const bool traced_from_start =
    (dispatch_trace_enabled.store(asked_for_by_environment()), true);
}  // namespace

TraceScope::TraceScope(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
                       const DispatchKeySet* arguments, size_t count) {
  const DispatchKeySet live(keys.bits() & compute_column(entry, keys).mask);
  std::string each;
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].empty()) continue;
    if (!each.empty()) each += ", ";
    each += highest_key(arguments[i]);
  }
  const size_t indent = 1 + size_t{2} * thread_state.trace_depth;
  write_diagnostic(fmt::format("{:{}}[{}] op=[{}], key=[{}], args=[{}]", "", indent,
                               redispatch ? "redispatch" : "call", entry.full_name(), highest_key(live),
                               each));
  ++thread_state.trace_depth;
}

}  // namespace detail

void set_dispatch_trace(bool on) noexcept {
  // Calls look at the switch only where their table has no kernel, so that the trace costs nothing while it
  // is off.
  Dispatcher::State& state = Dispatcher::singleton().state();
  const std::lock_guard lock(state.mutex);
  detail::dispatch_trace_enabled.store(on, std::memory_order_relaxed);
  state.invalidate_all();
}

void set_diagnostic_sink(DiagnosticSink replacement) noexcept {
  sink.store(replacement ? replacement : &to_standard_error, std::memory_order_release);
}

void write_diagnostic(std::string_view line) { sink.load(std::memory_order_acquire)(line); }

}  // namespace tenon
