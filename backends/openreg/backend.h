// Backend: one instance of the plug-in openreg, with the memory of each device and the queues of all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "failures.h"
#include "memory.h"
#include "queues.h"
#include "tenon/abi/plugin.h"

namespace openreg {

struct Backend {
  /// Throws abi::Error for an option that does not exist or has a value that it cannot have.
  explicit Backend(const TenonOptions* given) : Backend(tenon::abi::Options(given)) {}

  Memory& memory(int32_t index) { return *memories[static_cast<size_t>(index)]; }

  Failures failures;
  Queues queues;
  std::vector<std::unique_ptr<Memory>> memories;

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
