// An allocator of host memory under a device's name, and a device of it whose work is done when the call
// returns: what tests register that want a backend of their own and no more.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tenon/core/allocator.h"
#include "tests/core/immediate_runtime.h"

namespace tenon::testing {

class HostMemory final : public Allocator {
 public:
  /// The name lives as long as the allocator.
  explicit HostMemory(std::string_view name) noexcept : name_(name) {}
  Address allocate(size_t nbytes, Stream) override {
    return reinterpret_cast<Address>(std::aligned_alloc(64, (nbytes + 64) / 64 * 64));
  }
  void deallocate(Address address, size_t, Stream) noexcept override {
    std::free(reinterpret_cast<void*>(address));
  }
  void copy(Address to, Address from, size_t nbytes, Stream) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), nbytes);
  }
  std::string_view name() const noexcept override { return name_; }

 private:
  std::string_view name_;
};

/// Registers one device of that name; the name and what serves it live as long as the process.
inline Backend host_memory_device(const char* name, const char* key) {
  const Backend backend = register_device(name, key, "the test");
  set_allocator(backend, new HostMemory(name));
  set_device_runtime(backend, new ImmediateRuntime(1));
  return backend;
}

}  // namespace tenon::testing
