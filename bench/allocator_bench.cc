// The caching allocator of devices: what a hit and a free cost, and what a replayed training run of batches
// of changing length leaves unused. The device is a counter, so that only the allocator is measured. Run
// pinned: taskset -c 1 build/release/bench/allocator_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tenon/core/caching_allocator.h"
#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"

namespace tenon {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class CountedMemory final : public DeviceMemory {
 public:
  explicit CountedMemory(size_t limit = size_t{8} << 30) : limit_(limit) {}
  Address allocate(Device, size_t nbytes) override {
    if (used_ + nbytes > limit_) return 0;
    used_ += nbytes;
    return reserve({}, nbytes);
  }
  void free(Device, Address, size_t nbytes) noexcept override { used_ -= nbytes; }
  void copy(Address, Address, size_t, Stream) override {}
  Info info(Device) const override { return {limit_, limit_ - used_}; }
  size_t map_granularity() const noexcept override { return 2 * kMiB; }
  Address reserve(Device, size_t nbytes) override {
    return std::exchange(next_, next_ + (nbytes / kMiB + 1) * kMiB);
  }
  bool map(Device, Address, size_t nbytes) override {
    if (used_ + nbytes > limit_) return false;
    used_ += nbytes;
    return true;
  }
  void unmap(Device, Address, size_t nbytes) noexcept override { used_ -= nbytes; }

 private:
  size_t limit_, used_ = 0;
  Address next_ = Address{1} << 40;
};

/// Queues that are always empty.
class IdleRuntime final : public DeviceRuntime {
 public:
  int device_count() const noexcept override { return 1; }
  uint64_t create_stream(Device) override { return 1; }
  void synchronize(Stream) override {}
  uint64_t create_event(Device) override { return 1; }
  void destroy_event(Device, uint64_t) noexcept override {}
  void record(uint64_t, Stream) override {}
  void wait(Stream, Device, uint64_t) override {}
  bool query(Device, uint64_t) override { return true; }
  void synchronize(Device, uint64_t) override {}
};

Backend counted() {
  static const Backend backend = [] {
    const Backend b = register_backend("counted", "Counted");
    set_device_runtime(b, new IdleRuntime);
    return b;
  }();
  return backend;
}

/// One block again and again, beside `range(1)` others.
void hit_and_free(benchmark::State& state) {
  CountedMemory memory;
  CachingAllocator allocator(counted(), memory, {});
  Allocator& used = allocator;
  const Stream stream{Device(counted(), 0), 0};
  const auto nbytes = static_cast<size_t>(state.range(0));
  for (int64_t i = 0; i < state.range(1); ++i) used.allocate(nbytes, stream);
  for (auto _ : state) {
    const Address address = used.allocate(nbytes, stream);
    benchmark::DoNotOptimize(address);
    used.deallocate(address, nbytes, stream);
  }
}
BENCHMARK(hit_and_free)->Args({512, 0})->Args({4096, 1000})->Args({3 << 20, 100})->Args({64 << 20, 10});

/// Random sizes and lifetimes, which split and unite at nearly every step.
void mixed(benchmark::State& state) {
  CountedMemory memory;
  CachingAllocator allocator(counted(), memory, {});
  Allocator& used = allocator;
  const Stream stream{Device(counted(), 0), 0};
  std::mt19937 random(1);
  std::vector<size_t> sizes(4096);
  for (size_t& size : sizes) size = size_t{512} << random() % 12;
  struct Block {
    Address address;
    size_t nbytes;
  };
  std::vector<Block> live(512);
  std::vector<uint32_t> places(4096);
  for (uint32_t& place : places) place = static_cast<uint32_t>(random() % live.size());
  for (Block& block : live) block = {used.allocate(512, stream), 512};
  size_t i = 0;
  for (auto _ : state) {
    Block& block = live[places[i % places.size()]];
    used.deallocate(block.address, block.nbytes, stream);
    block.nbytes = sizes[i++ % sizes.size()];
    block.address = used.allocate(block.nbytes, stream);
  }
}
BENCHMARK(mixed);

/// A block that another stream has used and passed.
void recorded_stream(benchmark::State& state) {
  CountedMemory memory;
  CachingAllocator allocator(counted(), memory, {});
  const Device device(counted(), 0);
  const Stream stream{device, 0}, other{device, 1};
  for (auto _ : state) {
    const Address address = allocator.allocate(4096, stream);
    allocator.record_stream(address, device, other);
    allocator.deallocate(address, 4096, stream);
  }
}
BENCHMARK(recorded_stream);

/// Steps of a transformer of 12 layers and 768 channels in float32, with batches of 8 sequences of random
/// length: weights and their moments stay, activations live until their layer's backward.
void training_run(benchmark::State& state) {
  const bool expandable = state.range(0) != 0;
  MemoryStats stats;
  for (auto _ : state) {
    CountedMemory memory(static_cast<size_t>(state.range(1)) << 30);
    CachingAllocator allocator(counted(), memory, {.expandable = expandable});
    const Device device(counted(), 0);
    const Stream stream{device, 0};
    const auto allocate = [&](size_t floats) { return allocator.allocate(4 * floats, stream); };
    constexpr size_t kLayers = 12, kChannels = 768, kBatch = 8, kHeads = 12;
    for (size_t i = 0; i < 3 * kLayers; ++i) {
      for (const size_t floats : {4 * kChannels * kChannels, 8 * kChannels * kChannels, kChannels, kChannels})
        allocate(floats);
    }
    std::mt19937 random(1);
    for (int step = 0; step < 200; ++step) {
      const size_t length = 64 + random() % 960, rows = kBatch * length;
      const size_t saved[] = {rows * kChannels,
                              3 * rows * kChannels,
                              kBatch * kHeads * length * length,
                              rows * kChannels,
                              4 * rows * kChannels,
                              4 * rows * kChannels,
                              rows};
      std::vector<std::vector<Address>> layers(kLayers);
      for (auto& layer : layers) {
        for (const size_t floats : saved) {
          const Address workspace = allocate(floats / 2 + 1);
          layer.push_back(allocate(floats));
          allocator.deallocate(workspace, 1, stream);
        }
      }
      for (; !layers.empty(); layers.pop_back()) {
        std::vector<Address> gradients;
        for (const size_t floats : saved) gradients.push_back(allocate(floats));
        for (const Address address : layers.back()) allocator.deallocate(address, 1, stream);
        for (const Address address : gradients) allocator.deallocate(address, 1, stream);
      }
    }
    stats = allocator.memory_stats(device);
  }
  state.counters["reserved peak, MiB"] = static_cast<double>(stats.reserved_bytes.peak) / kMiB;
  state.counters["waste, %"] = 100 * stats.waste_peak();
  state.counters["fragmentation peak, %"] = 100 * stats.fragmentation_peak;
  state.counters["retries"] = static_cast<double>(stats.num_alloc_retries);
  state.counters["device calls"] = static_cast<double>(stats.num_device_alloc + stats.num_device_free);
}
BENCHMARK(training_run)
    ->ArgNames({"expandable", "GiB"})
    ->ArgsProduct({{0, 1}, {12, 64}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon

BENCHMARK_MAIN();
