// Storage: the bytes behind tensors, shared and reference-counted. Used by TensorImpl, allocators and data
// exchange. Knows nothing of shapes, dtypes or operators.
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

/// Computes the bytes of a storage that was handed out before its bytes exist, such as the output of a
/// recorded program that has not run yet.
struct PendingBytes {
  virtual ~PendingBytes() = default;
  /// Computes the bytes and passes them to `storage.provide`; may do so for several storages at once. If it
  /// throws, the storage stays pending. Runs on the thread that first asks for the address; only one runs at
  /// a time in the process.
  virtual void materialize(StorageImpl& storage) = 0;
};

class StorageImpl final : public RefCounted {
 public:
  /// Frees memory that came from elsewhere (NumPy, DLPack, a user's buffer).
  using Deleter = void (*)(void* context) noexcept;

  /// The address of the bytes. Computes a pending storage's bytes first, and passes on what that throws.
  Address address() const {
    if (pending_.load(std::memory_order_acquire)) [[unlikely]]
      materialize();
    return address_;
  }
  bool is_pending() const noexcept { return pending_.load(std::memory_order_acquire); }
  /// Gives a pending storage its bytes: those of `bytes`, which is on the same device and at least as large.
  void provide(Storage bytes);
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  /// The stream that the block was allocated for. Work on another stream must be ordered with it by an Event.
  Stream stream() const noexcept { return {device_, stream_}; }
  Allocator* allocator() const noexcept { return allocator_; }
  uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept {
    version_.store(version() + 1, std::memory_order_relaxed);
    if (watched_.load(std::memory_order_relaxed)) [[unlikely]]
      note_change();
  }
  /// From now on, each write records the line that made it.
  void watch() noexcept { watched_.store(true, std::memory_order_relaxed); }
  /// The line that made the latest write since `watch` was called.
  SourceMark changed_at() const noexcept {
    return {change_place_.load(std::memory_order_relaxed), change_detail_.load(std::memory_order_relaxed)};
  }
  /// Memory of ours that nobody else was given (LentStorage).
  bool resizable() const noexcept { return allocator_ && loans_.load(std::memory_order_acquire) == 0; }
  bool read_only() const noexcept { return read_only_; }
  void set_read_only(bool on) noexcept { read_only_ = on; }

  static void destroy(StorageImpl* storage) noexcept;

 private:
  friend class Storage;
  friend class LentStorage;
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
  std::atomic<uint32_t> loans_{0};          // LentStorages of it
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
/// Only the device that allocated it knows how to read at `address()`. Thread-safe to share; writing through
/// two tensors at once is the caller's race.
class Storage {
 public:
  Storage() = default;

  /// Allocates `nbytes` uninitialised bytes from the allocator of `device`, for its current stream. A small
  /// host storage shares one block with its reference count. Throws Error{OutOfMemory}, and then allocates
  /// nothing.
  static Storage allocate(size_t nbytes, Device device = kCPU);
  /// Allocates zero bytes in host memory. Pages that the system has just handed out are zero already and are
  /// not written.
  static Storage zeros(size_t nbytes);
  /// Allocates uninitialised bytes of pinned host memory, from and to which devices copy without a wait.
  /// Throws Error{Runtime} if no loaded device has such memory.
  static Storage allocate_pinned(size_t nbytes);
  /// Wraps memory that somebody else owns; `deleter(context)` runs when the last reference goes.
  static Storage from_foreign(Address address, size_t nbytes, Device device, StorageImpl::Deleter deleter,
                              void* context);

  /// A storage whose bytes are computed later: the first access to its address runs `pending`, which it owns.
  static Storage deferred(size_t nbytes, Device device, std::unique_ptr<PendingBytes> pending);

  /// Grows or shrinks to `nbytes` and keeps the bytes that fit. The copy is work of the current stream, to
  /// which the new block then belongs. Throws Error{Runtime} for foreign memory and for memory that is lent.
  void resize(size_t nbytes);

  explicit operator bool() const noexcept { return static_cast<bool>(impl_); }
  StorageImpl* operator->() const noexcept { return impl_.get(); }
  Address address() const { return impl_->address(); }
  size_t nbytes() const noexcept { return impl_->nbytes(); }
  /// The number of in-place writes so far. Autograd compares it to notice that a saved tensor was changed.
  uint64_t version() const noexcept { return impl_->version(); }
  uint32_t use_count() const noexcept { return impl_->use_count(); }
  friend bool operator==(const Storage&, const Storage&) noexcept = default;

 private:
  template <bool kZeros>
  static Storage make(size_t nbytes, Device device);

  IntrusivePtr<StorageImpl> impl_;
};

/// A storage whose address somebody outside was given (NumPy, DLPack): while this lives, the memory is
/// neither freed nor moved, whatever becomes of the tensors that showed it.
class LentStorage {
 public:
  explicit LentStorage(Storage storage) noexcept : storage_(std::move(storage)) {
    storage_->loans_.fetch_add(1, std::memory_order_relaxed);
  }
  ~LentStorage() { storage_->loans_.fetch_sub(1, std::memory_order_release); }
  LentStorage(const LentStorage&) = delete;
  LentStorage& operator=(const LentStorage&) = delete;

 private:
  Storage storage_;
};

}  // namespace tenon
