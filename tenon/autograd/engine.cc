#include "tenon/autograd/engine.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/autograd/accumulate_grad.h"
#include "tenon/autograd/anomaly.h"
#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/device_pass.h"
#include "tenon/autograd/fit_gradient.h"
#include "tenon/autograd/graph_task.h"
#include "tenon/core/device_runtime.h"
#include "tenon/core/interrupt.h"
#include "tenon/core/stack_space.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/reduction/functions.h"

namespace tenon::autograd {
namespace {

std::atomic<uint32_t> next_task{1};

/// Room for the nodes of most graphs, which are small.
constexpr size_t kUsual = 16;

// Two gradients of one tensor. The sum may replace the first in place when it has no other owner.
Tensor add_gradients(Tensor a, const Tensor& b) {
  const bool sole = !thread_state.grad_enabled && a.use_count() == 1 && a.storage().use_count() == 1 &&
                    a.is_contiguous() && a.dtype() == b.dtype() && a.sizes() == b.sizes();
  if (!sole) return tenon::add(a, b);
  a.add_(b);
  return a;
}

[[gnu::always_inline]] inline void add_to(Tensor& slot, Tensor&& grad) {
  slot = slot.defined() ? add_gradients(std::move(slot), grad) : std::move(grad);
}

}  // namespace

GraphTask::GraphTask(std::span<const Edge> roots, std::span<const Edge> captures,
                     const BackwardOptions& options)
    : options_(options), id_(next_task.fetch_add(1, std::memory_order_relaxed)) {
  if (id_ == 0) id_ = next_task.fetch_add(1, std::memory_order_relaxed);  // 0 means that no pass visits
  steps_.reserve(kUsual);
  grads_.reserve(kUsual);
  finished_.reserve(kUsual);
  try {
    discover(roots);
    if (!captures.empty()) mark_needed(captures);
  } catch (...) {
    for (const Step& step : steps_) step.node->visit_.store(0, std::memory_order_relaxed);
    throw;
  }
}

GraphTask::~GraphTask() {
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    std::atomic<uint64_t>& visit = steps_[i].node->visit_;
    if (visit.load(std::memory_order_relaxed) == (uint64_t{id_} << 32 | i))
      visit.store(0, std::memory_order_release);
  }
}

uint32_t GraphTask::find(const Node& node) const noexcept {
  const uint64_t visit = node.visit_.load(std::memory_order_relaxed);
  if (visit >> 32 == id_) return static_cast<uint32_t>(visit);
  if (contended_.empty()) return kNone;
  const auto it = contended_.find(&node);
  return it == contended_.end() ? kNone : it->second;
}

// A node that is new to this task. Nodes remember their place themselves unless another pass uses them right
// now.
uint32_t GraphTask::visit(Node& node) {
  const auto index = static_cast<uint32_t>(steps_.size());
  uint64_t nobody = 0;
  if (!node.visit_.compare_exchange_strong(nobody, uint64_t{id_} << 32 | index, std::memory_order_acquire)) {
    contended_.emplace(&node, index);
  }
  const size_t inputs = node.num_inputs(), first = grads_.size();
  if (inputs > 0 && !node.input_meta(0).device().is_cpu()) [[unlikely]]
    on_devices_ |= device_runtime(node.input_meta(0).device().backend) != nullptr;
  steps_.push_back({.node = &node, .first_grad = static_cast<uint32_t>(first)});
  grads_.resize(first + inputs);
  return index;
}

void GraphTask::discover(std::span<const Edge> roots) {
  struct Frame {
    uint32_t step;
    uint32_t next_edge;
  };
  std::vector<Frame> path;
  path.reserve(kUsual);
  for (const Edge& root : roots) {
    if (!root.node || find(*root.node) != kNone) continue;
    path.push_back({visit(*root.node), 0});
    while (!path.empty()) {
      Frame& top = path.back();
      const std::span<const Edge> edges = steps_[top.step].node->next_edges();
      if (top.next_edge == edges.size()) {
        finished_.push_back(top.step);
        path.pop_back();
        continue;
      }
      Node* next = edges[top.next_edge++].node.get();
      if (!next) continue;
      uint32_t index = find(*next);
      if (index == kNone) {
        index = visit(*next);
        path.push_back({index, 0});
      }
      ++steps_[index].waiting;
    }
  }
}

void GraphTask::mark_needed(std::span<const Edge> captures) {
  captured_.resize(captures.size());
  for (Step& step : steps_) step.needed = step.runs = false;
  for (uint32_t i = 0; i < captures.size(); ++i) {
    const uint32_t index = captures[i].node ? find(*captures[i].node) : kNone;
    if (index == kNone) continue;
    captures_.push_back({index, captures[i].input_nr, i});
    steps_[index].needed = true;
    // A leaf's node leads nowhere, and runs only to fill `.grad`.
    if (options_.accumulate && steps_[index].node->next_edges().empty()) steps_[index].runs = true;
  }
  std::sort(captures_.begin(), captures_.end(),
            [](const CapturedInput& a, const CapturedInput& b) { return a.step < b.step; });
  for (const uint32_t index : finished_) {
    Step& step = steps_[index];
    for (const Edge& edge : step.node->next_edges()) {
      if (edge.node && steps_[find(*edge.node)].needed) step.needed = step.runs = true;
    }
  }
}

void GraphTask::make_ready(uint32_t index) {
  Step& step = steps_[index];
  if (step.ready) return;
  step.ready = true;
  queue_.push_back({step.node->sequence(), index});
  std::push_heap(queue_.begin(), queue_.end());
}

void GraphTask::deliver(const Edge& edge, Tensor grad) {
  deliver(find(*edge.node), edge.input_nr, std::move(grad));
}

void GraphTask::add_to_slot(uint32_t index, uint32_t input_nr, Tensor grad) {
  add_to(grads_[steps_[index].first_grad + input_nr], std::move(grad));
}

void GraphTask::deliver(uint32_t index, uint32_t input_nr, Tensor grad) {
  Step& step = steps_[index];
  if (grad.defined()) add_to(grads_[step.first_grad + input_nr], std::move(grad));
  if (step.waiting == 0) make_ready(index);
}

void GraphTask::run() {
  while (!queue_.empty()) {
    check_interrupt();
    const uint32_t index = queue_.front().step;
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    run_step(index, scratch_);
  }
}

namespace {

// What a hook returned instead of a gradient must be one of the same tensor.
void check_replacement(const Tensor& old, const Tensor& replaced, const Node& node) {
  if (!old.defined() || !replaced.defined()) return;
  TENON_CHECK(replaced.sizes() == old.sizes(), Runtime,
              fmt::format("a hook of {} has changed the size of value: was {}, got {}", node.name(),
                          to_string(old.sizes()), to_string(replaced.sizes())));
  TENON_CHECK(replaced.dtype() == old.dtype(), Runtime,
              fmt::format("a hook of {} has changed the type of value: was {}, got {}", node.name(),
                          tenon::name(old.dtype()), tenon::name(replaced.dtype())));
  TENON_CHECK(replaced.device() == old.device(), Runtime,
              fmt::format("a hook of {} has changed the device of value: was {}, got {}", node.name(),
                          to_string(old.device()), to_string(replaced.device())));
}

}  // namespace

void GraphTask::run_tensor_hooks(Step& step) {
  NodeHooks& hooks = *step.node->hooks();
  for (const NodeHooks::OfInput& hook : hooks.copy(hooks.inputs)) {
    Tensor& grad = grads_[step.first_grad + hook.input_nr];
    if (!grad.defined()) continue;
    Tensor replaced = hook.call(grad);
    if (!replaced.defined()) continue;
    check_replacement(grad, replaced, *step.node);
    grad = std::move(replaced);
  }
  for (const NodeHooks::Retained& retained : hooks.copy(hooks.retained)) {
    const Tensor& grad = grads_[step.first_grad + retained.input_nr];
    if (!grad.defined()) continue;
    keep_copy(*retained.slot, grad);
    if (!devices_) continue;
    const GradSlotLock lock(*retained.slot);
    if (retained.slot->grad.defined()) devices_->streams().leave_to_caller(retained.slot->grad);
  }
}

void GraphTask::run_pre_hooks(Step& step, std::span<Tensor> grads) {
  NodeHooks& hooks = *step.node->hooks();
  for (const auto& hook : hooks.copy(hooks.before)) {
    std::vector<Tensor> seen(grads.begin(), grads.end());
    hook.call(seen);
    TENON_CHECK(seen.size() == grads.size(), Runtime,
                fmt::format("a prehook of {} returned {} gradients, expected {}", step.node->name(),
                            seen.size(), grads.size()));
    for (size_t i = 0; i < grads.size(); ++i) {
      check_replacement(grads[i], seen[i], *step.node);
      grads[i] = std::move(seen[i]);
    }
  }
}

void GraphTask::run_post_hooks(Step& step, std::span<Tensor> out, const std::vector<Tensor>& grads) {
  NodeHooks& hooks = *step.node->hooks();
  for (const auto& hook : hooks.copy(hooks.after)) {
    std::vector<Tensor> seen(out.begin(), out.end());
    hook.call(seen, grads);
    TENON_CHECK(seen.size() == out.size(), Runtime,
                fmt::format("a hook of {} returned {} gradients, expected {}", step.node->name(), seen.size(),
                            out.size()));
    for (size_t i = 0; i < out.size(); ++i) {
      check_replacement(out[i], seen[i], *step.node);
      out[i] = std::move(seen[i]);
    }
  }
}

// In anomaly mode: a failure names where the forward call was made, and NaN is a failure.
void GraphTask::apply_watched(Node& node, NodeCall& call) {
  const RunningNode running(&node);
  try {
    node.apply(call);
    if (!is_anomaly_check_nan_enabled()) return;
    const NoGradGuard no_grad;
    for (size_t i = 0; i < call.out.size(); ++i) {
      const Tensor& grad = call.out[i];
      if (!grad.defined() || grad.is_meta() || !is_differentiable(grad.dtype())) continue;
      TENON_CHECK(!tenon::any(tenon::isnan(grad)).item().to_bool(), Runtime,
                  fmt::format("Function '{}' returned nan values in its {}th output.", node.name(), i));
    }
  } catch (...) {
    report_anomaly(node);
    throw;
  }
}

void GraphTask::keep_captured(uint32_t index) {
  auto capture = std::lower_bound(captures_.begin(), captures_.end(), index,
                                  [](const CapturedInput& c, uint32_t step) { return c.step < step; });
  for (; capture != captures_.end() && capture->step == index; ++capture) {
    const Tensor& grad = grads_[steps_[index].first_grad + capture->input_nr];
    if (devices_ && grad.defined()) devices_->streams().leave_to_caller(grad);
    captured_[capture->place] = grad;
  }
}

void GraphTask::run_step(uint32_t index, Scratch& scratch) {
  Step& step = steps_[index];
  Node& node = *step.node;
  if (node.hooks()) [[unlikely]]
    run_tensor_hooks(step);
  if (!captures_.empty()) keep_captured(index);
  const std::span<Tensor> grads(grads_.data() + step.first_grad, node.num_inputs());
  const size_t edges = node.next_edges().size();
  if (!step.needed) {
    for (Tensor& grad : grads) grad.reset();
    return;  // nor is anything that it leads to
  }
  if (step.runs) {
    if (scratch.out.size() < edges) scratch.out.resize(edges);
    NodeCall call{grads, {scratch.out.data(), edges}, node.next_edges()};
    if (!captures_.empty()) {
      scratch.filter.resize(edges);
      for (size_t i = 0; i < edges; ++i) {
        const Edge& edge = call.edges[i];
        scratch.filter[i] = edge.node && steps_[find(*edge.node)].needed;
      }
      call.filter = scratch.filter.data();
    }
    run_node(step, call);
  }
  for (Tensor& grad : grads) grad.reset();
  pass_on(step, {scratch.out.data(), step.runs ? edges : 0});
}

void GraphTask::run_node(Step& step, NodeCall& call) {
  Node& node = *step.node;
  std::vector<Tensor> seen;  // for hooks that run when the node has taken its gradients
  if (node.hooks()) [[unlikely]] {
    run_pre_hooks(step, call.grads);
    seen.assign(call.grads.begin(), call.grads.end());
  }
  {
    const NodeLock lock(node);
    if (is_anomaly_enabled()) [[unlikely]]
      apply_watched(node, call);
    else
      node.apply(call);
    if (!options_.retain_graph) node.release_variables();
  }
  if (NodeHooks* hooks = node.hooks()) [[unlikely]] {
    // Of a leaf whose gradient has been added to. The node is free again: a hook may wait for other passes.
    if (!seen.empty() && seen[0].defined()) {
      for (const auto& hook : hooks->copy(hooks->leaf)) hook.call();
    }
    run_post_hooks(step, call.out, seen);
  }
}

void GraphTask::pass_on(Step& step, std::span<Tensor> out) {
  const std::span<const Edge> edges = step.node->next_edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    Tensor grad;
    if (i < out.size()) grad = std::move(out[i]);
    if (!edge.node) continue;
    const uint32_t index = find(*edge.node);
    Step& next = steps_[index];
    if (!next.needed) grad.reset();
    if (grad.defined())
      grad = fit_gradient(std::move(grad), edge.node->input_meta(edge.input_nr), *step.node, i);
    if (devices_) [[unlikely]] {
      devices_->deliver(*step.node, i, index, edge.input_nr, std::move(grad));
      continue;
    }
    --next.waiting;
    deliver(index, edge.input_nr, std::move(grad));
  }
}

thread_local constinit int detail::pass_depth = 0;

namespace {

/// A pass that may have been started from within others. A node or hook that always starts another gets an
/// error before the stack ends.
class NestedPass {
 public:
  NestedPass() {
    constexpr size_t kReserve = 96 * 1024;
    TENON_CHECK(
        detail::pass_depth == 0 || stack_left() > kReserve, Runtime,
        fmt::format("backward: {} passes were started each from within another, and the stack of this "
                    "thread ends here",
                    detail::pass_depth));
    ++detail::pass_depth;
  }
  ~NestedPass() { --detail::pass_depth; }
  NestedPass(const NestedPass&) = delete;
};

[[gnu::noinline]] void run_on_devices(GraphTask& task, std::span<const Edge> roots,
                                      std::span<const Tensor> grads) {
  DevicePass pass(task);
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i].node) pass.deliver_root(roots[i], grads[i]);
  }
  pass.run();
}

}  // namespace

std::vector<Tensor> run_backward(std::span<const Edge> roots, std::span<const Tensor> grads,
                                 std::span<const Edge> captures, const BackwardOptions& options) {
  // A backward pass may be asked for from inside a kernel or under another mode; its own operators are plain
  // calls.
  const ThreadStateGuard<&ThreadState::excluded> visible(
      DispatchKeySet(thread_state.excluded.bits() & ~kAutogradKeys.bits()));
  const AutoGradMode mode(options.create_graph);
  const NestedPass nested;
  GraphTask task(roots, captures, options);
  if (task.on_devices()) [[unlikely]] {
    run_on_devices(task, roots, grads);
    return task.take_captured();
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i].node) task.deliver(roots[i], grads[i]);
  }
  task.run();
  return task.take_captured();
}

}  // namespace tenon::autograd
