#include "tenon/autograd/device_pass.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "tenon/autograd/workers.h"
#include "tenon/core/device_runtime.h"

namespace tenon::autograd {
namespace {

/// How many passes over devices may be nested: each may hold a thread for each device.
constexpr int kMostNested = 100;

/// The device whose nodes this thread runs, if it is a worker.
thread_local constinit std::optional<Device> t_worker_of;

bool has_streams(Device device) noexcept { return device_runtime(device.backend) != nullptr; }

/// Notes that work of a stream uses the tensor's memory.
void note_use(const Tensor& t, Stream user) {
  const Storage& storage = t.storage();
  if (!storage || storage.nbytes() == 0 || !storage->allocator()) return;
  storage->allocator()->record_stream(storage.address(), resolved(storage->device()), user);
}

}  // namespace

DevicePass::DevicePass(GraphTask& task)
    : task_(task),
      thread_state_(thread_state),
      devices_(current_devices()),
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
    Place place{0, stream_of(step)};
    const Device device = place.stream.device;
    if (has_streams(device)) {
      if (std::ranges::find(streams_, place.stream) == streams_.end()) {
        check_stream(place.stream, "backward");
        streams_.push_back(place.stream);
      }
      const auto lane = std::ranges::find(lanes_, device, &Lane::device);
      if (workers) place.lane = static_cast<uint32_t>(lane - lanes_.begin());
      if (workers && lane == lanes_.end()) lanes_.push_back({device});
    }
    places_.push_back(place);
  }
}

/// A node runs in the stream of its forward call. The nodes of leaves run in the caller's: what they write is
/// the caller's, who may have used it in that stream just before.
Stream DevicePass::stream_of(const Step& step) const {
  const Node& node = *step.node;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const Device device = node.input_meta(i).device();
    if (!has_streams(device)) continue;
    return node.next_edges().empty() ? callers_stream(device) : node.input_meta(i).stream();
  }
  return {kCPU};
}

Stream DevicePass::callers_stream(Device device) const noexcept {
  if (device.index < 0) device.index = devices_.index[device.backend];
  for (const Stream& s : devices_.streams) {
    if (s.device == device) return s;
  }
  return {device, 0};
}

Stream DevicePass::consumer_stream(uint32_t to, Device device) const noexcept {
  const Stream own = places_[to].stream;
  return own.device == device ? own : callers_stream(device);
}

/// Lets `to` go on with a gradient that was computed in this thread's current stream.
void DevicePass::change_stream(const Tensor& grad, Stream to) const {
  const Stream from = current_stream(to.device);
  if (from == to) return;
  Event computed(from.device);
  computed.record(from);
  computed.wait(to);
  note_use(grad, to);
}

void DevicePass::leave_to_caller(const Tensor& grad) const {
  const Device device = resolved(grad.device());
  if (!has_streams(device)) return;
  const Stream to = callers_stream(device);
  if (current_stream(device) != to) note_use(grad, to);  // join_streams has the order
}

void DevicePass::deliver_root(const Edge& edge, Tensor grad) {
  const uint32_t to = task_.find(*edge.node);
  if (grad.defined()) {
    const Device device = resolved(grad.device());
    std::optional<StreamGuard> stream;
    if (has_streams(device)) {
      change_stream(grad, consumer_stream(to, device));
      stream.emplace(consumer_stream(to, device));
    }
    task_.add_to_slot(to, edge.input_nr, std::move(grad));
  }
  if (task_.steps_[to].waiting == 0) make_ready(to);
}

/// Gradients of one step come from several threads in any order; sums in an order of their own would have
/// other bits.
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
    if (step.waiting == 0 || (step.waiting == 1 && !has_gradient(step))) continue;
    inboxes_[i] = std::make_unique<Inbox>();
    inboxes_[i]->arrivals.reserve(step.waiting);
  }
  for (const Step& step : task_.steps_) {
    const std::span<const Edge> edges = step.node->next_edges();
    for (size_t e = 0; e < edges.size(); ++e) {
      if (!edges[e].node) continue;
      if (Inbox* inbox = inboxes_[task_.find(*edges[e].node)].get())
        inbox->arrivals.push_back({step.node->sequence(), e, edges[e].input_nr});
    }
  }
  for (const auto& inbox : inboxes_) {
    if (inbox) std::ranges::sort(inbox->arrivals, &is_before);
  }
}

void DevicePass::deliver(const Node& from, size_t edge, uint32_t to, uint32_t input_nr, Tensor grad) {
  check_not_forked();
  if (grad.defined()) {
    const Device device = resolved(grad.device());
    if (has_streams(device)) change_stream(grad, consumer_stream(to, device));
  }
  Lock lock(mutex_);
  if (error_) return;
  Step& step = task_.steps_[to];
  --step.waiting;
  if (Inbox* inbox = inboxes_[to].get()) {
    auto place = std::ranges::lower_bound(inbox->arrivals, Arrival{from.sequence(), edge}, &is_before);
    while (place->there) ++place;
    place->there = true;
    place->grad = std::move(grad);
    return put(lock, to, *inbox);
  }
  if (grad.defined()) task_.grads_[step.first_grad + input_nr] = std::move(grad);
  make_ready(to);
}

/// Sums what has come in order. One thread does it at a time, and takes along what comes meanwhile.
void DevicePass::put(Lock& lock, uint32_t to, Inbox& inbox) {
  if (inbox.summing) return;
  inbox.summing = true;
  for (; inbox.next < inbox.arrivals.size() && inbox.arrivals[inbox.next].there; ++inbox.next) {
    Arrival& arrival = inbox.arrivals[inbox.next];
    if (!arrival.grad.defined()) continue;
    lock.unlock();
    {
      const Device device = resolved(arrival.grad.device());
      std::optional<StreamGuard> stream;
      if (has_streams(device)) stream.emplace(consumer_stream(to, device));
      task_.add_to_slot(to, arrival.input_nr, std::move(arrival.grad));
    }
    lock.lock();
    if (error_) return;
  }
  inbox.summing = false;
  if (inbox.next == inbox.arrivals.size()) make_ready(to);
}

void DevicePass::make_ready(uint32_t index) {
  Step& step = task_.steps_[index];
  if (step.ready) return;
  step.ready = true;
  Lane& lane = lanes_[places_[index].lane];
  lane.heap.push_back({step.node->sequence(), index});
  std::push_heap(lane.heap.begin(), lane.heap.end());
  if (!started_) return;
  if (places_[index].lane == 0)
    changed_.notify_one();
  else if (!lane.served)
    start_worker(places_[index].lane);
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
  detail::pass_depth = depth_;
  t_worker_of = lane.device;
  const LockOwnerScope owner(outer_owner_);
  Scratch scratch;
  Lock lock(mutex_, std::defer_lock);
  try {
    set_current_devices(devices_);
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
    std::optional<StreamGuard> stream;
    if (has_streams(places_[index].stream.device)) stream.emplace(places_[index].stream);
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
  join_streams();
}

/// What the caller does next may use what any node has left behind.
void DevicePass::join_streams() const {
  for (const Stream stream : streams_) {
    const Stream own = callers_stream(stream.device);
    if (own == stream) continue;
    Event passed(stream.device);
    passed.record(stream);
    passed.wait(own);
  }
}

bool DevicePass::forked() const noexcept { return fork_count() != forks_; }

void DevicePass::check_not_forked() const {
  TENON_CHECK(
      !forked(), Runtime,
      "backward: the process was forked while a pass ran over devices; the child has neither the devices "
      "of its parent nor the threads that ran the pass, which cannot be finished here");
}

}  // namespace tenon::autograd
