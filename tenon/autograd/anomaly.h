// Anomaly mode: nodes remember which line made their forward call, and a backward pass that fails or computes
// NaN names that line. Slow; meant for finding a mistake. Used by users, nodes, the engine and bindings.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace tenon {
class Node;
}

namespace tenon::autograd {

/// Switches anomaly mode for the process. With `check_nan`, a node that computes NaN throws Error{Runtime}.
void set_anomaly_enabled(bool enabled, bool check_nan = true) noexcept;

namespace detail {
extern std::atomic<uint8_t> anomaly;
inline constexpr uint8_t kAnomaly = 1, kCheckNan = 2;
}  // namespace detail

inline bool is_anomaly_enabled() noexcept { return detail::anomaly.load(std::memory_order_relaxed) != 0; }
inline bool is_anomaly_check_nan_enabled() noexcept {
  return detail::anomaly.load(std::memory_order_relaxed) & detail::kCheckNan;
}

/// Anomaly mode for a scope.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true) noexcept
      : enabled_(is_anomaly_enabled()), check_nan_(is_anomaly_check_nan_enabled()) {
    set_anomaly_enabled(true, check_nan);
  }
  ~DetectAnomalyGuard() { set_anomaly_enabled(enabled_, check_nan_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_, check_nan_;
};

/// The line that made a node's forward call.
struct ForwardTrace {
  std::string text;
  /// For a node that was recorded during a backward pass: the node that was running, and its trace.
  std::string parent_name;
  std::shared_ptr<const ForwardTrace> parent;
};

/// What a language binding provides.
struct AnomalyBinding {
  /// Returns the current stack of calls as text. Must not throw.
  std::string (*trace)() = nullptr;
  /// Reports that a node failed; write_diagnostic unless replaced.
  void (*warn)(const std::string& message) = nullptr;
};
void set_anomaly_binding(const AnomalyBinding& binding) noexcept;

// For nodes and the engine.

std::shared_ptr<const ForwardTrace> trace_forward() noexcept;
/// Reports the line that made the forward call of a failed node.
void report_anomaly(const Node& node);

/// Sets, for a scope, the node that this thread runs, so that nodes recorded meanwhile know their parent.
class RunningNode {
 public:
  explicit RunningNode(const Node* node) noexcept;
  ~RunningNode();
  RunningNode(const RunningNode&) = delete;

 private:
  const Node* outer_;
};

}  // namespace tenon::autograd
