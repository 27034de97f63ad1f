// cpu_kernel, cpu_kernel_vec: run a scalar function over an iterator's operands, which makes a whole CPU
// kernel. Used by users' own operators. The iterator handles shapes, strides, dtypes and threads; the
// function sees elements.
//
//   auto iter = TensorIteratorConfig().add_output(out).add_input(self).build();
//   TENON_DISPATCH_FLOATING_TYPES(iter.dtype(), "scaled_abs", [&] {
//     cpu_kernel(iter, [scale](scalar_t x) -> scalar_t { return std::abs(x) * scale; });
//   });
#pragma once

#include "tenon/core/require_cxx20.h"

#include <tuple>
#include <type_traits>
#include <utility>

#include "tenon/core/half.h"
#include "tenon/iter/host.h"
#include "tenon/iter/tensor_iterator.h"
#include "tenon/iter/vectorized.h"

namespace tenon {

namespace detail {

template <class F>
struct LambdaTraits : LambdaTraits<decltype(&F::operator())> {};
template <class C, class R, class... A>
struct LambdaTraits<R (C::*)(A...) const> {
  using Result = std::decay_t<R>;
  using Arguments = std::tuple<std::decay_t<A>...>;
  static constexpr int kArity = sizeof...(A);
};
template <class C, class R, class... A>
struct LambdaTraits<R (C::*)(A...)> : LambdaTraits<R (C::*)(A...) const> {};

/// Converts between the iterator's operands and the dtypes of a kernel, a tile at a time.
class KernelConversions {
 public:
  /// Throws Error{Type} if an operand's dtype differs from the kernel's and the iterator does not promote,
  /// Error{Value} if their counts differ, and Error{Device} for operands that are not on the host.
  KernelConversions(const TensorIterator& iter, const DType* dtypes, int count);

  static constexpr int64_t kTile = 512;
  bool any() const noexcept { return any_; }
  /// Null for an operand that the kernel reads or writes as it is.
  ConvertFn operator[](int i) const noexcept { return convert_[i]; }

 private:
  ConvertFn convert_[kMaxOperands] = {};
  bool any_ = false;
};

template <class F, class R, class... A, size_t... I>
void scalar_loop(F& f, char* const* ptrs, const int64_t* strides, int64_t n, std::tuple<A...>*, R*,
                 std::index_sequence<I...>) {
  const bool dense = strides[0] == sizeof(R) && ((strides[I + 1] == sizeof(A)) && ...);
  if (dense) {
    for (int64_t k = 0; k < n; ++k) {
      reinterpret_cast<R*>(ptrs[0])[k] = f(reinterpret_cast<const A*>(ptrs[I + 1])[k]...);
    }
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    *reinterpret_cast<R*>(ptrs[0] + k * strides[0]) =
        f(*reinterpret_cast<const A*>(ptrs[I + 1] + k * strides[I + 1])...);
  }
}

template <class F, class V, class T, size_t... I>
void vector_loop(F& f, V& vf, char* const* ptrs, const int64_t* strides, int64_t n, T*,
                 std::index_sequence<I...> all) {
  using Vec = Vectorized<T>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  // Each operand is dense, or one element repeated.
  const bool fits = strides[0] == kSize && ((strides[I + 1] == kSize || strides[I + 1] == 0) && ...);
  int64_t k = 0;
  if (fits) {
    const auto load = [&](size_t i, int64_t at) {
      return strides[i] == 0 ? Vec(*reinterpret_cast<const T*>(ptrs[i])) : Vec::loadu(ptrs[i] + at * kSize);
    };
    for (; k + Vec::size() <= n; k += Vec::size()) vf(load(I + 1, k)...).store(ptrs[0] + k * kSize);
  }
  for (; k < n; ++k) {
    *reinterpret_cast<T*>(ptrs[0] + k * strides[0]) =
        f(*reinterpret_cast<const T*>(ptrs[I + 1] + k * strides[I + 1])...);
  }
  (void)all;
}

/// Runs `loop(ptrs, strides, n)` over the iterator, with operands of other dtypes converted on the way.
template <class R, class... A, class Loop>
void typed_kernel(const TensorIterator& iter, std::tuple<A...>*, R*, Loop&& loop) {
  constexpr int kCount = 1 + sizeof...(A);
  constexpr DType kDTypes[kCount] = {dtype_of<R>, dtype_of<A>...};
  constexpr int64_t kSizes[kCount] = {sizeof(R), sizeof(A)...};
  const KernelConversions convert(iter, kDTypes, kCount);
  if (!convert.any()) {
    iter.for_each([&](char* const* ptrs, const int64_t* strides, int64_t n) { loop(ptrs, strides, n); });
    return;
  }
  iter.for_each([&](char* const* ptrs, const int64_t* strides, int64_t n) {
    constexpr int64_t kTile = KernelConversions::kTile;
    alignas(64) char tiles[kCount][kTile * 16];  // the widest element is complex128
    char* at[kCount];
    int64_t steps[kCount];
    for (int64_t begin = 0; begin < n; begin += kTile) {
      const int64_t len = n - begin < kTile ? n - begin : kTile;
      for (int i = 0; i < kCount; ++i) {
        char* p = ptrs[i] + begin * strides[i];
        at[i] = convert[i] ? tiles[i] : p;
        steps[i] = convert[i] ? kSizes[i] : strides[i];
        if (i > 0 && convert[i]) convert[i](tiles[i], {kSizes[i], 0}, p, {strides[i], 0}, len, 1);
      }
      loop(at, steps, len);
      if (convert[0])
        convert[0](ptrs[0] + begin * strides[0], {strides[0], 0}, tiles[0], {kSizes[0], 0}, len, 1);
    }
  });
}

}  // namespace detail

/// Computes out[i] = f(in0[i], in1[i], ...) for an iterator with one output. The parameter types of `f` are
/// the operands' dtypes or, if the iterator promotes, the types that operands are converted to and from.
template <class F>
void cpu_kernel(const TensorIterator& iter, F f) {
  using Traits = detail::LambdaTraits<F>;
  typename Traits::Arguments* arguments = nullptr;
  typename Traits::Result* result = nullptr;
  detail::typed_kernel(iter, arguments, result, [&](char* const* ptrs, const int64_t* strides, int64_t n) {
    detail::scalar_loop(f, ptrs, strides, n, arguments, result, std::make_index_sequence<Traits::kArity>());
  });
}

/// As cpu_kernel, but calls `vf` with Vectorized<T> on dense runs, and `f` for the remaining elements. All
/// operands have one type T.
template <class F, class V>
void cpu_kernel_vec(const TensorIterator& iter, F f, V vf) {
  using Traits = detail::LambdaTraits<F>;
  typename Traits::Arguments* arguments = nullptr;
  typename Traits::Result* result = nullptr;
  detail::typed_kernel(iter, arguments, result, [&](char* const* ptrs, const int64_t* strides, int64_t n) {
    detail::vector_loop(f, vf, ptrs, strides, n, result, std::make_index_sequence<Traits::kArity>());
  });
}

}  // namespace tenon
