#include "tenon/core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

constexpr size_t kHeader = (sizeof(StorageImpl) + kSmallBlockAlign - 1) / kSmallBlockAlign * kSmallBlockAlign;
constexpr size_t kInPlaceMax = kSmallBlockMax - kHeader;

}  // namespace

Storage Storage::allocate(size_t nbytes, Device device) {
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
    impl->address_ = reinterpret_cast<Address>(static_cast<char*>(block) + kHeader);
  } else {
    try {
      Allocator& allocator = allocator_for(device);
      impl->address_ = allocator.allocate(nbytes);
      impl->allocator_ = &allocator;
    } catch (...) {
      small_free(block, block_bytes);
      throw;
    }
  }
  storage.impl_ = IntrusivePtr<StorageImpl>::adopt(impl);
  return storage;
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

void Storage::resize(size_t nbytes) {
  StorageImpl& s = *impl_.get();
  TENON_CHECK(s.resizable(), Runtime, "resize: this storage wraps foreign memory and cannot change its size");
  Allocator& allocator = *s.allocator_;
  const Address moved = allocator.allocate(nbytes);
  if (s.device_.is_cpu()) {
    std::memcpy(reinterpret_cast<void*>(moved), reinterpret_cast<void*>(s.address_),
                std::min(nbytes, s.nbytes_));
  }
  if (!s.in_place_) allocator.deallocate(s.address_, s.nbytes_);
  s.in_place_ = false;
  s.address_ = moved;
  s.nbytes_ = nbytes;
}

void StorageImpl::destroy(StorageImpl* storage) noexcept {
  if (storage->deleter_) {
    storage->deleter_(storage->context_);
  } else if (storage->allocator_ && !storage->in_place_) {
    storage->allocator_->deallocate(storage->address_, storage->nbytes_);
  }
  const size_t block_bytes = storage->block_bytes_;
  storage->~StorageImpl();
  small_free(storage, block_bytes);
}

}  // namespace tenon
