// Vectorized<T>: 32 bytes of T with arithmetic, for the vector lambda of cpu_kernel_vec. Used by users' own
// kernels, with the instruction set that their file is compiled for. The library's kernels do not use it;
// they are compiled for every instruction set.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tenon {

template <class T>
class Vectorized {
  static_assert(std::is_arithmetic_v<T>);
  // Two registers of 16 bytes, which every x86-64 and ARM processor has; wider targets fuse them.
  typedef T Half16 __attribute__((vector_size(16)));

 public:
  using value_type = T;
  static constexpr int size() noexcept { return 32 / static_cast<int>(sizeof(T)); }

  Vectorized() noexcept : low_{}, high_{} {}
  Vectorized(T value) noexcept : low_(Half16{} + value), high_(Half16{} + value) {}

  /// Loads `size()` elements from any address.
  static Vectorized loadu(const void* p) noexcept {
    Vectorized v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  void store(void* p) const noexcept { std::memcpy(p, this, sizeof *this); }
  T operator[](int i) const noexcept { return i < size() / 2 ? low_[i] : high_[i - size() / 2]; }

  friend Vectorized operator+(Vectorized a, Vectorized b) noexcept {
    return {a.low_ + b.low_, a.high_ + b.high_};
  }
  friend Vectorized operator-(Vectorized a, Vectorized b) noexcept {
    return {a.low_ - b.low_, a.high_ - b.high_};
  }
  friend Vectorized operator*(Vectorized a, Vectorized b) noexcept {
    return {a.low_ * b.low_, a.high_ * b.high_};
  }
  friend Vectorized operator/(Vectorized a, Vectorized b) noexcept {
    return {a.low_ / b.low_, a.high_ / b.high_};
  }
  Vectorized operator-() const noexcept { return {-low_, -high_}; }

  /// Magnitude; of floats the sign bit is cleared, that of -0 and NaN too.
  Vectorized abs() const noexcept {
    if constexpr (std::is_floating_point_v<T>)
      return map([](T x) { return std::fabs(x); });
    else if constexpr (std::is_unsigned_v<T>)
      return *this;
    else
      return map([](T x) { return static_cast<T>(x < 0 ? -x : x); });
  }
  Vectorized neg() const noexcept { return -*this; }
  Vectorized sqrt() const noexcept {
    return map([](T x) { return std::sqrt(x); });
  }
  /// A NaN in either operand gives NaN.
  friend Vectorized minimum(Vectorized a, Vectorized b) noexcept {
    return zip(a, b, [](T x, T y) { return x != x || x < y ? x : y; });
  }
  friend Vectorized maximum(Vectorized a, Vectorized b) noexcept {
    return zip(a, b, [](T x, T y) { return x != x || x > y ? x : y; });
  }
  /// Any scalar function, element by element.
  template <class F>
  Vectorized map(F f) const noexcept {
    T values[32 / sizeof(T)];
    store(values);
    for (T& v : values) v = f(v);
    return loadu(values);
  }

 private:
  Vectorized(Half16 low, Half16 high) noexcept : low_(low), high_(high) {}
  template <class F>
  static Vectorized zip(Vectorized a, Vectorized b, F f) noexcept {
    T x[32 / sizeof(T)], y[32 / sizeof(T)];
    a.store(x);
    b.store(y);
    for (int i = 0; i < size(); ++i) x[i] = f(x[i], y[i]);
    return loadu(x);
  }

  Half16 low_, high_;
};

}  // namespace tenon
