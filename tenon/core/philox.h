// Philox4x32-10: random words as a function of key and counter, without state. Used by the kernels of random
// operators on every device; any element of a stream can be computed on its own, in any order. Source:
// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace tenon::random {

/// 128 random bits.
using PhiloxBlock = std::array<uint32_t, 4>;

/// Multipliers of the first and third word of the counter, and what each round adds to the key.
inline constexpr uint32_t kPhiloxMultipliers[] = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr uint32_t kPhiloxKeySteps[] = {0x9E3779B9u, 0xBB67AE85u};
inline constexpr int kPhiloxRounds = 10;

/// Ten rounds of Philox applied to `counter` with `key`.
constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<uint32_t, 2> key) noexcept {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t a = uint64_t{kPhiloxMultipliers[0]} * counter[0];
    const uint64_t b = uint64_t{kPhiloxMultipliers[1]} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kPhiloxKeySteps[0];
    key[1] += kPhiloxKeySteps[1];
  }
  return counter;
}

/// Block `index` of the stream of `seed`.
constexpr PhiloxBlock philox_block(uint64_t seed, uint64_t index) noexcept {
  return philox4x32_10({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                       {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

/// Bits 64 h to 64 h + 63 of a block.
constexpr uint64_t philox_word64(const PhiloxBlock& block, int h) noexcept {
  return static_cast<uint64_t>(block[static_cast<size_t>(2 * h + 1)]) << 32 |
         block[static_cast<size_t>(2 * h)];
}

// How words become numbers. Every device does it the same way, so that a seed means the same everywhere.

/// Uniform in [0, 1), with 24 bits for float and 53 for double.
constexpr float uniform_float(uint32_t word) noexcept { return static_cast<float>(word >> 8) * 0x1p-24f; }
constexpr double uniform_double(uint64_t word) noexcept { return static_cast<double>(word >> 11) * 0x1p-53; }
/// Uniform in (0, 1], with fine steps near 0: for use in a logarithm.
constexpr float positive_float(uint32_t word) noexcept {
  return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}
constexpr double positive_double(uint64_t word) noexcept {
  return static_cast<double>(word) * 0x1p-64 + 0x1p-65;
}
/// Uniform from 0 to range - 1, where a range of 0 means 2^64. Takes the high half of a product; the bias is
/// below range / 2^64.
constexpr uint64_t uniform_below(uint64_t word, uint64_t range) noexcept {
  __extension__ using Wide = unsigned __int128;
  return range == 0 ? word : static_cast<uint64_t>((static_cast<Wide>(word) * range) >> 64);
}

}  // namespace tenon::random
