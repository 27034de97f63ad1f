// Dims and IntArrayRef: a list of sizes, strides or dimension numbers, owned and borrowed.
// Used by every room that handles shapes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// An array of trivially copyable values: up to `N` elements are stored in place, more on the heap.
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  SmallVector() noexcept = default;
  explicit SmallVector(size_t n, T value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.size()); }
  SmallVector(const T* first, size_t n) { assign(first, n); }
  explicit SmallVector(std::span<const T> values) { assign(values.data(), values.size()); }
  SmallVector(const SmallVector& other) { assign(other.data(), other.size()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.data(), other.size());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      free_heap();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { free_heap(); }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ ? heap_ : inline_; }
  const T* data() const noexcept { return heap_ ? heap_ : inline_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](size_t i) noexcept { return data()[i]; }
  const T& operator[](size_t i) const noexcept { return data()[i]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }

  void clear() noexcept { size_ = 0; }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data()[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * capacity_);
    data()[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) noexcept {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    T* bigger = new T[n];
    std::copy(begin(), end(), bigger);
    delete[] heap_;
    heap_ = bigger;
    capacity_ = static_cast<uint32_t>(n);
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void assign(const T* first, size_t n) {
    size_ = 0;
    reserve(n);
    std::copy(first, first + n, data());
    size_ = static_cast<uint32_t>(n);
  }
  void take(SmallVector& other) noexcept {
    size_ = other.size_;
    capacity_ = other.capacity_;
    heap_ = other.heap_;
    if (!heap_) std::copy(other.inline_, other.inline_ + size_, inline_);
    other.heap_ = nullptr;
    other.size_ = 0;
    other.capacity_ = N;
  }
  void free_heap() noexcept {
    delete[] heap_;
    heap_ = nullptr;
    capacity_ = N;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  T* heap_ = nullptr;
  T inline_[N];
};

/// Sizes or strides; up to six dimensions are stored in place.
using Dims = SmallVector<int64_t, 6>;

/// A borrowed list of integers, made from a braced list, Dims, std::vector or std::span. It owns nothing: use
/// it for arguments only.
class IntArrayRef : public std::span<const int64_t> {
 public:
  constexpr IntArrayRef() noexcept = default;
  constexpr IntArrayRef(const int64_t* first, size_t n) noexcept : std::span<const int64_t>(first, n) {}
  constexpr IntArrayRef(std::span<const int64_t> s) noexcept : std::span<const int64_t>(s) {}
  constexpr IntArrayRef(std::initializer_list<int64_t> s) noexcept
      : std::span<const int64_t>(s.begin(), s.size()) {}
  template <size_t N>
  IntArrayRef(const SmallVector<int64_t, N>& v) noexcept : std::span<const int64_t>(v.data(), v.size()) {}
  IntArrayRef(const std::vector<int64_t>& v) noexcept : std::span<const int64_t>(v.data(), v.size()) {}
  IntArrayRef(const int64_t& one) noexcept : std::span<const int64_t>(&one, 1) {}

  Dims to_dims() const { return Dims(data(), size()); }
  friend bool operator==(IntArrayRef a, IntArrayRef b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};

/// An optional list as a parameter of the C++ API. Unlike std::optional<IntArrayRef>, it takes a braced list
/// or one number, and refers to the caller's own temporaries, which live until the call ends.
class OptionalIntArrayRef {
 public:
  constexpr OptionalIntArrayRef() noexcept = default;
  constexpr OptionalIntArrayRef(std::nullopt_t) noexcept {}
  constexpr OptionalIntArrayRef(IntArrayRef values) noexcept : values_(values) {}
  constexpr OptionalIntArrayRef(std::optional<IntArrayRef> values) noexcept : values_(values) {}
  constexpr OptionalIntArrayRef(std::initializer_list<int64_t> values) noexcept
      : values_(IntArrayRef(values)) {}
  OptionalIntArrayRef(const std::vector<int64_t>& values) noexcept : values_(values) {}
  template <size_t N>
  OptionalIntArrayRef(const SmallVector<int64_t, N>& values) noexcept : values_(values) {}
  OptionalIntArrayRef(const int64_t& one) noexcept : values_(one) {}

  constexpr operator std::optional<IntArrayRef>() const noexcept { return values_; }

 private:
  std::optional<IntArrayRef> values_;
};

/// "[2, 3]", as error messages and reprs show it.
std::string to_string(IntArrayRef values);

}  // namespace tenon
