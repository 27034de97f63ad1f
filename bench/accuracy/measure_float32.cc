// Every float32, in blocks of neighbours; of odd and even functions one reference for x and -x.
#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "bench/accuracy/kernel.h"
#include "bench/accuracy/measure.h"

namespace tenon::accuracy {

namespace {

constexpr size_t kBlock = 2048;
constexpr uint32_t kSignBit = 0x80000000u;

struct Block {
  std::array<float, kBlock> x, got, other;
  std::array<double, kBlock> wide_x, want;
};

void compare(Tally& tally, const Block& b, const std::array<float, kBlock>& got, size_t n, double sign) {
  for (size_t i = 0; i < n; ++i) {
    const double want = sign * b.want[i];
    const float nearest = static_cast<float>(want);
    if (same_bits(got[i], nearest)) continue;
    tally.add(ulp_error(kFormatFloat32, got[i], nearest, want), b.x[i], 0, got[i]);
  }
}

/// The numbers whose bits are `first`, `first + step`, ..., and the same with the other sign.
void measure_block(const MathFunction& f, const Kernel& kernel, Block& b, uint32_t first, uint32_t step,
                   size_t n, bool without_fma, Tally& tally) {
  const auto targets = cpu::supported_cpu_targets();
  for (const bool negative : {false, true}) {
    for (size_t i = 0; i < n; ++i) {
      const uint32_t bits = first + static_cast<uint32_t>(i) * step;
      b.x[i] = std::bit_cast<float>(negative ? bits | kSignBit : bits);
      b.wide_x[i] = b.x[i];
    }
    kernel.run(targets.back(), b.x.data(), b.x.data(), b.got.data(), n);
    if (!negative || f.symmetry == Symmetry::None) f.in_double(b.wide_x.data(), b.want.data(), n);
    const double sign = negative && f.symmetry == Symmetry::Odd ? -1 : 1;
    compare(tally, b, b.got, n, sign);
    tally.inputs += n;
    if (without_fma) tally.without_fma += n;
    for (const cpu::CpuTarget target : targets.first(targets.size() - 1)) {
      if (!without_fma && !has_fma(target)) continue;
      kernel.run(target, b.x.data(), b.x.data(), b.other.data(), n);
      size_t differences = 0;
      for (size_t i = 0; i < n; ++i) differences += !same_bits(b.got[i], b.other[i]);
      tally.differences += differences;
      if (differences != 0) compare(tally, b, b.other, n, sign);
    }
  }
}

}  // namespace

bool has_fma(cpu::CpuTarget target) noexcept { return name(target) != "SSE4"; }

Tally measure_float32(const MathFunction& f, uint32_t step, uint64_t without_fma_every, int threads) {
  const Kernel kernel(f.text, expr::Type::F32);
  const uint64_t numbers = (uint64_t{kSignBit} + step - 1) / step;
  const uint64_t blocks = (numbers + kBlock - 1) / kBlock;
  std::vector<Tally> tallies(static_cast<size_t>(threads));
  const auto work = [&](size_t thread) {
    const auto block = std::make_unique<Block>();
    // A local tally: the threads' own would share a cache line.
    Tally tally;
    for (uint64_t i = thread; i < blocks; i += static_cast<uint64_t>(threads)) {
      const uint64_t begin = i * kBlock;
      measure_block(f, kernel, *block, static_cast<uint32_t>(begin * step), step,
                    static_cast<size_t>(std::min<uint64_t>(kBlock, numbers - begin)),
                    i % without_fma_every == 0, tally);
    }
    tallies[thread] = tally;
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < tallies.size(); ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& t : others) t.join();
  Tally sum;
  for (const Tally& t : tallies) sum.merge(t);
  return sum;
}

}  // namespace tenon::accuracy
