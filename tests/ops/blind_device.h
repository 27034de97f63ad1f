// A device for tests that the host cannot look into: its addresses are no addresses of the host, so that
// every hidden access faults, and its work runs only when somebody waits, so that a missing wait reads what
// was there before. It has an allocator and byte copies, and nothing else.
#pragma once

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "tests/core/queue_runtime.h"

namespace tenon::testing {

class BlindDevice final : public QueueRuntime {
 public:
  /// Registers a backend of that name with so many devices; lives as long as the process.
  static BlindDevice& make(const char* name, const char* key, int devices = 2) {
    auto& device = *new BlindDevice(devices);
    device.backend_ = register_device(name, key, "the test");
    set_allocator(device.backend_, &device);
    set_device_runtime(device.backend_, &device);
    return device;
  }
  Backend backend() const noexcept { return backend_; }
  Device device(int index = 0) const noexcept { return Device(backend_, static_cast<int8_t>(index)); }

  void synchronize(Stream stream) override {
    const Lock lock(mutex_);
    ++waits;
    QueueRuntime::synchronize(stream);
  }
  void synchronize(Device device, uint64_t event) override {
    const Lock lock(mutex_);
    ++waits;
    QueueRuntime::synchronize(device, event);
  }

  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place, size_t nbytes,
                  uint32_t flags) override {
    ++copies;
    auto* dst = real(to, to_place);
    const auto* src = real(from, from_place);
    const bool stays = (flags & kCopyHostStays) != 0;
    if (from_place == Place::Host && !stays) {
      // The caller may change its memory when the call has returned.
      give(stream, [dst, bytes = std::vector<char>(src, src + nbytes)] {
        std::memcpy(dst, bytes.data(), bytes.size());
      });
      return;
    }
    give(stream, [=] { std::memmove(dst, src, nbytes); });
    if (to_place == Place::Host && !stays) synchronize(stream);
  }

  Allocator* pinned_memory() noexcept override { return pinned; }

  Address allocate(size_t nbytes, Stream) override {
    auto* block = static_cast<char*>(std::aligned_alloc(64, (nbytes + 127) / 64 * 64));
    std::memset(block, 0x7B, nbytes);
    {
      const std::lock_guard lock(blocks_mutex_);
      blocks_.insert(block);
    }
    return reinterpret_cast<Address>(block) | kHidden;
  }
  void deallocate(Address address, size_t nbytes, Stream stream) noexcept override {
    give(stream, [=, this] {
      std::memset(real(address, Place::Device), 0x5D, nbytes);
      const std::lock_guard lock(blocks_mutex_);
      blocks_.erase(real(address, Place::Device));
      std::free(real(address, Place::Device));
    });
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override {
    ++copies;
    give(stream, [=, this] { std::memmove(real(to, Place::Device), real(from, Place::Device), nbytes); });
  }
  std::string_view name() const noexcept override { return "blind"; }

  /// Where a device's address really is, for work of its streams.
  static char* real(Address address, Place place) noexcept {
    return reinterpret_cast<char*>(place == Place::Device ? address & ~kHidden : address);
  }

  int waits = 0;   ///< How often the host has waited.
  int copies = 0;  ///< Copies of bytes that were asked for.
  Allocator* pinned = nullptr;

 private:
  // A leak checker does not see through hidden addresses: what is freed by work that nobody waited for is
  // here.
  std::mutex blocks_mutex_;
  std::set<void*> blocks_;
  /// No address of a process has this bit without all those above it.
  static constexpr Address kHidden = Address{1} << 62;
  explicit BlindDevice(int devices) : QueueRuntime(devices) {}

  Backend backend_ = 0;
};

}  // namespace tenon::testing
