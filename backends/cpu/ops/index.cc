// Reading and writing by position on the CPU. Positions have been checked; additions run in ascending order,
// so that their bits are fixed.
#include <cstring>
#include <type_traits>

#include "backends/cpu/copy/copy.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/ops/stub_functions.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

template <class T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else if constexpr (std::is_floating_point_v<T> || kIsComplex<T>)
    return a + b;
  else
    return T(static_cast<float>(a) + static_cast<float>(b));
}

// As the pointwise product: std::complex's own repairs NaNs, which takes a branch for each element.
template <class T>
std::complex<T> product(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
T scale(T a, const Scalar& by) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(by.to_int()));
  else if constexpr (kIsComplex<T>)
    return by.is_complex() ? product(a, T(by.to_complex()))
                           : T(a.real() * static_cast<typename T::value_type>(by.to_double()),
                               a.imag() * static_cast<typename T::value_type>(by.to_double()));
  else if constexpr (std::is_floating_point_v<T>)
    return a * static_cast<T>(by.to_double());
  else
    return T(static_cast<float>(a) * static_cast<float>(by.to_double()));
}

/// The slice at position `i` of dimension `dim`, as a view that takes part in nothing.
Tensor slice_at(const Tensor& t, size_t dim, int64_t i) {
  Dims sizes = t.sizes().to_dims(), strides = t.strides().to_dims();
  const int64_t offset = t.storage_offset() + i * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return make_view(t, sizes, strides, offset);
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  const int64_t ndim = self.dim();
  std::vector<int64_t> positions;  // in the flattened tensor
  int64_t seen = 0;
  for_each_tile<bool>(static_cast<const char*>(self.data_ptr()), dims_of(self),
                      convert_from(self.dtype(), DType::Bool, "nonzero"), [&](const bool* p, int64_t n) {
                        for (int64_t i = 0; i < n; ++i) {
                          if (p[i]) positions.push_back(seen + i);
                        }
                        seen += n;
                      });
  Tensor out = make_empty({static_cast<int64_t>(positions.size()), ndim}, DType::Int64);
  auto* to = static_cast<int64_t*>(out.data_ptr());
  for (size_t i = 0; i < positions.size(); ++i) {
    int64_t rest = positions[i];
    for (size_t d = static_cast<size_t>(ndim); d-- > 0;) {
      to[static_cast<int64_t>(i) * ndim + static_cast<int64_t>(d)] = rest % self.sizes()[d];
      rest /= self.sizes()[d];
    }
  }
  return out;
}

void index_select(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  report_kernel("index_select", "copy");
  const auto* positions = static_cast<const int64_t*>(index.data_ptr());
  const auto d = static_cast<size_t>(dim);
  const int64_t count = index.numel();
  const auto item = static_cast<int64_t>(self.itemsize());
  // Rows of a contiguous matrix are the common case: one block each.
  if (d == 0 && self.is_contiguous() && out.is_contiguous()) {
    const int64_t row = count > 0 ? out.numel() / count * item : 0;
    const auto* from = static_cast<const char*>(self.data_ptr());
    auto* to = static_cast<char*>(out.data_ptr());
    parallel_for(0, count, std::max<int64_t>((1 << 18) / std::max<int64_t>(row, 1), 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     std::memcpy(to + i * row, from + positions[i] * row, static_cast<size_t>(row));
                 });
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    copy_strided(slice_at(out, d, i), slice_at(self, d, positions[i]), "index_select");
}

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha) {
  const auto* positions = static_cast<const int64_t*>(index.data_ptr());
  const auto d = static_cast<size_t>(dim);
  const bool plain = alpha.is_integral() && alpha.to_int() == 1;
  switch_any_dtype(self.dtype(), "index_add", [&]<class T>() {
    for (int64_t i = 0; i < index.numel(); ++i) {
      const Tensor to = slice_at(self, d, positions[i]), from = slice_at(source, d, i);
      const StridedDims to_dims = dims_of(to), from_dims = dims_of(from);
      auto* base = static_cast<char*>(to.data_ptr());
      int64_t at = 0;
      for_each_tile<T>(static_cast<const char*>(from.data_ptr()), from_dims, nullptr,
                       [&](const T* p, int64_t n) {
                         for (int64_t j = 0; j < n; ++j, ++at) {
                           T& element = *reinterpret_cast<T*>(base + to_dims.offset(at));
                           element = add(element, plain ? p[j] : scale(p[j], alpha));
                         }
                       });
    }
  });
}

void take(const Tensor& self, const Tensor& linear, Tensor& out) {
  const auto* positions = static_cast<const int64_t*>(linear.data_ptr());
  const auto* from = static_cast<const char*>(self.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  const StridedDims dims = dims_of(self);
  const size_t item = self.itemsize();
  parallel_for(0, linear.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * item, from + dims.offset(positions[i]), item);
    }
  });
}

void put(const Tensor& self, const Tensor& linear, const Tensor& values, bool accumulate) {
  const auto* positions = static_cast<const int64_t*>(linear.data_ptr());
  const StridedDims dims = dims_of(self);
  auto* base = static_cast<char*>(self.data_ptr());
  switch_any_dtype(self.dtype(), "index_put_", [&]<class T>() {
    int64_t at = 0;
    for_each_tile<T>(static_cast<const char*>(values.data_ptr()), dims_of(values), nullptr,
                     [&](const T* p, int64_t n) {
                       for (int64_t j = 0; j < n; ++j, ++at) {
                         T& element = *reinterpret_cast<T*>(base + dims.offset(positions[at]));
                         element = accumulate ? add(element, p[j]) : p[j];
                       }
                     });
  });
}

std::tuple<int64_t, int64_t> int_range(const Tensor& self) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for_each_tile<int64_t>(static_cast<const char*>(self.data_ptr()), dims_of(self), nullptr,
                         [&](const int64_t* p, int64_t n) {
                           for (int64_t i = 0; i < n; ++i) {
                             low = std::min(low, p[i]);
                             high = std::max(high, p[i]);
                           }
                         });
  return {low, high};
}

}  // namespace tenon::cpu
