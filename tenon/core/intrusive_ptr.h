// RefCounted and IntrusivePtr: shared ownership with the count inside the object.
// Used by storages, tensors, generators and graph nodes. Includes none of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace tenon {

namespace detail {

/// Whether the process has never started another thread. Counts then need no locked instruction, which would
/// cost more than everything else that making a view does. Known from the C library; where it cannot say,
/// counts are always atomic.
inline bool single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

}  // namespace detail

/// Base of objects owned by IntrusivePtr. A new object starts with one reference, which `IntrusivePtr::adopt`
/// takes.
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }

 protected:
  RefCounted() = default;
  ~RefCounted() = default;

 private:
  template <class T>
  friend class IntrusivePtr;

  void retain() const noexcept {
    if (detail::single_threaded())
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      count_.fetch_add(1, std::memory_order_relaxed);
  }

  /// True when the caller held the last reference and must destroy the object. A sole owner needs no atomic
  /// read-modify-write: no other thread can add a reference to an object that only the caller can reach.
  bool release() const noexcept {
    const uint32_t count = count_.load(std::memory_order_acquire);
    if (count == 1) return true;
    if (detail::single_threaded()) {
      count_.store(count - 1, std::memory_order_relaxed);
      return false;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  mutable std::atomic<uint32_t> count_{1};
};

/// An owning pointer to a RefCounted `T`. `T::destroy(T*)` frees the object.
template <class T>
class IntrusivePtr {
 public:
  constexpr IntrusivePtr() noexcept = default;
  constexpr IntrusivePtr(std::nullptr_t) noexcept {}
  IntrusivePtr(const IntrusivePtr& other) noexcept : object_(other.object_) {
    if (object_) object_->retain();
  }
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  IntrusivePtr& operator=(const IntrusivePtr& other) noexcept {
    IntrusivePtr(other).swap(*this);
    return *this;
  }
  IntrusivePtr& operator=(IntrusivePtr&& other) noexcept {
    IntrusivePtr(std::move(other)).swap(*this);
    return *this;
  }
  ~IntrusivePtr() { drop(); }

  /// Takes over one reference that the caller owns.
  static IntrusivePtr adopt(T* object) noexcept {
    IntrusivePtr p;
    p.object_ = object;
    return p;
  }
  /// Adds a reference to an object that another reference keeps alive.
  static IntrusivePtr share(T* object) noexcept {
    if (object) object->retain();
    return adopt(object);
  }
  /// Releases ownership of the reference to the caller, who must pass it to `adopt` later.
  [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) noexcept = default;

  void reset() noexcept {
    drop();
    object_ = nullptr;
  }
  void swap(IntrusivePtr& other) noexcept { std::swap(object_, other.object_); }

 private:
  void drop() noexcept {
    if (object_ && object_->release()) T::destroy(object_);
  }

  T* object_ = nullptr;
};

}  // namespace tenon
