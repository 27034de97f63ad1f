// Philox in vectors against one block at a time, for every instruction set that this machine has.
#include "backends/cpu/ops/philox_kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "tenon/core/philox.h"

namespace tenon::cpu {
namespace {

TEST(PhiloxKernels, GiveTheWordsOfEachBlock) {
  for (const CpuTarget target : supported_cpu_targets()) {
    for (const uint64_t first :
         {uint64_t{0}, uint64_t{0xFFFFFFF9}, uint64_t{0x123456789ABCDEF0}, ~uint64_t{5}}) {
      for (const uint64_t seed : {uint64_t{0}, uint64_t{0xFEDCBA9876543210}}) {
        for (size_t n = 0; n < 40; ++n) {
          std::vector<uint64_t> words(2 * n + 1, 77);
          philox_kernels(target).blocks(seed, first, n, words.data());
          for (size_t i = 0; i < n; ++i) {
            const random::PhiloxBlock block = random::philox_block(seed, first + i);
            ASSERT_EQ(words[2 * i], random::philox_word64(block, 0))
                << name(target) << ' ' << first << ' ' << i;
            ASSERT_EQ(words[2 * i + 1], random::philox_word64(block, 1)) << name(target) << ' ' << i;
          }
          ASSERT_EQ(words.back(), 77u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
