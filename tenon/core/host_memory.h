// How much memory the host has, according to the machine, the process's control group and the process's
// limits. Used by the host allocator to limit and trim its cache, and to say why an allocation failed.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// In bytes.
struct HostMemory {
  /// No limit of this kind.
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  uint64_t total = kUnlimited;          ///< Of the machine, or of the control group that has the least.
  uint64_t available = kUnlimited;      ///< What a new allocation may use of that without swapping.
  uint64_t address_limit = kUnlimited;  ///< RLIMIT_AS or RLIMIT_DATA, whichever leaves the process less.
  uint64_t address_used = 0;            ///< What the process uses of it.

  /// What a new allocation may use under all of these.
  uint64_t obtainable() const noexcept {
    const uint64_t left = address_limit > address_used ? address_limit - address_used : 0;
    return left < available ? left : available;
  }
};

/// Reads the current numbers from the system, which takes some tens of microseconds. Allocates nothing, so
/// that it works when no memory is left. What it cannot find out counts as unlimited.
HostMemory host_memory() noexcept;

/// "1.5 GiB"
std::string format_bytes(uint64_t nbytes);

namespace detail {

/// As host_memory(), with the system's files (proc/meminfo, sys/fs/cgroup) below `root`; "" is this system.
HostMemory host_memory_below(const char* root) noexcept;

}  // namespace detail
}  // namespace tenon
