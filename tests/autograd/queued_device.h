// A device for passes over several devices, in host memory: its work runs only when somebody waits for it,
// and freed memory is overwritten, so that a missing event or a missing record_stream gives wrong numbers,
// every time. Any thread may call it. It has byte copies, expressions, and all else on host copies.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tests/core/queue_runtime.h"
#include "tests/ops/launch_evaluator.h"

namespace tenon::testing {

class QueuedDevice final : public QueueRuntime {
 public:
  static QueuedDevice& get() {
    static QueuedDevice& device = *new QueuedDevice;
    return device;
  }
  static Device device(int index) { return Device(get().backend_, static_cast<int8_t>(index)); }

  void synchronize(Stream stream) override {
    const Lock lock(mutex_);
    QueueRuntime::synchronize(stream);
    return_freed();
  }
  using QueueRuntime::synchronize;

  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place, size_t nbytes,
                  uint32_t flags) override {
    const Lock lock(mutex_);
    const char* source = reinterpret_cast<const char*>(from);
    const bool stays = (flags & kCopyHostStays) != 0;
    if (from_place == Place::Host && !stays) {
      give(stream, [to, bytes = std::vector<char>(source, source + nbytes)] {
        std::memcpy(reinterpret_cast<void*>(to), bytes.data(), bytes.size());
      });
      return;
    }
    copy(to, from, nbytes, stream);
    if (to_place == Place::Host && !stays) synchronize(stream);
  }

  Address allocate(size_t nbytes, Stream) override {
    void* block = std::malloc(std::max<size_t>(nbytes, 1));
    std::memset(block, kUnwritten, nbytes);
    return reinterpret_cast<Address>(block);
  }
  void deallocate(Address address, size_t nbytes, Stream stream) noexcept override {
    const Lock lock(mutex_);
    Freed freed{address, nbytes, {}};
    for (const Stream& user : users_[address]) freed.users.push_back(now(user));
    users_.erase(address);
    give(stream, [this, freed] { freed_.push_back(freed), return_freed(); });
  }
  void record_stream(Address address, Device, Stream user) override {
    const Lock lock(mutex_);
    users_[address].insert(user);
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override {
    give(stream,
         [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes); });
  }
  std::string_view name() const noexcept override { return "queued"; }

 private:
  /// Bytes of a NaN of every floating dtype.
  static constexpr int kUnwritten = 0xFF;
  struct Order {
    bool operator()(const Stream& a, const Stream& b) const noexcept {
      return std::pair(a.device.index, a.id) < std::pair(b.device.index, b.id);
    }
  };

  /// A block that its stream has passed, and those that were recorded for it.
  struct Freed {
    Address address;
    size_t nbytes;
    std::vector<Point> users;
  };
  /// Overwrites and frees what all users have passed; waits for none.
  void return_freed() {
    std::erase_if(freed_, [&](const Freed& f) {
      for (const Point& user : f.users) {
        if (!has_run(user)) return false;
      }
      std::memset(reinterpret_cast<void*>(f.address), kUnwritten, f.nbytes);
      std::free(reinterpret_cast<void*>(f.address));
      return true;
    });
  }

  QueuedDevice() : backend_(register_device("queued", "Queued", "the test")) {
    set_allocator(backend_, this);
    set_device_runtime(backend_, this);
    set_cpu_fallback(backend_, {.kind = FallbackPolicy::Kind::All});
    set_pointwise_device(
        backend_,
        [](void* self, const TenonLaunch& launch) {
          const TenonStream& s = launch.stream;
          static_cast<QueuedDevice*>(self)->give({{s.device.backend, s.device.index}, s.id}, kept(launch));
          return true;
        },
        this);
  }

  const Backend backend_;
  std::map<Address, std::set<Stream, Order>> users_;
  std::vector<Freed> freed_;
};

}  // namespace tenon::testing
