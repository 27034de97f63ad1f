// Recordings: work that a queue records instead of running it, to be enqueued as often as asked.
// OpenCL 1.2 has no graphs, so a recording is a list of calls. Used by Backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver.h"

namespace opencl {

/// Enqueues something; keeps what it needs for that.
using Command = std::function<void(cl_command_queue)>;

class Recordings {
 public:
  using Work = std::vector<Command>;

  /// Whether what is queued there is to be recorded.
  bool records(cl_command_queue queue) const {
    return open_count_.load(std::memory_order_acquire) != 0 && is_open(queue);
  }
  /// Throws abi::Error{RUNTIME} if the queue is being recorded already.
  void begin(cl_command_queue queue);
  void add(cl_command_queue queue, Command command);
  /// What was recorded since `begin`.
  Work end(cl_command_queue queue);

  /// Keeps work under a number, which is not 0.
  uint64_t keep(std::shared_ptr<const Work> work);
  /// Throws abi::Error{VALUE} for a number that nothing has.
  std::shared_ptr<const Work> get(uint64_t number) const;
  void remove(uint64_t number);

 private:
  bool is_open(cl_command_queue queue) const;

  std::atomic<size_t> open_count_{0};
  mutable std::mutex mutex_;  // of what follows
  std::map<cl_command_queue, Work> open_;
  std::map<uint64_t, std::shared_ptr<const Work>> kept_;
  uint64_t last_ = 0;
};

}  // namespace opencl
