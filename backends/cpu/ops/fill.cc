// Copying, filling and comparing on the CPU.
#include <type_traits>

#include "backends/cpu/copy/copy.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/ops/stub_functions.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {

// The host waits for nothing: the bytes are there when it returns.
void copy(const Tensor& dst, const Tensor& src, bool /*non_blocking*/) { copy_strided(dst, src); }

void fill(const Tensor& dst, const Scalar& value) {
  switch_any_dtype(dst.dtype(), "fill_", [&]<class T>() {
    T v{};
    if constexpr (kIsComplex<T>)
      v = T(value.to_complex());
    else if constexpr (std::is_same_v<T, bool>)
      v = value.to_bool();
    else if constexpr (std::is_same_v<T, uint64_t>)
      v = value.to_uint();
    else if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(value.to_int());
    else if constexpr (std::is_same_v<T, double>)
      v = value.to_double();
    else
      v = T(static_cast<float>(value.to_double()));
    const StridedDims dims = dims_of(dst);
    auto* base = static_cast<char*>(dst.data_ptr());
    if (dims.dense(sizeof(T))) {
      T* p = reinterpret_cast<T*>(base);
      const auto fill_row = row_kernels().fill[element_size_index(sizeof(T))];
      parallel_for(0, dst.numel(), 1 << 18, [&](int64_t begin, int64_t end) {
        fill_row(p + begin, &v, static_cast<size_t>(end - begin));
      });
      return;
    }
    const int64_t inner = dims.sizes.back(), stride = dims.strides.back();
    for (int64_t i = 0; i < dst.numel(); i += inner) {
      char* row = base + dims.offset(i);
      for (int64_t j = 0; j < inner; ++j) *reinterpret_cast<T*>(row + j * stride) = v;
    }
  });
}

void arange(const Tensor& dst, const Scalar& start, const Scalar& step) {
  switch_dtype(dst.dtype(), "arange", [&]<class T>() {
    T* out = static_cast<T*>(dst.data_ptr());
    const int64_t n = dst.numel();
    if (start.is_integral() && step.is_integral() && std::is_integral_v<T>) {
      const auto first = static_cast<uint64_t>(start.to_int()), by = static_cast<uint64_t>(step.to_int());
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_integral_v<T>)
          out[i] = static_cast<T>(static_cast<int64_t>(first + static_cast<uint64_t>(i) * by));
      }
      return;
    }
    const double first = start.to_double(), by = step.to_double();
    for (int64_t i = 0; i < n; ++i) {
      const double v = first + static_cast<double>(i) * by;
      if constexpr (std::is_same_v<T, double>)
        out[i] = v;
      else if constexpr (std::is_integral_v<T>)
        out[i] = static_cast<T>(Scalar(v).to_uint());
      else
        out[i] = T(static_cast<float>(v));
    }
  });
}

void linspace(const Tensor& dst, double start, double end) {
  switch_dtype(dst.dtype(), "linspace", [&]<class T>() {
    T* out = static_cast<T*>(dst.data_ptr());
    const int64_t n = dst.numel();
    const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
    for (int64_t i = 0; i < n; ++i) {
      // From both ends, so that the last number is `end` itself.
      const double v = i < (n + 1) / 2 ? start + static_cast<double>(i) * step
                                       : end - static_cast<double>(n - 1 - i) * step;
      if constexpr (std::is_same_v<T, double>)
        out[i] = v;
      else if constexpr (std::is_integral_v<T>)
        out[i] = static_cast<T>(Scalar(v).to_uint());
      else
        out[i] = T(static_cast<float>(v));
    }
  });
}

bool equal(const Tensor& a, const Tensor& b) {
  return switch_any_dtype(a.dtype(), "equal", [&]<class T>() {
    const StridedDims x = dims_of(a), y = dims_of(b);
    const auto *p = static_cast<const char*>(a.data_ptr()), *q = static_cast<const char*>(b.data_ptr());
    for (int64_t i = 0; i < a.numel(); ++i) {
      if (i % kStridedTile == kStridedTile - 1) check_stop();
      if (!(*reinterpret_cast<const T*>(p + x.offset(i)) == *reinterpret_cast<const T*>(q + y.offset(i))))
        return false;
    }
    return true;
  });
}

}  // namespace tenon::cpu
