// Backend: one instance of the plug-in opencl: a context over the devices of one platform, its buffers,
// queues and events by the numbers that Tenon has, and its kernels.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "driver.h"
#include "kernels.h"
#include "mark.h"
#include "recordings.h"
#include "slots.h"
#include "tenon/abi/address.h"
#include "tenon/abi/plugin.h"

namespace opencl {

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
  /// An address for a part of a buffer that another owner has, until `forget`. Throws abi::Error{VALUE} for
  /// what is no buffer of this context, and for one that is too small.
  TenonAddress import(cl_mem buffer, uint64_t offset, uint64_t nbytes);
  void forget(TenonAddress address);
  /// Throws abi::Error{INTERNAL} for an address of no buffer.
  cl_mem buffer(TenonAddress address) const {
    if (const cl_mem found = buffers_.get(tenon::abi::slot_of(address))) return found;
    no_buffer(address);
  }
  /// Runs or records a launch. False if the device does not serve it: nothing was written then.
  bool launch(const TenonLaunch& launch) {
    const cl_command_queue q = queue(launch.stream);
    const auto buffer_of = [this](TenonAddress address) { return buffer(address); };
    if (!recordings_.records(q)) return kernels_.launch(launch, q, buffer_of);
    Command command = kernels_.record(launch, buffer_of);
    if (!command) return false;
    recordings_.add(q, std::move(command));
    return true;
  }
  /// As the device table has it; small ranges of the host are kept, so that no one waits for the queue.
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
  uint64_t new_event(int32_t index, bool timed);
  void free_event(uint64_t event);
  Mark& mark(uint64_t event) const;

  /// As the device table has them.
  void begin_capture(TenonStream stream) { recordings_.begin(queue(stream)); }
  uint64_t end_capture(TenonStream stream, bool keep);
  void launch_capture(TenonStream stream, uint64_t capture);
  void free_capture(uint64_t capture) { recordings_.remove(capture); }

  /// Waits until the work of a queue has run.
  void wait(cl_command_queue queue);
  /// How often the host has waited for a queue, not counting what compiling takes.
  uint64_t num_waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
  /// Waits until all work has run.
  void finish() noexcept;

 private:
  /// The host's memory of up to so many bytes is copied at once.
  static constexpr uint64_t kStaged = uint64_t{1} << 20;

  /// One side of a copy: a buffer from a byte of it on, or the host's memory.
  struct Side {
    cl_mem buffer;  // null: the host's
    size_t offset;
    void* host;
  };

  explicit Backend(tenon::abi::Options options);
  Side side(TenonAddress address, TenonPlace place) const;
  void copy(cl_command_queue queue, const Side& to, const Side& from, uint64_t nbytes, bool host_stays);
  TenonAddress put(Buffer buffer, uint64_t offset);
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
  Recordings recordings_;
};

}  // namespace opencl
