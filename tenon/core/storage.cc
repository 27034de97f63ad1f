#include "tenon/core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <typeinfo>
#include <utility>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

constexpr size_t kHeader = (sizeof(StorageImpl) + kSmallBlockAlign - 1) / kSmallBlockAlign * kSmallBlockAlign;
constexpr size_t kInPlaceMax = kSmallBlockMax - kHeader;

}  // namespace

template <bool kZeros>
[[gnu::always_inline]] inline Storage Storage::make(size_t nbytes, Device device) {
  Storage storage;
  const bool in_place = device.is_cpu() && nbytes <= kInPlaceMax;
  const size_t block_bytes = in_place ? kHeader + nbytes : sizeof(StorageImpl);
  void* block = small_allocate(block_bytes);
  auto* impl = new (block) StorageImpl;
  impl->device_ = device;
  impl->block_bytes_ = block_bytes;
  impl->nbytes_ = nbytes;
  if (in_place) {
    impl->in_place_ = true;
    impl->allocator_ = &cpu_allocator();
    char* bytes = static_cast<char*>(block) + kHeader;
    if (kZeros) std::memset(bytes, 0, nbytes);
    impl->address_ = reinterpret_cast<Address>(bytes);
  } else {
    try {
      Allocator& allocator = allocator_for(device);
      if (!device.is_cpu()) impl->stream_ = current_stream(device).id;
      impl->address_ = kZeros ? allocate_zeros_on_cpu(nbytes) : allocator.allocate(nbytes, impl->stream());
      impl->allocator_ = &allocator;
    } catch (...) {
      small_free(block, block_bytes);
      throw;
    }
  }
  storage.impl_ = IntrusivePtr<StorageImpl>::adopt(impl);
  return storage;
}

Storage Storage::allocate(size_t nbytes, Device device) {
  if (!device.is_cpu()) [[unlikely]]
    device = resolved(device);
  return make<false>(nbytes, device);
}

Storage Storage::zeros(size_t nbytes) { return make<true>(nbytes, kCPU); }

Storage Storage::allocate_pinned(size_t nbytes) {
  Allocator* const allocator = pinned_allocator();
  TENON_CHECK(allocator, Runtime,
              "pin_memory: no loaded device has pinned memory: load an accelerator that has first");
  const Address address = allocator->allocate(nbytes, {kCPU, 0});
  Storage storage = from_foreign(address, nbytes, kCPU, nullptr, nullptr);
  storage->allocator_ = allocator;
  return storage;
}

void StorageImpl::note_change() noexcept {
  const SourceMark mark = note_source(__builtin_frame_address(0));
  change_place_.store(mark.place, std::memory_order_relaxed);
  change_detail_.store(mark.detail, std::memory_order_relaxed);
}

Storage Storage::from_foreign(Address address, size_t nbytes, Device device, StorageImpl::Deleter deleter,
                              void* context) {
  Storage storage;
  auto* impl = new (small_allocate(sizeof(StorageImpl))) StorageImpl;
  impl->device_ = device;
  impl->block_bytes_ = sizeof(StorageImpl);
  impl->address_ = address;
  impl->nbytes_ = nbytes;
  impl->deleter_ = deleter;
  impl->context_ = context;
  storage.impl_ = IntrusivePtr<StorageImpl>::adopt(impl);
  return storage;
}

Storage Storage::deferred(size_t nbytes, PendingWork* work, uint32_t place) {
  if (nbytes <= kInPlaceMax) {
    Storage storage = make<false>(nbytes, kCPU);
    storage->set_pending(work, place);
    return storage;
  }
  Storage storage = from_foreign(0, nbytes, kCPU, nullptr, nullptr);
  storage->allocator_ = &cpu_allocator();
  storage->set_pending(work, place);
  return storage;
}

void Storage::resize(size_t nbytes) {
  StorageImpl& s = *impl_.get();
  TENON_CHECK(s.allocator_, Runtime, "resize: this storage wraps foreign memory and cannot change its size");
  TENON_CHECK(s.resizable(), Runtime,
              "resize: the memory of this storage is shared with a NumPy array or by DLPack, and can neither "
              "move nor change its size while that is alive; clone the tensor first");
  (void)s.address();  // what is still to be computed comes first
  Allocator& allocator = *s.allocator_;
  const Stream stream = current_stream(s.device_);
  const Address moved = allocator.allocate(nbytes, stream);
  if (const size_t kept = std::min(nbytes, s.nbytes_)) {
    try {
      allocator.copy(moved, s.address_, kept, stream);
    } catch (...) {
      allocator.deallocate(moved, nbytes, stream);
      throw;
    }
  }
  // The copy is the last use of the old block; what other streams did with it, the caller has ordered before.
  if (!s.in_place_) allocator.deallocate(s.address_, s.nbytes_, stream);
  s.in_place_ = false;
  s.stream_ = stream.id;
  s.address_ = moved;
  s.nbytes_ = nbytes;
}

void StorageImpl::before_access() const {
  auto& self = const_cast<StorageImpl&>(*this);
  while (is_pending()) work()->materialize(self);
  if (is_recorded()) recording_hooks.load(std::memory_order_acquire)->before_access(self);
}

void StorageImpl::set_pending(PendingWork* work, uint32_t place) noexcept {
  place_ = place;
  work_.store(work, std::memory_order_release);
  recorded_.fetch_or(kPending, std::memory_order_acq_rel);
}

void StorageImpl::set_failed(std::exception_ptr error) {
  struct Failed final : PendingWork {
    void materialize(StorageImpl& storage) override {
      try {
        std::rethrow_exception(*static_cast<std::exception_ptr*>(storage.context_));
      } catch (const Error& e) {
        // A caller that catches it may add to it: it throws a copy, so that the next caller gets the
        // original.
        if (typeid(e) == typeid(Error)) throw Error(e);
        throw;
      }
    }
    bool has_failed() const noexcept override { return true; }
  };
  static Failed failed;
  if (deleter_) deleter_(context_);
  context_ = new std::exception_ptr(std::move(error));
  deleter_ = [](void* e) noexcept { delete static_cast<std::exception_ptr*>(e); };
  set_pending(&failed);
}

void StorageImpl::take_bytes(StorageImpl& from) {
  const bool moves = !in_place_ && !from.in_place_ && from.allocator_ && from.nbytes_ == nbytes_;
  if (moves && !address_) {
    std::swap(address_, from.address_);
    allocator_ = from.allocator_;
    return;
  }
  if (!address_) address_ = allocator_->allocate(nbytes_, stream());
  std::memcpy(reinterpret_cast<void*>(address_), reinterpret_cast<void*>(from.address_),
              std::min(nbytes_, from.nbytes_));
}

void StorageImpl::destroy(StorageImpl* storage) noexcept {
  if (storage->deleter_) storage->deleter_(storage->context_);
  // Large bytes that were never computed, or were taken, have no block.
  const bool has_block = storage->address_ != 0 || storage->nbytes_ == 0;
  if (storage->allocator_ && !storage->in_place_ && has_block) {
    storage->allocator_->deallocate(storage->address_, storage->nbytes_, storage->stream());
  }
  const size_t block_bytes = storage->block_bytes_;
  storage->~StorageImpl();
  small_free(storage, block_bytes);
}

}  // namespace tenon
