// Device: a backend and an index on it, and the table of backend names.
// Used by every room. Knows nothing of what a device can do; that is the allocator's and the kernels'
// business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tenon/core/key_set.h"

namespace tenon {

/// Where a tensor's storage lives, such as `cpu`, `meta` or `cuda:1`. Index -1 means the current device
/// (core/stream.h).
struct Device {
  Backend backend = kCpuBackend;
  int8_t index = -1;

  constexpr Device() = default;
  constexpr Device(Backend b, int8_t i = -1) : backend(b), index(i) {}
  /// Parses "name" or "name:index". Throws Error{Value} for a malformed text or a name that nobody
  /// registered.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}

  bool is_cpu() const noexcept { return backend == kCpuBackend; }
  bool is_meta() const noexcept { return backend == kMetaBackend; }
  friend constexpr bool operator==(Device, Device) = default;
};

inline constexpr Device kCPU{kCpuBackend};
inline constexpr Device kMeta{kMetaBackend};

/// "cpu", "cuda:1".
std::string to_string(Device device);

/// Gives `name` a place among the backends, or returns the one that it has: kernels may come before their
/// device. `key` is how its dispatch keys are spelled ("CUDA" makes CUDA, AutogradCUDA). Throws Error{Device}
/// when all 32 are taken, or the key is another backend's; Error{Value} for a name that is not lower-case
/// letters, digits and underscores, and for a key that is not letters and digits or begins as those of
/// another kind (SparseGpu).
Backend register_backend(std::string_view name, std::string_view key);
/// The same for the device itself, once in the process. `owner` says in errors who registered it: a file, a
/// library. Throws Error{Device} as well for a name that is a device already, naming its owner; cpu and meta
/// are built in.
Backend register_device(std::string_view name, std::string_view key, std::string_view owner);
std::optional<Backend> find_backend(std::string_view name) noexcept;
/// By the spelling of its dispatch key.
std::optional<Backend> find_backend_by_key(std::string_view key) noexcept;
std::string_view backend_name(Backend backend) noexcept;
std::string_view backend_key(Backend backend) noexcept;
/// Backends registered so far, meta not counted: the width of an operator table less one.
int live_backends() noexcept;

/// How the elements of a tensor are arranged.
enum class Layout : uint8_t { Strided, Sparse, SparseCsr, Blocked };
std::string_view name(Layout layout) noexcept;
/// The functionality that serves tensors of a layout.
constexpr Functionality functionality_of(Layout layout) noexcept {
  switch (layout) {
    case Layout::Sparse:
      return Functionality::Sparse;
    case Layout::SparseCsr:
      return Functionality::SparseCsr;
    case Layout::Blocked:
      return Functionality::Blocked;
    case Layout::Strided:
      break;
  }
  return Functionality::Dense;
}

/// A wish for the strides of a result.
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

}  // namespace tenon
