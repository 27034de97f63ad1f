// Backend: one instance of the plug-in openreg, with the memory of each device and the queues of all.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "failures.h"
#include "memory.h"
#include "queues.h"
#include "tenon/abi/plugin.h"

namespace openreg {

/// What was recorded, by number.
class Captures {
 public:
  using Work = std::shared_ptr<const std::vector<Task>>;

  uint64_t add(std::vector<Task> tasks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_[++last_] = std::make_shared<const std::vector<Task>>(std::move(tasks));
    return last_;
  }
  Work get(uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return work_.at(id);
  }
  void remove(uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.erase(id);
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, Work> work_;
  uint64_t last_ = 0;
};

struct Backend {
  /// Throws abi::Error for an option that does not exist or has a value that it cannot have.
  explicit Backend(const TenonOptions* given) : Backend(tenon::abi::Options(given)) {}

  Memory& memory(int32_t index) { return *memories[static_cast<size_t>(index)]; }

  Failures failures;
  /// Whether kernels compute in a dtype, or option missing= has it.
  bool computes(TenonDType dtype) const {
    return std::find(missing.begin(), missing.end(), dtype) == missing.end();
  }

  Queues queues;
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<TenonDType> missing;
  bool network = false;  // has the kernels of network.h
  std::atomic<uint64_t> launches{0};
  Captures captures;

 private:
  explicit Backend(tenon::abi::Options options);
};

/// The queue of a stream.
inline QueueKey key_of(TenonStream stream) noexcept { return {stream.device.index, stream.id}; }

/// Gives the host access to the memory of a tensor for a scope, once the stream's work on it has run.
class MemoryGuard {
 public:
  MemoryGuard(Backend& backend, TenonStream stream, uint64_t address, uint64_t nbytes)
      : memory_(backend.memory(stream.device.index)), address_(address), nbytes_(nbytes) {
    backend.queues.wait(key_of(stream));
    memory_.open(address_, nbytes_);
  }
  ~MemoryGuard() { memory_.close(address_, nbytes_); }
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

 private:
  Memory& memory_;
  uint64_t address_, nbytes_;
};

}  // namespace openreg
