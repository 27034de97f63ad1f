// What the fuzzes of files share: bytes with some changes, how many to try, and a bound on the memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/counts.h"

namespace tenon::testing {

/// How many altered files of a kind a test tries: what TENON_MUTATIONS says, or `usually`.
inline int mutations(int usually) { return count_of("TENON_MUTATIONS", usually); }

/// Fails where the process needs more memory than 64 MB and twice a file while this lives. Not under a
/// sanitizer, which keeps what is freed.
class MemoryBound {
 public:
  explicit MemoryBound(size_t file) : most_(peak() + (size_t{64} << 20) + 2 * file) {}
  ~MemoryBound() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LE(peak(), most_);
#endif
  }
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

 private:
  static size_t peak() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
    return 0;
  }
  const size_t most_;
};

/// One to three changes behind the first `kept` bytes: another value, a flipped bit, a byte less or more, a
/// copy of another place.
inline std::vector<std::byte> altered(std::vector<std::byte> bytes, std::mt19937_64& rng, size_t kept = 0) {
  const auto below = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  for (size_t n = 1 + below(3); n > 0; --n) {
    const size_t at = kept + below(bytes.size() - kept);
    const auto place = bytes.begin() + static_cast<ptrdiff_t>(at);
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<std::byte>(rng());
        break;
      case 1:
        bytes[at] ^= static_cast<std::byte>(1 << below(8));
        break;
      case 2:
        bytes.erase(place);
        break;
      case 3:
        bytes.insert(place, static_cast<std::byte>(below(4)));
        break;
      default:
        bytes[at] = bytes[kept + below(bytes.size() - kept)];
    }
  }
  return bytes;
}

}  // namespace tenon::testing
