// Kernels: pointwise expressions as OpenCL C, printed from their programs and compiled at their first launch,
// or many at once by a warm-up. Used by Backend; knows buffers by a function alone.
#pragma once

#include <array>
#include <atomic>
#include <forward_list>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver.h"
#include "tenon/abi/print_c.h"

namespace opencl {

class Kernels {
 public:
  /// `queues`: one of each of the devices, and `abilities` what all of them can do.
  Kernels(cl_context context, const std::vector<DeviceInfo>& devices, const std::vector<Queue>& queues,
          const Abilities& abilities);

  /// Enqueues a launch; `buffer_of(address)` gives the cl_mem of an operand. False if the device cannot run
  /// it, or while kernels are collected: nothing was written then.
  template <class BufferOf>
  bool launch(const TenonLaunch& launch, cl_command_queue queue, BufferOf&& buffer_of) {
    Compiled* const kernel = find(launch);
    if (!kernel) return false;
    cl_mem buffers[kMaxOperands];
    const uint32_t used = gather(launch, buffer_of, buffers);
    uint64_t words[kMaxWords];
    enqueue(*kernel, words, words_of(launch, words), queue, buffers, used);
    return true;
  }
  /// What enqueues the same launch, as often as it is called, and keeps the buffers; null where `launch` is
  /// false.
  template <class BufferOf>
  std::function<void(cl_command_queue)> record(const TenonLaunch& launch, BufferOf&& buffer_of) {
    Compiled* const kernel = find(launch);
    if (!kernel) return nullptr;
    cl_mem buffers[kMaxOperands];
    const uint32_t used = gather(launch, buffer_of, buffers);
    uint64_t words[kMaxWords];
    return recorded(*kernel, words, words_of(launch, words), buffers, used);
  }

  /// From now on launches of kernels that are not compiled yet note them, and decline.
  void collect() noexcept { collecting_.store(true, std::memory_order_relaxed); }
  /// Compiles what was noted, in as few programs as pay. Returns how many kernels they were.
  size_t compile_collected();

  /// A buffer was freed: its handle may be another buffer's soon.
  void forget_buffers() noexcept { epoch_.fetch_add(1, std::memory_order_release); }

  uint64_t num_launches() const noexcept { return launches_.load(std::memory_order_relaxed); }
  uint64_t num_programs() const noexcept { return programs_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kMaxOperands = 32, kMaxWords = 512;
  static constexpr size_t kLocalSize = 64;  // fixed, since some drivers compile again for each size
  static constexpr size_t kLargeGrid = size_t{1} << 16;  // for which PoCL compiles a kernel once more
  static constexpr size_t kKernelsOfAProgram = 64;
  static constexpr uint64_t kNoEpoch = ~uint64_t{0};
  using Variant = std::array<uint64_t, 2>;

  /// A kernel for the launches of one variant. Its arguments are set and used under its lock.
  struct Compiled {
    Kernel kernel;
    uint32_t num_words, num_buffers;
    std::mutex mutex;
    bool ran_large = false;             // a grid of kLargeGrid work-items or more
    uint64_t epoch = kNoEpoch;          // of `buffers`
    cl_mem buffers[kMaxOperands] = {};  // the arguments that are set
  };
  /// What the slot of a program of Tenon's points to: its variants that have been launched. Of one that the
  /// devices cannot run, `kernel` is null.
  struct Link {
    Variant variant;
    Compiled* kernel;
    const Link* next;
  };
  struct Variants {
    std::atomic<const Link*> first{nullptr};
  };
  /// Kernels to compile. Those without doubles come first, and are programs without them.
  struct Noted {
    std::string source;
    uint32_t num_words, num_buffers;
  };
  using NotedKernels = std::map<std::pair<bool, Variant>, Noted>;

  Compiled* find(const TenonLaunch& launch) {
    if (const void* const slot = __atomic_load_n(launch.slot, __ATOMIC_ACQUIRE)) {
      if (const Link* link = find_in(*static_cast<const Variants*>(slot), launch)) return link->kernel;
    }
    return add(launch);
  }
  static const Link* find_in(const Variants& variants, const TenonLaunch& launch) noexcept {
    const Link* link = variants.first.load(std::memory_order_acquire);
    while (link && (link->variant[0] != launch.variant[0] || link->variant[1] != launch.variant[1]))
      link = link->next;
    return link;
  }
  Compiled* add(const TenonLaunch& launch);
  bool runs(const TenonLaunch& launch) const;
  Noted print(const TenonLaunch& launch) const;
  /// Compiles kernels as one program, and runs each over no elements on every device: some drivers compile at
  /// a kernel's first launch, in threads of their own.
  void compile(NotedKernels::const_iterator first, NotedKernels::const_iterator last);
  void run_over_nothing(Compiled& kernel, size_t work_items) const;
  /// The buffers of a launch, in the order of the kernel's arguments; how many they are.
  template <class BufferOf>
  static uint32_t gather(const TenonLaunch& launch, BufferOf&& buffer_of, cl_mem* buffers) {
    const uint32_t count = launch.program->num_outputs + launch.program->num_inputs;
    uint32_t used = 0;
    for (uint32_t k = 0; k < count; ++k) {
      if (launch.operands[k].place == TENON_PLACE_DEVICE)
        buffers[used++] = buffer_of(launch.operands[k].address);
    }
    return used;
  }
  /// The kernel's first argument; how many words it has.
  static uint32_t words_of(const TenonLaunch& launch, uint64_t* words);
  void enqueue(Compiled& kernel, const uint64_t* words, uint32_t num_words, cl_command_queue queue,
               const cl_mem* buffers, uint32_t num_buffers);
  std::function<void(cl_command_queue)> recorded(Compiled& kernel, const uint64_t* words, uint32_t num_words,
                                                 const cl_mem* buffers, uint32_t num_buffers);

  const cl_context context_;
  const std::vector<DeviceInfo>& devices_;
  const std::vector<Queue>& queues_;
  const tenon::abi::Arithmetic arithmetic_;
  size_t parameters_;  // bytes, on every device
  std::atomic<bool> collecting_{false};
  std::atomic<uint64_t> epoch_{0}, launches_{0}, programs_{0};

  std::mutex mutex_;  // of what follows
  std::map<Variant, std::unique_ptr<Compiled>> compiled_;
  NotedKernels noted_;
  std::forward_list<Variants> variants_;
  std::forward_list<Link> links_;
};

}  // namespace opencl
