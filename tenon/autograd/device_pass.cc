#include "tenon/autograd/device_pass.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "tenon/autograd/workers.h"

namespace tenon::autograd {
namespace {

/// How many passes over devices may be nested: each may hold a thread for each device.
constexpr int kMostNested = 100;

/// The device whose nodes this thread runs, if it is a worker.
thread_local constinit std::optional<Device> t_worker_of;

}  // namespace

DevicePass::DevicePass(GraphTask& task)
    : task_(task),
      thread_state_(thread_state),
      saved_hooks_(detail::all_saved_hooks()),
      depth_(detail::pass_depth),
      forks_(fork_count()),
      outer_owner_(current_lock_owner()) {
  place_steps();
  task.devices_ = this;
}

void DevicePass::place_steps() {
  // A thread that runs the nodes of a device goes on to do so, as the worker of the pass that it starts.
  lanes_.push_back({t_worker_of.value_or(kCPU)});
  const bool workers = may_use_workers();
  for (const Step& step : task_.steps_) {
    const Device device = streams_.add(*step.node).device;
    lane_of_.push_back(0);
    if (!workers || !has_streams(device)) continue;
    const auto lane = std::ranges::find(lanes_, device, &Lane::device);
    lane_of_.back() = static_cast<uint32_t>(lane - lanes_.begin());
    if (lane == lanes_.end()) lanes_.push_back({device});
  }
}

void DevicePass::deliver_root(const Edge& edge, Tensor grad) {
  const uint32_t to = task_.find(*edge.node);
  if (grad.defined()) {
    streams_.hand_over(grad, to);
    const MaybeStreamGuard stream(streams_.of(to, grad.device()));
    task_.add_to_slot(to, edge.input_nr, std::move(grad));
  }
  if (task_.steps_[to].waiting == 0) make_ready(to);
}

void DevicePass::make_inboxes() {
  inboxes_.resize(task_.steps_.size());
  const auto has_gradient = [&](const Step& step) {
    for (size_t i = 0; i < step.node->num_inputs(); ++i) {
      if (task_.grads_[step.first_grad + i].defined()) return true;
    }
    return false;
  };
  for (size_t i = 0; i < inboxes_.size(); ++i) {
    const Step& step = task_.steps_[i];
    if (step.waiting > 1 || (step.waiting == 1 && has_gradient(step)))
      inboxes_[i] = std::make_unique<GradientInbox>();
  }
  for (const Step& step : task_.steps_) {
    const std::span<const Edge> edges = step.node->next_edges();
    for (size_t e = 0; e < edges.size(); ++e) {
      if (!edges[e].node) continue;
      if (const auto& inbox = inboxes_[task_.find(*edges[e].node)])
        inbox->expect(step.node->sequence(), e, edges[e].input_nr);
    }
  }
  for (const auto& inbox : inboxes_) {
    if (inbox) inbox->sort();
  }
}

void DevicePass::deliver(const Node& from, size_t edge, uint32_t to, uint32_t input_nr, Tensor grad) {
  check_not_forked();
  if (grad.defined()) streams_.hand_over(grad, to);
  Lock lock(mutex_);
  if (error_) return;
  Step& step = task_.steps_[to];
  --step.waiting;
  if (const auto& inbox = inboxes_[to]) {
    inbox->put(from.sequence(), edge, std::move(grad));
    return sum(lock, to, *inbox);
  }
  if (grad.defined()) task_.grads_[step.first_grad + input_nr] = std::move(grad);
  make_ready(to);
}

/// Sums what has come, as far as the order allows. One thread does it at a time, and takes along what comes
/// meanwhile.
void DevicePass::sum(Lock& lock, uint32_t to, GradientInbox& inbox) {
  if (!inbox.begin()) return;
  while (GradientInbox::Arrival* arrival = inbox.next()) {
    lock.unlock();
    {
      const MaybeStreamGuard stream(streams_.of(to, arrival->grad.device()));
      task_.add_to_slot(to, arrival->input_nr, std::move(arrival->grad));
    }
    lock.lock();
    if (error_) return;
  }
  inbox.end();
  if (inbox.complete()) make_ready(to);
}

void DevicePass::make_ready(uint32_t index) {
  Step& step = task_.steps_[index];
  if (step.ready) return;
  step.ready = true;
  const uint32_t number = lane_of_[index];
  Lane& lane = lanes_[number];
  lane.heap.push_back({step.node->sequence(), index});
  std::push_heap(lane.heap.begin(), lane.heap.end());
  if (!started_) return;
  if (number == 0)
    changed_.notify_one();
  else if (!lane.served)
    start_worker(number);
}

void DevicePass::start_worker(uint32_t index) {
  Lane& lane = lanes_[index];
  TENON_CHECK(depth_ <= kMostNested, Runtime,
              fmt::format("backward: {} passes over several devices were started each from within another, "
                          "which is as many as there may be",
                          kMostNested));
  run_on_worker(lane.device, [this, index] { serve(index); });
  lane.served = true;
  ++served_;
}

void DevicePass::serve(uint32_t index) noexcept {
  Lane& lane = lanes_[index];
  thread_state = thread_state_;
  // A worker has nothing to record to.
  thread_state.excluded |= DispatchKeySet(Functionality::Record);
  detail::pass_depth = depth_;
  t_worker_of = lane.device;
  const LockOwnerScope owner(outer_owner_);
  Scratch scratch;
  Lock lock(mutex_, std::defer_lock);
  try {
    streams_.take_over();
    detail::set_all_saved_hooks(saved_hooks_);
    lock.lock();
  } catch (...) {
    fail(std::current_exception());
    lock.lock();
  }
  while (!lane.heap.empty()) {
    run_first(lock, lane, scratch);
    if (forked()) return;
  }
  lane.served = false;
  if (--served_ == 0) changed_.notify_one();
  lock.unlock();
  // From here on the pass may be gone.
  if (detail::has_saved_tensor_hooks) detail::set_all_saved_hooks({});
}

void DevicePass::run_first(Lock& lock, Lane& lane, Scratch& scratch) {
  const uint32_t index = lane.heap.front().step;
  std::pop_heap(lane.heap.begin(), lane.heap.end());
  lane.heap.pop_back();
  lock.unlock();
  try {
    const MaybeStreamGuard stream(streams_.of(index));
    task_.run_step(index, scratch);
  } catch (...) {
    fail(std::current_exception());
    for (Tensor& t : scratch.out) t.reset();
  }
  if (!forked()) lock.lock();
}

void DevicePass::fail(std::exception_ptr error) noexcept {
  if (forked()) return;
  const Lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  for (Lane& lane : lanes_) lane.heap.clear();
}

void DevicePass::run() {
  // Hooks on workers take what this thread may hold: the interpreter's lock.
  const WaitScope waits_for_workers;
  const LockOwnerScope owner(outer_owner_);
  make_inboxes();
  Scratch scratch;
  Lock lock(mutex_);
  started_ = true;
  try {
    for (uint32_t i = 1; i < lanes_.size(); ++i) {
      if (!lanes_[i].heap.empty()) start_worker(i);
    }
  } catch (...) {
    lock.unlock();
    fail(std::current_exception());
    lock.lock();
  }
  while (!lanes_[0].heap.empty() || served_ > 0) {
    if (!lanes_[0].heap.empty()) {
      run_first(lock, lanes_[0], scratch);
      check_not_forked();
      continue;
    }
    const Computing waits(false);
    changed_.wait(lock, [&] { return !lanes_[0].heap.empty() || served_ == 0; });
  }
  if (error_) {
    lock.unlock();
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  streams_.join();
}

bool DevicePass::forked() const noexcept { return fork_count() != forks_; }

void DevicePass::check_not_forked() const {
  TENON_CHECK(
      !forked(), Runtime,
      "backward: the process was forked while a pass ran over devices; the child has neither the devices "
      "of its parent nor the threads that ran the pass, which cannot be finished here");
}

}  // namespace tenon::autograd
