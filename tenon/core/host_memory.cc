#include "tenon/core/host_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace tenon {
namespace {

/// A short file in a buffer on the stack, because there may be no memory.
class ShortFile {
 public:
  ShortFile(const char* root, const char* path) noexcept {
    char name[1024];
    const int length = std::snprintf(name, sizeof name, "%s%s", root, path);
    if (length < 0 || static_cast<size_t>(length) >= sizeof name) return;
    const int file = ::open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    while (size_ < sizeof text_) {
      const ssize_t n = ::read(file, text_ + size_, sizeof text_ - size_);
      if (n <= 0) break;
      size_ += static_cast<size_t>(n);
    }
    ::close(file);
  }
  std::string_view text() const noexcept { return {text_, size_}; }

  /// The number at the start of the file; `kUnlimited` for no number ("max").
  uint64_t number() const noexcept { return parse(text()); }
  /// The number after `name` at the start of a line; `otherwise` where there is none.
  uint64_t value(std::string_view name, uint64_t otherwise) const noexcept {
    std::string_view rest = text();
    while (!rest.empty()) {
      if (rest.substr(0, name.size()) == name) return parse(rest.substr(name.size()));
      const size_t end = rest.find('\n');
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
    return otherwise;
  }
  /// The `index`-th number of the file, counted from 0.
  uint64_t column(int index) const noexcept {
    std::string_view rest = text();
    for (; index > 0; --index) {
      const size_t end = rest.find(' ');
      if (end == std::string_view::npos) return HostMemory::kUnlimited;
      rest.remove_prefix(end + 1);
    }
    return parse(rest);
  }

 private:
  static uint64_t parse(std::string_view text) noexcept {
    const size_t start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) return HostMemory::kUnlimited;
    uint64_t number = 0;
    size_t i = start;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      number = 10 * number + static_cast<uint64_t>(text[i] - '0');
    return i == start ? HostMemory::kUnlimited : number;
  }

  char text_[8192];
  size_t size_ = 0;
};

/// How a version of control groups names what it says.
struct GroupFiles {
  std::string_view line;  // of /proc/self/cgroup, before the group's path
  const char* folder;
  const char* limit;
  const char* used;
  std::string_view reclaimable;  // in memory.stat: page cache that goes when memory is needed
};
constexpr GroupFiles kVersions[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
};

/// Narrows `memory` by the group at `path` below the folder of `files`, if it has a limit.
void apply_group(const char* root, const GroupFiles& files, std::string_view path,
                 HostMemory& memory) noexcept {
  char name[1024];
  const auto read = [&](const char* file) {
    std::snprintf(name, sizeof name, "%s%.*s/%s", files.folder, static_cast<int>(path.size()), path.data(),
                  file);
    return ShortFile(root, name);
  };
  const uint64_t limit = read(files.limit).number();
  if (limit >= memory.total) return;  // the first version says "no limit" by a huge number
  const uint64_t used = read(files.used).number();
  if (used == HostMemory::kUnlimited) return;
  const uint64_t busy = used - std::min(used, read("memory.stat").value(files.reclaimable, 0));
  memory.total = limit;
  memory.available = std::min(memory.available, limit > busy ? limit - busy : 0);
}

/// Narrows `memory` by the process's control group and all groups above it.
void apply_groups(const char* root, HostMemory& memory) noexcept {
  const ShortFile groups(root, "/proc/self/cgroup");
  for (const GroupFiles& files : kVersions) {
    const size_t at = groups.text().find(files.line);
    if (at == std::string_view::npos) continue;
    std::string_view path = groups.text().substr(at + files.line.size());
    path = path.substr(0, path.find('\n'));
    if (path.size() > 512 || path.find("/..") != std::string_view::npos) path = {};
    for (;;) {
      while (!path.empty() && path.back() == '/') path.remove_suffix(1);
      apply_group(root, files, path, memory);
      if (path.empty()) break;
      path = path.substr(0, path.rfind('/'));
    }
  }
}

void apply_limit(decltype(RLIMIT_AS) kind, uint64_t used, HostMemory& memory) noexcept {
  rlimit limit;
  if (::getrlimit(kind, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || used == HostMemory::kUnlimited)
    return;
  const auto left = [](uint64_t most, uint64_t taken) { return most > taken ? most - taken : 0; };
  if (memory.address_limit != HostMemory::kUnlimited &&
      left(limit.rlim_cur, used) >= left(memory.address_limit, memory.address_used))
    return;
  memory.address_limit = limit.rlim_cur;
  memory.address_used = used;
}

}  // namespace

HostMemory detail::host_memory_below(const char* root) noexcept {
  constexpr uint64_t kUnknown = HostMemory::kUnlimited;
  HostMemory memory;
  const ShortFile machine(root, "/proc/meminfo");
  const auto kib = [&](std::string_view name) {
    const uint64_t n = machine.value(name, kUnknown);
    return n == kUnknown ? kUnknown : 1024 * n;
  };
  memory.total = kib("MemTotal:");
  memory.available = kib("MemAvailable:");
  apply_groups(root, memory);

  const ShortFile process(root, "/proc/self/statm");
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto pages = [&](int column) {
    const uint64_t n = process.column(column);
    return n == kUnknown ? kUnknown : page * n;
  };
  apply_limit(RLIMIT_AS, pages(0), memory);
  apply_limit(RLIMIT_DATA, pages(5), memory);
  return memory;
}

HostMemory host_memory() noexcept { return detail::host_memory_below(""); }

std::string format_bytes(uint64_t nbytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (nbytes < 1024) return fmt::format("{} bytes", nbytes);
  double value = static_cast<double>(nbytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace tenon
