#include "tenon/core/tensor.h"

#include <gtest/gtest.h>

#include <thread>

#include "tenon/core/parallel.h"
#include "tenon/core/small_alloc.h"
#include "tenon/core/thread_state.h"

namespace tenon {
namespace {

template <class F>
ErrorKind kind_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::Internal;
}

TEST(MakeEmpty, IsContiguousAndOwnsItsBytes) {
  const Tensor t = make_empty({3, 4}, kFloat32);
  EXPECT_EQ(t.sizes(), (Dims{3, 4}));
  EXPECT_EQ(t.strides(), (Dims{4, 1}));
  EXPECT_EQ(t.storage().nbytes(), 48u);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data_ptr()) % 64, 0u);
}

TEST(MakeEmpty, HoldsMoreDimensionsThanFitInPlace) {
  const Dims sizes{2, 1, 3, 1, 2, 1, 2, 2};
  const Tensor t = make_empty(sizes, kInt8);
  EXPECT_EQ(t.sizes(), sizes);
  EXPECT_EQ(t.strides(), contiguous_strides(sizes));
  EXPECT_EQ(t.numel(), 48);
  t.impl()->set_geometry(t.sizes().subspan(2), t.strides().subspan(2), 0);
  EXPECT_EQ(t.sizes(), (Dims{3, 1, 2, 1, 2, 2}));
}

TEST(MakeEmpty, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(kind_of([] { make_empty({-1}, kFloat32); }), ErrorKind::Shape);
  EXPECT_EQ(kind_of([] { make_empty({INT64_MAX, 2}, kFloat32); }), ErrorKind::Shape);
  EXPECT_EQ(kind_of([] { make_empty({INT64_MAX / 2}, kFloat32); }), ErrorKind::Shape);
  EXPECT_EQ(kind_of([] { make_empty({0, INT64_MAX, 2}, kFloat32); }), ErrorKind::Shape);
  EXPECT_EQ(make_empty({0, 5}, kFloat32).numel(), 0);
}

TEST(MakeEmpty, ReportsMemoryThatIsNotToBeHad) {
  EXPECT_EQ(kind_of([] { make_empty({int64_t{1} << 55}, kFloat32); }), ErrorKind::OutOfMemory);
  fail_cpu_allocation_after(1, 1 << 20);
  EXPECT_EQ(kind_of([] { make_empty({1 << 20}, kFloat32); }), ErrorKind::OutOfMemory);
  EXPECT_EQ(make_empty({1 << 20}, kFloat32).numel(), 1 << 20);
}

TEST(MakeEmpty, OnMetaTakesNoMemory) {
  const Tensor t = make_empty({1 << 30, 1 << 20}, kFloat32, kMeta);
  EXPECT_EQ(t.numel(), int64_t{1} << 50);
  EXPECT_TRUE(t.is_meta());
}

TEST(MakeView, SharesStorageAndKeepsItsBase) {
  const Tensor t = make_empty({3, 4}, kFloat64);
  const Tensor v = make_view(t, {4}, {-1}, 11);
  EXPECT_EQ(v.storage().address(), t.storage().address());
  EXPECT_TRUE(v._base().is_same(t));
  EXPECT_TRUE(make_view(v, {2}, {1}, 0)._base().is_same(t));
  EXPECT_FALSE(v.is_contiguous());
  EXPECT_EQ(static_cast<char*>(v.data_ptr()) - static_cast<char*>(t.data_ptr()), 88);
}

TEST(MakeView, InInferenceModeKeepsNoBase) {
  const Tensor t = make_empty({3}, kFloat32);
  const InferenceMode guard;
  EXPECT_FALSE(make_view(t, {1}, {1}, 0).is_view());
}

TEST(EmptyStrided, ReachesEveryElementOfNegativeStrides) {
  const Tensor t = make_empty_strided({3, 2}, {-2, 1}, kFloat32);
  EXPECT_EQ(t.storage().nbytes(), 6 * sizeof(float));
  EXPECT_EQ(t.storage_offset(), 4);
}

TEST(Storage, ForeignMemoryIsGivenBackOnce) {
  static int released = 0;
  float data[4] = {};
  {
    const Storage s = Storage::from_foreign(
        reinterpret_cast<Address>(data), sizeof data, kCPU, [](void*) noexcept { ++released; }, nullptr);
    const Storage copy = s;
    EXPECT_EQ(s.use_count(), 2u);
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, ResizeKeepsTheBytesThatFit) {
  Storage s = Storage::allocate(4);
  std::memcpy(reinterpret_cast<void*>(s.address()), "abcd", 4);
  s.resize(5000);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(s.address()), "abcd", 4), 0);
  s.resize(2);
  EXPECT_EQ(s.nbytes(), 2u);
}

TEST(ChannelsLast, IsContiguousInItsOwnFormat) {
  const Tensor t = make_empty_strided({2, 3, 4, 5}, {60, 1, 15, 3}, kFloat32);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(make_empty({2, 3, 4, 5}, kFloat32).is_contiguous(MemoryFormat::ChannelsLast));
}

TEST(SmallAlloc, BlocksMayBeFreedByAnotherThread) {
  std::vector<void*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(small_allocate(64));
  std::thread([&] {
    for (void* b : blocks) small_free(b, 64);
  }).join();
  void* block = small_allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
  small_free(block, 100);
}

TEST(ParallelFor, CoversTheRangeOnceAndRethrows) {
  const int before = num_threads();
  set_num_threads(3);
  std::vector<int> hits(1000);
  parallel_for(0, 1000, 10, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) ++hits[static_cast<size_t>(i)];
  });
  EXPECT_EQ(hits, std::vector<int>(1000, 1));
  EXPECT_EQ(kind_of([] {
              parallel_for(0, 100, 1, [](int64_t, int64_t) { throw_error(ErrorKind::Value, "of a range"); });
            }),
            ErrorKind::Value);
  set_num_threads(before);
  EXPECT_EQ(kind_of([] { set_num_threads(0); }), ErrorKind::Value);
}

TEST(Device, ParsesNamesAndIndices) {
  EXPECT_EQ(Device("cpu"), kCPU);
  EXPECT_EQ(Device("meta:3").index, 3);
  EXPECT_EQ(kind_of([] { Device("gpu9"); }), ErrorKind::Value);
  EXPECT_EQ(kind_of([] { Device("cpu:x"); }), ErrorKind::Value);
  EXPECT_EQ(kind_of([] { Device("cpu:"); }), ErrorKind::Value);
}

TEST(WrapDim, CountsFromTheEnd) {
  EXPECT_EQ(wrap_dim(-1, 3, "op"), 2);
  EXPECT_EQ(wrap_dim(-1, 0, "op"), 0);
  EXPECT_EQ(kind_of([] { wrap_dim(3, 3, "op"); }), ErrorKind::Index);
}

}  // namespace
}  // namespace tenon
