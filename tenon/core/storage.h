// Storage: the bytes of tensors, shared and reference-counted. Used by TensorImpl, allocators and data
// exchange. Independent of shapes, dtypes and operators.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "tenon/core/allocator.h"
#include "tenon/core/intrusive_ptr.h"
#include "tenon/core/recording.h"
#include "tenon/core/source_mark.h"

namespace tenon {

class Storage;
class StorageImpl;

class StorageImpl final : public RefCounted {
 public:
  /// Frees memory that came from elsewhere (NumPy, DLPack, a user's buffer).
  using Deleter = void (*)(void* context) noexcept;

  /// The address of the bytes. Computes a pending storage's bytes first, and passes on what that throws.
  Address address() const {
    if (recorded_.load(std::memory_order_acquire) != 0) [[unlikely]]
      before_access();
    return address_;
  }
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
  /// For a result that its operator has just written: no one has seen an earlier version.
  void forget_versions() noexcept { version_.store(0, std::memory_order_relaxed); }
  /// From now on, each write records the line that made it.
  void watch() noexcept { watched_.store(true, std::memory_order_relaxed); }
  /// The line that made the latest write since `watch` was called.
  SourceMark changed_at() const noexcept {
    return {change_place_.load(std::memory_order_relaxed), change_detail_.load(std::memory_order_relaxed)};
  }
  /// Memory of ours that is not lent (LentStorage).
  bool resizable() const noexcept { return allocator_ && loans_.load(std::memory_order_acquire) == 0; }
  /// Whether only users of this object write to the bytes: memory of ours, or foreign memory of which its
  /// owner said so, that is not lent.
  bool is_private() const noexcept {
    return (allocator_ || private_) && loans_.load(std::memory_order_acquire) == 0;
  }
  /// Foreign memory that its owner shows to no one else.
  void set_private() noexcept { private_ = true; }
  bool read_only() const noexcept { return read_only_; }
  void set_read_only(bool on) noexcept { read_only_ = on; }

  // What recorders need; see tenon/record.

  /// Whether programs that have not run yet read or write the bytes.
  bool is_recorded() const noexcept { return recorded_.load(std::memory_order_acquire) != 0; }
  /// Whether the bytes are still to be computed, all or some of them.
  bool is_pending() const noexcept { return (recorded_.load(std::memory_order_acquire) & kPending) != 0; }
  PendingWork* work() const noexcept { return work_.load(std::memory_order_acquire); }
  /// A recorder holds one reference more, or has given it back: its references do not count as uses.
  void add_recorder() noexcept { recorded_.fetch_add(kRecorder, std::memory_order_acq_rel); }
  void remove_recorder() noexcept { recorded_.fetch_sub(kRecorder, std::memory_order_acq_rel); }
  /// References that are not recorders'.
  uint32_t uses() const noexcept {
    return use_count() - recorded_.load(std::memory_order_acquire) / kRecorder;
  }
  /// From now on, `work` computes the bytes; a storage that has some keeps them, and its address, until then.
  /// `place` is the work's to use.
  void set_pending(PendingWork* work, uint32_t place = 0) noexcept;
  uint32_t place() const noexcept { return place_; }
  /// The bytes are computed, where they are (`address_now`).
  void set_done() noexcept { recorded_.fetch_and(~kPending, std::memory_order_acq_rel); }
  /// Every access throws `error` from now on.
  void set_failed(std::exception_ptr error);
  /// The address as it is: null for large bytes that are still to be computed.
  Address address_now() const noexcept { return address_; }
  /// Foreign memory is at another address from now on; the old one is not read again.
  void rebind(Address address) noexcept { address_ = address; }
  /// The bytes of `from`, which has no other user: its block if that can change hands, else a copy.
  void take_bytes(StorageImpl& from);

  static void destroy(StorageImpl* storage) noexcept;

 private:
  friend class Storage;
  friend class LentStorage;
  StorageImpl() = default;
  ~StorageImpl() = default;
  void before_access() const;
  [[gnu::noinline]] void note_change() noexcept;

  Device device_;
  bool in_place_ = false;  // the bytes follow this object in the same block
  bool read_only_ = false;
  bool private_ = false;
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
  static constexpr uint32_t kPending = 1, kRecorder = 2;
  std::atomic<uint32_t> recorded_{0};  // kPending, and kRecorder for each recorder
  uint32_t place_ = 0;
  std::atomic<PendingWork*> work_{nullptr};
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
  /// Wraps memory with another owner; `deleter(context)` runs when the last reference goes.
  static Storage from_foreign(Address address, size_t nbytes, Device device, StorageImpl::Deleter deleter,
                              void* context);

  /// A storage of the host whose bytes `work` computes later, at the latest when its address is asked for.
  /// Otherwise it is as `allocate` makes it; large ones get their block when they get their bytes.
  static Storage deferred(size_t nbytes, PendingWork* work, uint32_t place = 0);

  /// Grows or shrinks to `nbytes` and keeps the bytes that fit. The copy is work of the current stream, to
  /// which the new block then belongs. Throws Error{Runtime} for foreign memory and for memory that is lent.
  void resize(size_t nbytes);

  explicit operator bool() const noexcept { return static_cast<bool>(impl_); }
  StorageImpl* operator->() const noexcept { return impl_.get(); }
  StorageImpl& operator*() const noexcept { return *impl_.get(); }
  Address address() const { return impl_->address(); }
  size_t nbytes() const noexcept { return impl_->nbytes(); }
  /// The number of in-place writes so far. Autograd compares it to notice that a saved tensor was changed.
  uint64_t version() const noexcept { return impl_->version(); }
  /// References of tensors and others; those of recorded programs do not count.
  uint32_t use_count() const noexcept { return impl_->uses(); }
  friend bool operator==(const Storage&, const Storage&) noexcept = default;

 private:
  template <bool kZeros>
  static Storage make(size_t nbytes, Device device);

  IntrusivePtr<StorageImpl> impl_;
};

/// A storage whose address another library has (NumPy, DLPack): while this lives, the memory is
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
