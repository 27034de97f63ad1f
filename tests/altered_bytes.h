// What the fuzzes of files share: bytes with some changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

namespace tenon::testing {

/// How many altered files of a kind a test tries: what TENON_MUTATIONS says, or `usually`.
inline int mutations(int usually) {
  const char* const asked = std::getenv("TENON_MUTATIONS");
  return asked ? std::atoi(asked) : usually;
}

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
