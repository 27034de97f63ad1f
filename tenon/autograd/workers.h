// Workers: the threads that run nodes of devices. A device has one, which is started when it is first needed;
// while that is busy with one pass, another pass gets another. They stay until the process ends. Used by
// DevicePass. Independent of graphs.
#pragma once

#include <cstdint>
#include <functional>

#include "tenon/core/device.h"

namespace tenon::autograd {

/// Runs `job`, which must not throw, on a worker of the device. Throws std::system_error where no thread can
/// be started.
void run_on_worker(Device device, std::function<void()> job);

/// How often this process is the child of a fork that happened while Tenon was loaded. Threads that were
/// there before are not.
uint32_t fork_count() noexcept;

/// What a language binding provides for threads that wait and work. What a waiting thread gives up is known
/// to WaitScope (core/stream.h).
struct ThreadBinding {
  /// Says that this thread computes, or that it waits; returns what it did before. The end of the process
  /// waits for threads that compute.
  bool (*set_computing)(bool on) noexcept = nullptr;
  /// Whether the language ends: other threads can run nothing of it any more.
  bool (*is_ending)() noexcept = nullptr;
};
void set_thread_binding(const ThreadBinding& binding) noexcept;

/// Whether a pass may leave nodes, with their hooks, to other threads.
bool may_use_workers() noexcept;

/// Says for a scope that this thread computes, or that it does not.
class Computing {
 public:
  explicit Computing(bool on) noexcept;
  ~Computing();
  Computing(const Computing&) = delete;

 private:
  bool before_ = false;
};

}  // namespace tenon::autograd
