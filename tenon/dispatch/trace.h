// The dispatch trace: every call, printed as a line, or recorded with its times, shapes and stream, for
// Chrome's and Perfetto's viewers. Used by programs and tools that ask what a program calls. Calls meet it in
// operator.h, and pay nothing while it is off.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/stream.h"
#include "tenon/core/tensor.h"

namespace tenon {

/// What a printed trace shows besides operator, key and the keys of arguments.
struct TraceLines {
  bool shapes = false;  ///< The shape of each tensor: `shapes=[[2, 3], []]`.
  bool times = false;   ///< A line for the end of each call: `[return] op=[aten::add.Tensor], us=[1.5]`.
};

/// Switches printing on or off for all threads; TENON_SHOW_DISPATCH_TRACE=1 switches it on from the start,
/// and TENON_SHOW_DISPATCH_TRACE=shapes,times with what it names. Lines go to the diagnostic sink.
void set_dispatch_trace(bool on) noexcept;
void set_dispatch_trace(TraceLines lines) noexcept;

/// Receives the diagnostics that a user switched on; prints to standard error unless replaced.
using DiagnosticSink = void (*)(std::string_view line);
void set_diagnostic_sink(DiagnosticSink sink) noexcept;
void write_diagnostic(std::string_view line);

/// One call, from its start to its end. Times are of the steady clock.
struct TraceEvent {
  std::string op;   ///< "aten::add.Tensor"
  std::string key;  ///< The key whose kernel was called.
  bool redispatch = false;
  bool failed = false;  ///< An exception left it.
  uint16_t depth = 0;   ///< How many calls of this thread it is inside of.
  int64_t thread = 0;   ///< As the system numbers threads.
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<Dims> shapes;  ///< Of the tensors among the arguments.
  std::vector<DType> dtypes;
  std::optional<Stream> stream;  ///< Where a device's kernel queues its work.
};

/// Records the calls of all threads, from its construction until `stop` or its destruction. There may be
/// several at a time. A call that has begun before is not in it, nor is one that ends after.
class TraceRecording {
 public:
  TraceRecording();
  ~TraceRecording();
  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;

  /// Ends the recording, and returns what was recorded, by begin.
  std::vector<TraceEvent> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The events as JSON in Chrome's Trace Event Format, which chrome://tracing and ui.perfetto.dev open. A call
/// is a complete event ("X") of its thread; one that a device's kernel serves is also an instant ("i") on a
/// track of its stream, at the time at which it was queued.
std::string chrome_trace(std::span<const TraceEvent> events);

}  // namespace tenon
