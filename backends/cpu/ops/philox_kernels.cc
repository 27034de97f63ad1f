// Philox4x32-10 in vectors, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/ops/philox_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>

#include "backends/cpu/ops/philox_kernels.h"
#include "hwy/highway.h"
#include "tenon/core/philox.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A block for each lane of 64 bits. Of the counter's four words the lower halves of lanes count: products
// read no others, and what is in the upper ones is shifted out at the end.
template <class D>
HWY_INLINE void vector_of_blocks(D d, uint64_t seed, uint64_t first, uint64_t* words) {
  const hn::Repartition<uint32_t, D> d32;
  const auto index = hn::Add(hn::Set(d, first), hn::Iota(d, 0));
  auto c0 = index, c1 = hn::ShiftRight<32>(index), c2 = hn::Zero(d), c3 = hn::Zero(d);
  const auto m0 = hn::Set(d32, random::kPhiloxMultipliers[0]),
             m1 = hn::Set(d32, random::kPhiloxMultipliers[1]);
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < random::kPhiloxRounds; ++round) {
    const auto a = hn::MulEven(hn::BitCast(d32, c0), m0), b = hn::MulEven(hn::BitCast(d32, c2), m1);
    c0 = hn::Xor3(hn::ShiftRight<32>(b), c1, hn::Set(d, key0));
    c1 = b;
    c2 = hn::Xor3(hn::ShiftRight<32>(a), c3, hn::Set(d, key1));
    c3 = a;
    key0 += random::kPhiloxKeySteps[0];
    key1 += random::kPhiloxKeySteps[1];
  }
  const auto low = hn::Set(d, 0xFFFFFFFF);
  hn::StoreInterleaved2(hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1)),
                        hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3)), d, words);
}

void blocks(uint64_t seed, uint64_t first, size_t n, uint64_t* words) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) vector_of_blocks(d, seed, first + i, words + 2 * i);
  if (i == n) return;
  HWY_ALIGN uint64_t rest[2 * hn::MaxLanes(d)];
  vector_of_blocks(d, seed, first + i, rest);
  std::copy_n(rest, 2 * (n - i), words + 2 * i);
}

constexpr PhiloxKernels kPhiloxKernels{&blocks};

}  // namespace

constexpr const PhiloxKernels* kTable = &kPhiloxKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const PhiloxKernels& philox_kernels(CpuTarget target) noexcept {
  static constexpr const PhiloxKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
