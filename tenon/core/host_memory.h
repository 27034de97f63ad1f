// How much memory the host has, by what the machine, the process's control group and its limits say.
// Used by the host allocator: for its cache's limit, to trim it, and to say why an allocation failed.
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

/// Reads what the system says now, in some tens of microseconds. Takes no memory, so that it can be asked
/// when there is none. What it cannot find out counts as unlimited.
HostMemory host_memory() noexcept;

/// "1.5 GiB"
std::string format_bytes(uint64_t nbytes);

namespace detail {

/// host_memory() of a system whose files (proc/meminfo, sys/fs/cgroup) lie below `root`, "" for this one.
HostMemory host_memory_below(const char* root) noexcept;

}  // namespace detail
}  // namespace tenon
