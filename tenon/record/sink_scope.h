// SinkScope: takes the calls of a thread, as they would be recorded, in place of its recorder. Used by the
// graph builder, whose nodes are programs of operators on tensors without memory: what a node is made of is
// decided once, by the operators themselves.
#pragma once

#include <cstdint>

#include "tenon/core/small_alloc.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/stack.h"
#include "tenon/graph/ir/operator_info.h"

namespace tenon::record {

/// Where captured calls go: those that a recorder would keep, and those that it would run at once.
class CallSink {
 public:
  virtual ~CallSink() = default;
  /// The operator's arguments are the last values of the stack; its results take their place.
  virtual void call(const graph::OperatorInfo& info, Stack& stack) = 0;
  /// An operator whose body runs now, and whose calls of others come next.
  virtual void enter(const graph::OperatorInfo&, const Stack&) {}
};
/// That of the thread; null outside of captures.
extern thread_local constinit CallSink* call_sink TENON_FAST_TLS;

/// While it lives, the thread's calls go to a sink, also inside a scope that records.
class SinkScope {
 public:
  explicit SinkScope(CallSink& sink);
  ~SinkScope();
  SinkScope(const SinkScope&) = delete;
  SinkScope& operator=(const SinkScope&) = delete;

 private:
  ThreadStateGuard<&ThreadState::included> included_;
  ThreadStateGuard<&ThreadState::excluded> excluded_;
  CallSink* outer_;
  int64_t threshold_;
};

}  // namespace tenon::record
