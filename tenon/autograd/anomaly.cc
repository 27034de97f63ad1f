#include "tenon/autograd/anomaly.h"

#include <fmt/core.h>

#include "tenon/autograd/node.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::autograd {
namespace {

AnomalyBinding& binding() noexcept {
  static AnomalyBinding value;
  return value;
}

thread_local const Node* running = nullptr;

}  // namespace

namespace detail {
std::atomic<uint8_t> anomaly{0};
}

void set_anomaly_enabled(bool enabled, bool check_nan) noexcept {
  const uint8_t mode = (enabled ? detail::kAnomaly : 0) | (enabled && check_nan ? detail::kCheckNan : 0);
  detail::anomaly.store(mode, std::memory_order_relaxed);
}

void set_anomaly_binding(const AnomalyBinding& value) noexcept { binding() = value; }

std::shared_ptr<const ForwardTrace> trace_forward() noexcept {
  try {
    auto trace = std::make_shared<ForwardTrace>();
    if (binding().trace) trace->text = binding().trace();
    if (running) {
      trace->parent_name = running->name();
      trace->parent = running->trace();
    }
    return trace;
  } catch (...) {
    return nullptr;  // a diagnostic must not be what fails
  }
}

void report_anomaly(const Node& node) {
  std::string message;
  const ForwardTrace* trace = node.trace().get();
  if (!trace) {
    message = fmt::format(
        "Error detected in {}. No forward pass information available. Enable detect anomaly during forward "
        "pass for more information.",
        node.name());
  } else {
    const std::string place =
        trace->text.empty() ? "  " + describe_source(node.source()) + "\n" : trace->text;
    message = fmt::format("Error detected in {}. Traceback of forward call that caused the error:\n{}",
                          node.name(), place);
    for (; !trace->parent_name.empty(); trace = trace->parent.get()) {
      if (!trace->parent) {
        message +=
            fmt::format("\nPrevious calculation was induced by {}. No forward pass information available.\n",
                        trace->parent_name);
        break;
      }
      message += fmt::format(
          "\nPrevious calculation was induced by {}. Traceback of forward call that induced the previous "
          "calculation:\n{}",
          trace->parent_name, trace->parent->text);
    }
  }
  if (binding().warn)
    binding().warn(message);
  else
    write_diagnostic(message);
}

RunningNode::RunningNode(const Node* node) noexcept : outer_(running) { running = node; }
RunningNode::~RunningNode() { running = outer_; }

}  // namespace tenon::autograd
