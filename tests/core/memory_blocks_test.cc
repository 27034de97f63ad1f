// Bins and table of blocks against containers of the standard library, over random blocks.
#include "tenon/core/memory_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace tenon {
namespace {

TEST(BlockBins, FindABlockWheneverOneFits) {
  std::mt19937_64 random(1);
  for (const size_t granularity : {size_t{64}, size_t{512}}) {
    BlockBins bins(granularity);
    std::vector<std::unique_ptr<MemoryBlock>> in;
    const auto size = [&] { return granularity * (1 + (random() % 4000 >> random() % 12)); };
    for (int step = 0; step < 20000; ++step) {
      if (in.size() < 100 && random() % 5 < 3) {
        in.push_back(std::make_unique<MemoryBlock>());
        in.back()->address = (random() % 100000) * granularity;
        in.back()->size = size();
        bins.insert(*in.back());
      } else if (!in.empty()) {
        std::swap(in[random() % in.size()], in.back());
        bins.erase(*in.back());
        in.pop_back();
      }
      const size_t least = size(), limit = random() % 2 ? SIZE_MAX : least + size();
      const auto fits = [&](const auto& b) { return b->size >= least && b->size < limit; };
      const MemoryBlock* found = bins.find(least, limit);
      ASSERT_EQ(found != nullptr, std::any_of(in.begin(), in.end(), fits));
      size_t largest = 0;
      for (const auto& b : in) largest = std::max(largest, b->size);
      ASSERT_EQ(bins.largest(), largest);
      if (!found) continue;
      ASSERT_TRUE(fits(found));
      // Small sizes have a bin each: the smallest that fits, and of those the lowest.
      if (found->size >= 64 * granularity) continue;
      for (const auto& b : in) {
        ASSERT_FALSE(fits(b) && b->size < found->size);
        ASSERT_FALSE(b->size == found->size && b->address < found->address);
      }
    }
  }
}

TEST(BlockBins, TakeALargerBlockOnlyIfNoneOfAboutTheSizeFits) {
  BlockBins bins(512);
  MemoryBlock equal, larger, smaller;
  smaller.size = 1'000'000 / 512 * 512 - 512;
  equal.size = 1'000'000 / 512 * 512;
  larger.size = 2'000'384;
  equal.address = 1 << 30;
  for (MemoryBlock* b : {&larger, &smaller, &equal}) bins.insert(*b);
  EXPECT_EQ(bins.find(equal.size), &equal);
  bins.erase(equal);
  EXPECT_EQ(bins.find(equal.size), &larger);
  EXPECT_EQ(bins.find(equal.size, larger.size), nullptr);
  EXPECT_EQ(bins.find(smaller.size, larger.size), &smaller);
}

TEST(BlockTable, FindsWhatAMapFinds) {
  std::mt19937_64 random(2);
  BlockTable table;
  std::unordered_map<Address, std::unique_ptr<MemoryBlock>> known;
  for (int step = 0; step < 50000; ++step) {
    const Address address = 512 * (random() % 3000);
    if (random() % 3 > 0 && !known.contains(address)) {
      auto& block = known[address] = std::make_unique<MemoryBlock>();
      block->address = address;
      table.reserve_one();
      table.insert(*block);
    } else {
      const auto found = known.find(address);
      ASSERT_EQ(table.take(address), found == known.end() ? nullptr : found->second.get());
      if (found != known.end()) known.erase(found);
    }
    const Address other = 512 * (random() % 3000);
    const auto found = known.find(other);
    ASSERT_EQ(table.find(other), found == known.end() ? nullptr : found->second.get());
  }
  size_t count = 0;
  table.for_each([&](const MemoryBlock&) { ++count; });
  EXPECT_EQ(count, known.size());
}

}  // namespace
}  // namespace tenon
