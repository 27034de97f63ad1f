// Storage: the bytes behind tensors, shared and reference-counted.
// Used by TensorImpl, allocators and borders. Knows nothing of shapes, dtypes or operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tenon/core/allocator.h"
#include "tenon/core/intrusive_ptr.h"
#include "tenon/core/source_mark.h"

namespace tenon {

class Storage;
class StorageImpl;

/// What computes the bytes of a storage that was handed out before them: a recorded program not yet run.
struct PendingBytes {
  virtual ~PendingBytes() = default;
  /// Computes them and calls `storage.provide`, here or for several storages at once. May throw; the storage
  /// then stays as it is. Runs on the thread that first asks for the address, one at a time in the process.
  virtual void materialize(StorageImpl& storage) = 0;
};

class StorageImpl final : public RefCounted {
 public:
  /// Frees memory that a border handed over (NumPy, DLPack, a user's buffer).
  using Deleter = void (*)(void* context) noexcept;

  /// Runs what the bytes wait for, if anything, and throws what that throws.
  Address address() const {
    if (pending_.load(std::memory_order_acquire)) [[unlikely]]
      materialize();
    return address_;
  }
  bool is_pending() const noexcept { return pending_.load(std::memory_order_acquire); }
  /// Gives a pending storage its bytes: those of `bytes`, on the same device and no fewer.
  void provide(Storage bytes);
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  /// What the block was taken for: whoever uses it elsewhere orders that with this stream (Event).
  Stream stream() const noexcept { return {device_, stream_}; }
  Allocator* allocator() const noexcept { return allocator_; }
  uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept {
    version_.store(version() + 1, std::memory_order_relaxed);
    if (watched_.load(std::memory_order_relaxed)) [[unlikely]]
      note_change();
  }
  /// From now on writes note where they were made.
  void watch() noexcept { watched_.store(true, std::memory_order_relaxed); }
  /// Where the latest write was made since somebody watches.
  SourceMark changed_at() const noexcept {
    return {change_place_.load(std::memory_order_relaxed), change_detail_.load(std::memory_order_relaxed)};
  }
  bool resizable() const noexcept { return allocator_ != nullptr; }
  bool read_only() const noexcept { return read_only_; }
  void set_read_only(bool on) noexcept { read_only_ = on; }

  static void destroy(StorageImpl* storage) noexcept;

 private:
  friend class Storage;
  StorageImpl() = default;
  ~StorageImpl() = default;
  void materialize() const;
  [[gnu::noinline]] void note_change() noexcept;

  Device device_;
  bool in_place_ = false;  // the bytes follow this object in the same block
  bool read_only_ = false;
  std::atomic<bool> pending_{false};  // `context_` is a PendingBytes
  std::atomic<bool> watched_{false};
  std::atomic<int32_t> change_detail_{-1};  // of changed_at, as change_place_
  Address address_ = 0;
  size_t nbytes_ = 0;
  size_t block_bytes_ = 0;          // of the block of this object, its bytes included
  Allocator* allocator_ = nullptr;  // null for foreign memory
  std::atomic<uint64_t> version_{0};
  std::atomic<uint64_t> change_place_{0};
  uint64_t stream_ = 0;  // the id of stream()
  Deleter deleter_ = nullptr;
  void* context_ = nullptr;
};

/// A block of device memory that several tensors may view.
///
/// `address()` is opaque: only the device that made it can turn it into something to read.
/// Thread-safe to share; writing through two tensors at once is the caller's race.
class Storage {
 public:
  Storage() = default;

  /// Takes `nbytes` from the allocator of `device`, uninitialised, for its current stream. Small host
  /// storages live in one block with their counter. Throws Error{OutOfMemory} and leaves nothing behind.
  static Storage allocate(size_t nbytes, Device device = kCPU);
  /// The same in host memory, every byte zero: of a large storage that is fresh from the system none is
  /// written.
  static Storage zeros(size_t nbytes);
  /// Wraps memory that somebody else owns; `deleter(context)` runs when the last tensor lets go.
  static Storage from_foreign(Address address, size_t nbytes, Device device, StorageImpl::Deleter deleter,
                              void* context);

  /// A storage whose bytes come later. Every access to its address runs `pending`, which it owns.
  static Storage deferred(size_t nbytes, Device device, std::unique_ptr<PendingBytes> pending);

  /// Grows or shrinks to `nbytes`, keeping the bytes that fit, as work of the current stream, whose block it
  /// is then. Throws Error{Runtime} for foreign memory.
  void resize(size_t nbytes);

  explicit operator bool() const noexcept { return static_cast<bool>(impl_); }
  StorageImpl* operator->() const noexcept { return impl_.get(); }
  Address address() const { return impl_->address(); }
  size_t nbytes() const noexcept { return impl_->nbytes(); }
  /// Counts in-place writes. Autograd compares it to notice a change behind its back.
  uint64_t version() const noexcept { return impl_->version(); }
  uint32_t use_count() const noexcept { return impl_->use_count(); }
  friend bool operator==(const Storage&, const Storage&) noexcept = default;

 private:
  template <bool kZeros>
  static Storage make(size_t nbytes, Device device);

  IntrusivePtr<StorageImpl> impl_;
};

}  // namespace tenon
