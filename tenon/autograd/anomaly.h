// Anomaly mode: nodes remember where their forward call was made, and a backward pass that fails, or computes
// NaN, names that place. Slow; for looking for a fault. Used by users, nodes, the engine and bindings.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace tenon {
class Node;
}

namespace tenon::autograd {

/// For the whole process. `check_nan`: a node that computes NaN raises Error{Runtime}.
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

/// Where a node's forward call was made.
struct ForwardTrace {
  std::string text;
  /// For a node that a backward pass recorded: the node that was running, and its own trace.
  std::string parent_name;
  std::shared_ptr<const ForwardTrace> parent;
};

/// What a language binding adds.
struct AnomalyBinding {
  /// The calls that lead to here, as text. May throw nothing.
  std::string (*trace)() = nullptr;
  /// Says that a node failed; write_diagnostic unless replaced.
  void (*warn)(const std::string& message) = nullptr;
};
void set_anomaly_binding(const AnomalyBinding& binding) noexcept;

// For nodes and the engine.

std::shared_ptr<const ForwardTrace> trace_forward() noexcept;
/// Says where the forward call of a node that failed was made.
void report_anomaly(const Node& node);

/// The node that this thread runs, for the nodes that its backward records.
class RunningNode {
 public:
  explicit RunningNode(const Node* node) noexcept;
  ~RunningNode();
  RunningNode(const RunningNode&) = delete;

 private:
  const Node* outer_;
};

}  // namespace tenon::autograd
