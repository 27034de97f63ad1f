// InlineVector: a growing array of movable values, the first few of them in place.
// Used by graph nodes, most of which have one result and one or two edges.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace tenon::autograd {

template <class T, uint32_t N>
class InlineVector {
 public:
  InlineVector() noexcept {}
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() {
    std::destroy_n(data_, size_);
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
    std::destroy_n(data_, size_);
    size_ = 0;
  }

 private:
  T* in_place() noexcept { return reinterpret_cast<T*>(bytes_); }

  void grow(uint32_t capacity) {
    T* bigger = static_cast<T*>(::operator new(capacity * sizeof(T)));
    std::uninitialized_move_n(data_, size_, bigger);
    std::destroy_n(data_, size_);
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
