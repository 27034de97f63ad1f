#include "tenon/core/storage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/core/tensor.h"
#include "tests/core/immediate_runtime.h"

namespace tenon {
namespace {

/// Gives storages their bytes, all `value`, and says how often it was asked.
struct FillLater final : PendingWork {
  explicit FillLater(uint8_t v) : value(v) {}
  void materialize(StorageImpl& storage) override {
    const std::lock_guard lock(mutex);
    if (!storage.is_pending()) return;
    ++ran;
    if (fail) throw_error(ErrorKind::OutOfMemory, "later: no memory");
    const Storage bytes = Storage::allocate(storage.nbytes());
    std::memset(reinterpret_cast<void*>(bytes.address()), value, storage.nbytes());
    storage.take_bytes(*bytes);
    storage.set_done();
  }
  std::mutex mutex;
  uint8_t value;
  int ran = 0;
  bool fail = false;
};

TEST(PendingStorage, RunsAtTheFirstAccessAndOnce) {
  FillLater later(7);
  for (const size_t nbytes : {size_t{8}, size_t{8000}}) {
    later.ran = 0;
    Storage storage = Storage::deferred(nbytes, &later);
    const Tensor t(TensorImpl::make(storage, kUInt8, {2, static_cast<int64_t>(nbytes) / 2}));
    const Tensor row = make_view(t, {4}, {1}, 4);
    EXPECT_EQ(row.storage().nbytes(), nbytes);
    EXPECT_EQ(row._version(), 0u);
    EXPECT_EQ(later.ran, 0) << "sizes, views and versions need no bytes";
    EXPECT_EQ(row.data_ptr<uint8_t>()[3], 7);
    EXPECT_EQ(t.data_ptr<uint8_t>() + 4, row.data_ptr<uint8_t>());
    EXPECT_EQ(later.ran, 1);
    EXPECT_FALSE(storage->is_pending());
    storage.resize(16);
    EXPECT_EQ(storage.nbytes(), 16u) << "it is an ordinary storage now";
  }
}

TEST(PendingStorage, StaysPendingWhenItFailsAndMayDieUnread) {
  FillLater later(1);
  later.fail = true;
  Storage storage = Storage::deferred(4, &later);
  EXPECT_THROW(storage.address(), Error);
  EXPECT_TRUE(storage->is_pending());
  later.fail = false;
  EXPECT_EQ(*reinterpret_cast<uint8_t*>(storage.address()), 1);
  const Storage unread = Storage::deferred(4, &later), large = Storage::deferred(4000, &later);
  EXPECT_EQ(later.ran, 2);
}

TEST(PendingStorage, FailsForEverOnceItHasFailed) {
  FillLater later(1);
  Storage storage = Storage::deferred(4000, &later);
  storage->set_failed(std::make_exception_ptr(Error(ErrorKind::Index, "later: no such row")));
  EXPECT_THROW(storage.address(), Error);
  EXPECT_THROW(storage.address(), Error);
}

TEST(PendingStorage, AConcreteStorageMayBecomePendingAndKeepsItsAddress) {
  FillLater later(3);
  Storage storage = Storage::allocate(4000);
  const Address address = storage.address();
  storage->set_pending(&later);
  EXPECT_EQ(storage->address_now(), address);
  EXPECT_EQ(storage.address(), address);
  EXPECT_EQ(*reinterpret_cast<uint8_t*>(address), 3);
}

TEST(PendingStorage, ReferencesOfRecordersAreNoUses) {
  const Storage storage = Storage::allocate(4), another = storage;
  EXPECT_EQ(storage.use_count(), 2u);
  another->add_recorder();
  EXPECT_EQ(storage.use_count(), 1u);
  another->remove_recorder();
  EXPECT_EQ(storage.use_count(), 2u);
}

TEST(PendingStorage, ThreadsThatReadTogetherRunItOnce) {
  FillLater later(9);
  Storage storage = Storage::deferred(64, &later);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { right += *reinterpret_cast<uint8_t*>(storage.address()) == 9; });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(later.ran, 1);
}

/// Host memory that poses as a device's, and says for which device it was asked.
struct LabelledAllocator final : Allocator {
  Address allocate(size_t nbytes, Stream stream) override {
    last = stream.device;
    return reinterpret_cast<Address>(std::malloc(std::max<size_t>(nbytes, 1)));
  }
  void deallocate(Address address, size_t, Stream stream) noexcept override {
    last = stream.device;
    std::free(reinterpret_cast<void*>(address));
  }
  void copy(Address to, Address from, size_t nbytes, Stream) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), nbytes);
  }
  std::string_view name() const noexcept override { return "labelled"; }
  Device last;
};

TEST(DeviceStorage, TheIndexOfTheCurrentDeviceIsFilledIn) {
  const Backend backend = register_backend("corelab", "CoreLab");
  static LabelledAllocator allocator;
  set_allocator(backend, &allocator);
  static testing::ImmediateRuntime runtime(4);
  set_device_runtime(backend, &runtime);
  const DeviceGuard guard(Device(backend, 3));
  const Tensor t = make_empty({4}, kFloat32, Device(backend));
  EXPECT_EQ(t.device(), Device(backend, 3));
  EXPECT_EQ(allocator.last, Device(backend, 3));
  EXPECT_EQ(make_empty({4}, kFloat32, Device(backend, 1)).device(), Device(backend, 1));
  EXPECT_EQ(resolved(kCPU), kCPU);
  EXPECT_EQ(resolved(kMeta), kMeta);
}

TEST(DeviceStorage, ResizingKeepsTheBytes) {
  const Backend backend = register_backend("corelab", "CoreLab");
  static LabelledAllocator allocator;
  set_allocator(backend, &allocator);
  Storage storage = Storage::allocate(4, Device(backend, 0));
  std::memcpy(reinterpret_cast<void*>(storage.address()), "abcd", 4);
  storage.resize(1000);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(storage.address()), "abcd", 4), 0);
  storage.resize(2);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(storage.address()), "ab", 2), 0);
}

TEST(Storage, LentMemoryStaysWhereItIs) {
  for (const size_t nbytes : {size_t{4}, size_t{100000}}) {
    Storage storage = Storage::allocate(nbytes);
    const Address address = storage.address();
    auto* bytes = reinterpret_cast<char*>(address);
    bytes[nbytes - 1] = 7;
    {
      const LentStorage first(storage);
      {
        const LentStorage second(storage);
        EXPECT_FALSE(storage->resizable());
        EXPECT_THROW(storage.resize(2 * nbytes), Error);
      }
      EXPECT_FALSE(storage->resizable());
      EXPECT_THROW(storage.resize(1), Error);
      EXPECT_EQ(storage.address(), address);
    }
    EXPECT_TRUE(storage->resizable());
    storage.resize(2 * nbytes);
    EXPECT_EQ(storage.nbytes(), 2 * nbytes);

    auto lent = std::make_unique<LentStorage>(std::exchange(storage, {}));
    lent.reset();  // the last to let go
  }
}

struct TestExtra final : LayoutExtra {};

TEST(Layout, DecidesTheKeysAndIsKeptByAliases) {
  Tensor t = make_empty({0}, kFloat32);
  t.impl()->set_layout(Layout::Sparse);
  t.impl()->set_extra(IntrusivePtr<LayoutExtra>::adopt(new TestExtra));
  EXPECT_EQ(t.key_set(), DispatchKeySet(Functionality::Sparse, kCpuBackend));
  const Tensor alias(t.impl()->alias(nullptr));
  EXPECT_EQ(alias.layout(), Layout::Sparse);
  EXPECT_EQ(alias.key_set(), t.key_set());
  EXPECT_EQ(alias.impl()->extra(), t.impl()->extra());
  try {
    make_view(t, {0}, {1}, 0);
    ADD_FAILURE() << "a sparse tensor has no strides to view";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
  }
}

}  // namespace
}  // namespace tenon
