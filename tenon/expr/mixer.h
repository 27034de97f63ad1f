// Mixer: 128-bit hashes that are the same on every machine and in every process. Used for keys of expressions
// and for variants of launches.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "tenon/expr/key.h"

namespace tenon::expr {

/// Two lanes of multiply and rotate, finished as MurmurHash3 does.
class Mixer {
 public:
  void add(uint64_t v) noexcept {
    a_ = (std::rotl(a_, 27) ^ v) * 0x9E3779B97F4A7C15u + 0x52DCE729u;
    b_ = (std::rotl(b_, 31) + v) * 0xC2B2AE3D27D4EB4Fu ^ (a_ >> 29);
  }
  void add(const Key& k) noexcept {
    add(k.high);
    add(k.low);
  }
  void add(std::string_view text) noexcept {
    add(uint64_t{text.size()});
    for (const char c : text) add(uint64_t{static_cast<unsigned char>(c)});
  }
  Key take() const noexcept {
    const uint64_t a = finish(a_ + b_), b = finish(b_ ^ std::rotl(a, 17));
    return {a + b, b};
  }

 private:
  static uint64_t finish(uint64_t v) noexcept {
    v = (v ^ (v >> 33)) * 0xFF51AFD7ED558CCDu;
    v = (v ^ (v >> 33)) * 0xC4CEB9FE1A85EC53u;
    return v ^ (v >> 33);
  }
  uint64_t a_ = 0x243F6A8885A308D3u, b_ = 0x13198A2E03707344u;
};

}  // namespace tenon::expr
