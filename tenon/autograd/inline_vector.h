// InlineVector: a growing array of movable values that stores the first few in place. Used by graph nodes,
// which mostly have one result and one or two edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace tenon::autograd {

template <class T, uint32_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  InlineVector() noexcept {}
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() {
    destroy_all();
    if (data_ != in_place()) ::operator delete(data_);
  }

  uint32_t size() const noexcept { return size_; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  operator std::span<const T>() const noexcept { return {data_, size_}; }

  template <class... A>
  T& emplace_back(A&&... args) {
    if (size_ == capacity_) [[unlikely]]
      grow(2 * capacity_);
    return *new (data_ + size_++) T(std::forward<A>(args)...);
  }
  void reserve(size_t n) {
    if (n > capacity_) grow(static_cast<uint32_t>(n));
  }
  void clear() noexcept {
    destroy_all();
    size_ = 0;
  }

 private:
  T* in_place() noexcept { return reinterpret_cast<T*>(bytes_); }

  void destroy_all() noexcept {
    for (uint32_t i = 0; i < size_; ++i) data_[i].~T();
  }

  void grow(uint32_t capacity) {
    T* bigger = static_cast<T*>(::operator new(capacity * sizeof(T)));
    // By hand: what <memory> has for it is dear to compile in all the files that define a node.
    for (uint32_t i = 0; i < size_; ++i) new (bigger + i) T(std::move(data_[i]));
    destroy_all();
    if (data_ != in_place()) ::operator delete(data_);
    data_ = bigger;
    capacity_ = capacity;
  }

  T* data_ = in_place();
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) std::byte bytes_[N * sizeof(T)];
};

}  // namespace tenon::autograd
