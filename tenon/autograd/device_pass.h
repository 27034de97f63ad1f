// DevicePass: runs the nodes of a GraphTask that reaches devices. Each device has a queue of ready nodes and
// a worker for them; the calling thread runs the nodes of the host and waits. Orders gradients between
// streams, and sums those of one tensor in the order in which a single thread would. Internal to the engine.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include "tenon/autograd/gradient_inbox.h"
#include "tenon/autograd/graph_task.h"
#include "tenon/autograd/lock_owner.h"
#include "tenon/autograd/pass_streams.h"
#include "tenon/autograd/saved_hooks.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {

class DevicePass {
 public:
  /// Takes the state of the calling thread, on which the other functions but `deliver` are called too.
  explicit DevicePass(GraphTask& task);
  DevicePass(const DevicePass&) = delete;

  /// Adds the gradient that the caller gives for a root.
  void deliver_root(const Edge& edge, Tensor grad);
  /// Runs all nodes. The first error of any thread ends the pass: what is queued is dropped, what runs is
  /// waited for, and the error is thrown here.
  void run();

  /// Called by the thread that ran the node `from`: hands what is for edge number `edge` on to step `to`.
  void deliver(const Node& from, size_t edge, uint32_t to, uint32_t input_nr, Tensor grad);
  const PassStreams& streams() const noexcept { return streams_; }

 private:
  using Step = GraphTask::Step;
  using Lock = std::unique_lock<std::mutex>;

  /// The queue of a device's ready nodes; the first is the caller's.
  struct Lane {
    Device device;
    std::vector<GraphTask::Ready> heap{};
    bool served = false;  // by a worker
  };
  void place_steps();
  void make_inboxes();
  void sum(Lock& lock, uint32_t to, GradientInbox& inbox);
  void make_ready(uint32_t index);
  void start_worker(uint32_t lane);
  void serve(uint32_t lane) noexcept;
  void run_first(Lock& lock, Lane& lane, Scratch& scratch);
  void fail(std::exception_ptr error) noexcept;
  bool forked() const noexcept;
  void check_not_forked() const;

  GraphTask& task_;
  // Of the calling thread.
  const ThreadState thread_state_;
  const detail::SavedHooks saved_hooks_;
  const int depth_;
  const uint32_t forks_;
  const LockOwner outer_owner_;

  PassStreams streams_;
  std::vector<uint32_t> lane_of_;  // each step
  // Filled before the pass starts, unless the pass needs none; from then on the mutex guards what they hold,
  // and also the counts of steps and the gradients of those that do not run yet.
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<GradientInbox>> inboxes_;  // of steps that get more than one gradient
  bool started_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;  // what the caller waits for
  size_t served_ = 0;                // lanes
  std::exception_ptr error_;
};

}  // namespace tenon::autograd
