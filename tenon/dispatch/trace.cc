// The dispatch trace: what it prints and records, and the sink through which all diagnostics of the library
// are printed.
#include "tenon/dispatch/trace.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

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

// What traced calls do; the bits of `wanted`.
constexpr uint32_t kPrint = 1, kShapes = 2, kTimes = 4, kRecord = 8;

uint32_t asked_for_by_environment() {
  const char* value = std::getenv("TENON_SHOW_DISPATCH_TRACE");
  const std::string_view text = value ? value : "";
  if (text.empty() || text == "0") return 0;
  return kPrint | (text.find("shapes") != text.npos ? kShapes : 0) |
         (text.find("times") != text.npos ? kTimes : 0);
}

constinit std::atomic<uint32_t> wanted{0};

/// Sets and clears bits of `wanted`.
void want(uint32_t set, uint32_t clear) noexcept {
  // Calls look at the switch only where their table has no kernel, so that the trace costs nothing while it
  // is off.
  Dispatcher::State& state = Dispatcher::singleton().state();
  const std::lock_guard lock(state.mutex);
  const uint32_t now = (wanted.load(std::memory_order_relaxed) & ~clear) | set;
  wanted.store(now, std::memory_order_relaxed);
  detail::dispatch_trace_enabled.store(now != 0, std::memory_order_relaxed);
  state.invalidate_all();
}

/// The key that a call with this set goes to.
DispatchKey highest_key(DispatchKeySet keys) {
  const Functionality f = keys.functionality();
  return is_per_backend(f) ? DispatchKey(f, keys.backend()) : DispatchKey(f);
}

int64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::string shapes_of(std::span<const detail::TracedArgument> arguments) {
  std::string text;
  for (const detail::TracedArgument& a : arguments) {
    for (const Tensor& t : a.tensors) {
      if (!t.defined()) continue;
      if (!text.empty()) text += ", ";
      text += to_string(t.sizes());
    }
  }
  return text;
}

/// The stream on which a kernel for `key` queues its work; null for the host's.
std::optional<Stream> stream_of(DispatchKey key, std::span<const detail::TracedArgument> arguments) {
  if (key.functionality != Functionality::Dense || key.backend == kCpuBackend || key.backend == kMetaBackend)
    return std::nullopt;
  Device device{key.backend};
  for (const detail::TracedArgument& a : arguments) {
    for (const Tensor& t : a.tensors) {
      if (t.defined() && t.device().backend == key.backend) device = t.device();
    }
  }
  return current_stream(device);
}

}  // namespace

struct TraceRecording::State {
  std::vector<TraceEvent> events;
};

namespace {

struct Recordings {
  std::mutex mutex;
  std::vector<std::vector<TraceEvent>*> open;
};
Recordings& recordings() {
  static Recordings& all = *new Recordings;  // calls may be traced while statics are destroyed
  return all;
}

}  // namespace

namespace detail {

constinit std::atomic<bool> dispatch_trace_enabled{false};

namespace {
[[maybe_unused]] const bool traced_from_start = [] {
  wanted.store(asked_for_by_environment());
  dispatch_trace_enabled.store(wanted.load() != 0);
  return true;
}();
}  // namespace

struct TraceScope::Open {
  uint32_t wanted = 0;
  int exceptions = 0;
  TraceEvent event;
};

TraceScope::TraceScope(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
                       std::span<const TracedArgument> arguments) {
  if (dispatch_trace_enabled.load(std::memory_order_relaxed)) begin(entry, keys, redispatch, arguments);
}

TraceScope::TraceScope(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
                       std::span<const Argument> arguments) {
  if (!dispatch_trace_enabled.load(std::memory_order_relaxed)) return;
  std::vector<TracedArgument> traced;
  for (const Argument& a : arguments) traced.push_back({a.type->keys(a.value), a.type->tensors(a.value)});
  begin(entry, keys, redispatch, traced);
}

void TraceScope::begin(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
                       std::span<const TracedArgument> arguments) {
  const uint32_t wants = wanted.load(std::memory_order_relaxed);
  const DispatchKey key = highest_key(DispatchKeySet(keys.bits() & compute_column(entry, keys).mask));
  const uint16_t depth = thread_state.trace_depth;
  if (wants & kPrint) {
    std::string each;
    for (const TracedArgument& a : arguments) {
      if (a.keys.empty()) continue;
      if (!each.empty()) each += ", ";
      each += key_name(highest_key(a.keys));
    }
    std::string line =
        fmt::format("{:{}}[{}] op=[{}], key=[{}], args=[{}]", "", 1 + 2 * depth,
                    redispatch ? "redispatch" : "call", entry.full_name(), key_name(key), each);
    if (wants & kShapes) line += fmt::format(", shapes=[{}]", shapes_of(arguments));
    write_diagnostic(line);
  }
  if (wants & (kTimes | kRecord)) {
    open_ = std::make_unique<Open>();
    open_->wanted = wants;
    open_->exceptions = std::uncaught_exceptions();
    TraceEvent& event = open_->event;
    event.op = entry.full_name();
    event.key = key_name(key);
    event.redispatch = redispatch;
    event.depth = depth;
    event.thread = ::syscall(SYS_gettid);
    event.stream = stream_of(key, arguments);
    for (const TracedArgument& a : arguments) {
      for (const Tensor& t : a.tensors) {
        if (!t.defined()) continue;
        event.shapes.push_back(t.sizes().to_dims());
        event.dtypes.push_back(t.dtype());
      }
    }
    event.begin_ns = now_ns();
  }
  ++thread_state.trace_depth;
  traced_ = true;
}

TraceScope::~TraceScope() {
  if (!traced_) return;
  --thread_state.trace_depth;
  if (!open_) return;
  TraceEvent& event = open_->event;
  event.end_ns = now_ns();
  event.failed = std::uncaught_exceptions() > open_->exceptions;
  if (open_->wanted & kTimes) {
    write_diagnostic(fmt::format("{:{}}[{}] op=[{}], us=[{:.1f}]", "", 1 + 2 * event.depth,
                                 event.failed ? "throw" : "return", event.op,
                                 static_cast<double>(event.end_ns - event.begin_ns) / 1e3));
  }
  if (open_->wanted & kRecord) {
    Recordings& all = recordings();
    const std::lock_guard lock(all.mutex);
    for (std::vector<TraceEvent>* events : all.open) events->push_back(event);
  }
}

}  // namespace detail

void set_dispatch_trace(bool on) noexcept { want(on ? kPrint : 0, kPrint | kShapes | kTimes); }

void set_dispatch_trace(TraceLines lines) noexcept {
  want(kPrint | (lines.shapes ? kShapes : 0) | (lines.times ? kTimes : 0), kShapes | kTimes);
}

TraceRecording::TraceRecording() : state_(std::make_unique<State>()) {
  {
    Recordings& all = recordings();
    const std::lock_guard lock(all.mutex);
    all.open.push_back(&state_->events);
  }
  want(kRecord, 0);
}

TraceRecording::~TraceRecording() { stop(); }

std::vector<TraceEvent> TraceRecording::stop() {
  if (!state_) return {};
  bool last = false;
  {
    Recordings& all = recordings();
    const std::lock_guard lock(all.mutex);
    std::erase(all.open, &state_->events);
    last = all.open.empty();
  }
  if (last) want(0, kRecord);
  std::vector<TraceEvent> events = std::move(state_->events);
  state_.reset();
  // A call ends after those that it makes.
  std::stable_sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return std::pair(a.begin_ns, a.depth) < std::pair(b.begin_ns, b.depth);
  });
  return events;
}

void set_diagnostic_sink(DiagnosticSink replacement) noexcept {
  sink.store(replacement ? replacement : &to_standard_error, std::memory_order_release);
}

void write_diagnostic(std::string_view line) { sink.load(std::memory_order_acquire)(line); }

}  // namespace tenon
