// Backend: one instance of the plug-in opencl: a context over the devices of one platform, its buffers,
// queues and events by the numbers that Tenon has, and its kernels.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "driver.h"
#include "kernels.h"
#include "slots.h"
#include "tenon/abi/address.h"
#include "tenon/abi/plugin.h"

namespace opencl {

/// An event of Tenon's, which marks one place after another.
struct Mark {
  std::mutex mutex;
  Event event;  ///< Null before it is recorded.

  /// What it marks now, with a reference of its own.
  Event get() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (event) clRetainEvent(event.get());
    return Event(event.get());
  }
};

/// A buffer, and where the host sees it.
struct HostMemory {
  Buffer buffer;
  void* mapped;
};

class Backend {
 public:
  /// Options: platform (a part of its name), type (all, cpu, gpu, accelerator), without (what is not to be
  /// used: float64, division). Throws abi::Error for others, and where there is no such device.
  explicit Backend(const TenonOptions* given) : Backend(tenon::abi::Options(given)) {}
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::vector<DeviceInfo>& devices() const noexcept { return devices_; }
  /// What all devices have.
  const Abilities& abilities() const noexcept { return abilities_; }
  const char* description(int32_t index) const { return descriptions_[static_cast<size_t>(index)].c_str(); }
  Kernels& kernels() noexcept { return kernels_; }

  TenonAddress allocate(int32_t index, uint64_t nbytes);
  void free(int32_t index, TenonAddress address, uint64_t nbytes);
  /// Bytes of the device's buffers.
  uint64_t used(int32_t index) const noexcept {
    return used_[static_cast<size_t>(index)].load(std::memory_order_relaxed);
  }
  /// Throws abi::Error{INTERNAL} for an address of no buffer.
  cl_mem buffer(TenonAddress address) const {
    if (const cl_mem found = buffers_.get(tenon::abi::slot_of(address))) return found;
    no_buffer(address);
  }
  /// As the device table has it; small ranges of the host are kept, so that nobody waits for the queue.
  void copy(TenonStream stream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
            TenonPlace src_place, uint64_t nbytes, bool host_stays);

  /// Memory of the host that drivers copy from and to without a copy of their own: of a buffer that stays
  /// mapped. At a multiple of 512.
  void* allocate_host(uint64_t nbytes);
  void free_host(void* address);

  uint64_t new_stream(int32_t index);
  void free_stream(TenonStream stream);
  /// Throws abi::Error{VALUE} for a stream that does not exist.
  cl_command_queue queue(TenonStream stream) const {
    const cl_command_queue found = stream.id == 0 ? queues_[static_cast<size_t>(stream.device.index)].get()
                                                  : streams_.get(stream.id - 1);
    if (found) return found;
    no_stream(stream.id);
  }
  uint64_t new_event();
  void free_event(uint64_t event);
  Mark& mark(uint64_t event) const;

  /// Waits until the work of a queue has run.
  void wait(cl_command_queue queue);
  /// How often the host has waited for a queue, not counting what compiling takes.
  uint64_t num_waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
  /// Waits until all work has run.
  void finish() noexcept;

 private:
  /// The host's memory of up to so many bytes is copied at once.
  static constexpr uint64_t kStaged = uint64_t{1} << 20;

  explicit Backend(tenon::abi::Options options);
  /// A buffer with those elements, or with none. The driver keeps it until what was queued with it has run.
  Buffer new_buffer(uint64_t nbytes, void* elements) const;
  static void copy_between(cl_command_queue queue, cl_mem from, size_t from_offset, cl_mem to,
                           size_t to_offset, size_t nbytes);
  void note_wait(bool waits) noexcept { waits_.fetch_add(waits, std::memory_order_relaxed); }
  [[noreturn]] static void no_buffer(TenonAddress address);
  [[noreturn]] static void no_stream(uint64_t id);

  std::vector<DeviceInfo> devices_;
  Abilities abilities_;
  std::vector<std::string> descriptions_;
  Context context_;
  std::vector<Queue> queues_;  // the devices' default streams
  Slots<cl_command_queue> streams_;
  Slots<cl_mem> buffers_;
  Slots<Mark*> marks_;
  std::vector<std::atomic<uint64_t>> used_;
  std::atomic<uint64_t> waits_{0};
  std::mutex host_mutex_;
  std::map<void*, HostMemory> host_memory_;
  Kernels kernels_;
};

}  // namespace opencl
