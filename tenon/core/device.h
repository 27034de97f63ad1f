// Device: a backend and an index on it, and the table of backend names. Used by every room. Independent of
// what a device can do, which is up to its allocator and kernels.
#pragma once

#include <atomic>
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
  /// Parses "name" or "name:index". A device that is not there yet is looked for and loaded (plugin/load.h).
  /// PyTorch's own names, such as cuda, are devices without one, too: tensors cannot be made there.
  /// Throws Error{Value} for a malformed text or an unknown name, and what loading throws.
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
/// "no loaded device is called 'cuda'; there are cpu, meta": for messages.
std::string no_such_device(std::string_view name);

/// Returns the number of the backend called `name`, and assigns one if it has none yet: kernels may be
/// registered before their device. `key` is the spelling used in dispatch keys ("CUDA" gives CUDA and
/// AutogradCUDA). Throws Error{Device} if all 32 numbers are taken or another backend has the key;
/// Error{Value} if the name has characters other than lower-case letters, digits and underscores, or if the
/// key has characters other than letters and digits or begins with the prefix of another functionality
/// (SparseGpu).
Backend register_backend(std::string_view name, std::string_view key);
/// Registers the device itself, once in the process, and returns its backend as `register_backend` does.
/// `owner`, a file or a library, is named in error messages. Also throws Error{Device}, naming the owner, if
/// a device of that name is registered already; cpu and meta are built in.
Backend register_device(std::string_view name, std::string_view key, std::string_view owner);
/// The backend of the key PrivateUse1: that of the first device that was registered, whatever
/// else was registered before it. Until then it is a place of its own, called privateuseone, which that
/// device adopts.
Backend private_use_backend();
/// The same, if a program asked for it or registered a device.
std::optional<Backend> find_private_use_backend() noexcept;
/// Takes a device's registration back: a place that it made is free again, and one that kernels had reserved
/// stays reserved. With `reserved`, its own stays too, under its name: kernels of other libraries are there.
void release_device(Backend backend, bool reserved = false) noexcept;
std::optional<Backend> find_backend(std::string_view name) noexcept;
/// The backend whose dispatch keys are spelled with `key`.
std::optional<Backend> find_backend_by_key(std::string_view key) noexcept;
std::string_view backend_name(Backend backend) noexcept;
std::string_view backend_key(Backend backend) noexcept;
/// The number of backends registered so far, not counting meta: the width of an operator table less one.
int live_backends() noexcept;

namespace detail {
/// Loads the device of a name, where there is a file for it. Filled in by tenon/plugin.
extern std::atomic<void (*)(std::string_view name)> load_missing_device;
}  // namespace detail

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

/// The order of dimensions in memory that a caller asks a result to have.
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

}  // namespace tenon
