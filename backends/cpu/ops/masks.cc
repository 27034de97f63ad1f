// Positions of elements that are not zero, and elements that a mask selects: counted first, so that the
// result has its size, and then written without a branch for each element.
#include <cstring>

#include "backends/cpu/ops/strided.h"
#include "backends/cpu/ops/stub_functions.h"
#include "tenon/core/kernel_report.h"

namespace tenon::cpu {
namespace {

/// How many of n bytes, each 0 or 1, are 1.
int64_t count_true(const uint8_t* p, int64_t n) noexcept {
  int64_t count = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    count += static_cast<int64_t>(word * 0x0101010101010101u >> 56);
  }
  for (; i < n; ++i) count += p[i];
  return count;
}

/// The elements as bytes 0 and 1, contiguous: in place, if they are so, else in `copy`.
const uint8_t* as_bytes(const Tensor& t, Tensor& copy, const char* op) {
  const StridedDims dims = dims_of(t);
  if (t.dtype() == DType::Bool && dims.dense(1)) return static_cast<const uint8_t*>(t.data_ptr());
  copy = make_empty(t.sizes(), DType::Bool);
  auto* to = static_cast<uint8_t*>(copy.data_ptr());
  const uint8_t* first = to;
  for_each_tile<bool>(static_cast<const char*>(t.data_ptr()), dims, convert_from(t.dtype(), DType::Bool, op),
                      [&](const bool* p, int64_t n) {
                        std::memcpy(to, p, static_cast<size_t>(n));
                        to += n;
                      });
  return first;
}

/// Calls f(i, k) for the i-th byte that may be the k-th true one, for increasing i: the last call for each k
/// is the right one. There are `count` true ones.
template <class F>
void for_each_true(const uint8_t* p, int64_t begin, int64_t end, int64_t count, int64_t& k, F&& f) {
  for (int64_t i = begin; i < end && k < count; ++i) {
    f(i, k);
    k += p[i];
  }
}

template <class T>
void select_dense(const T* from, const uint8_t* mask, int64_t n, int64_t count, T* to) {
  int64_t k = 0;
  for_each_true(mask, 0, n, count, k, [&](int64_t i, int64_t at) { to[at] = from[i]; });
}

struct Bytes16 {
  uint64_t words[2];
};

template <class T>
void select_as(const Tensor& self, const uint8_t* mask, int64_t count, Tensor& out) {
  const StridedDims dims = dims_of(self);
  auto* to = static_cast<T*>(out.data_ptr());
  const auto* from = static_cast<const char*>(self.data_ptr());
  if (dims.dense(sizeof(T)))
    return select_dense(reinterpret_cast<const T*>(from), mask, self.numel(), count, to);
  int64_t k = 0;
  const int64_t inner = dims.sizes.back(), stride = dims.strides.back();
  for (int64_t i = 0; i < self.numel() && k < count; i += inner) {
    const char* row = from + dims.offset(i);
    for_each_true(mask + i, 0, inner, count, k,
                  [&](int64_t j, int64_t at) { std::memcpy(to + at, row + j * stride, sizeof(T)); });
  }
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  report_kernel("nonzero", "count, then write");
  const int64_t ndim = self.dim(), numel = self.numel();
  Tensor copy;
  const uint8_t* bytes = numel > 0 ? as_bytes(self, copy, "nonzero") : nullptr;
  const int64_t count = numel > 0 ? count_true(bytes, numel) : 0;
  Tensor out = make_empty({count, ndim}, DType::Int64);
  if (count == 0 || ndim == 0) return out;
  auto* to = static_cast<int64_t*>(out.data_ptr());
  const int64_t inner = self.sizes().back();
  int64_t k = 0;
  Dims outer(static_cast<size_t>(ndim - 1), 0);
  for (int64_t i = 0; i < numel && k < count; i += inner) {
    if (ndim == 1) {
      for_each_true(bytes, 0, inner, count, k, [&](int64_t j, int64_t at) { to[at] = j; });
    } else if (ndim == 2) {
      for_each_true(bytes + i, 0, inner, count, k, [&](int64_t j, int64_t at) {
        to[2 * at] = outer[0];
        to[2 * at + 1] = j;
      });
    } else {
      for_each_true(bytes + i, 0, inner, count, k, [&](int64_t j, int64_t at) {
        int64_t* place = to + at * ndim;
        for (size_t d = 0; d < outer.size(); ++d) place[d] = outer[d];
        place[ndim - 1] = j;
      });
    }
    for (size_t d = outer.size(); d-- > 0;) {
      if (++outer[d] < self.sizes()[d]) break;
      outer[d] = 0;
    }
  }
  return out;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  report_kernel("masked_select", "count, then write");
  const int64_t numel = self.numel();
  Tensor copy;
  const uint8_t* bytes = numel > 0 ? as_bytes(mask, copy, "masked_select") : nullptr;
  const int64_t count = numel > 0 ? count_true(bytes, numel) : 0;
  Tensor out = make_empty({count}, self.dtype());
  if (count == 0) return out;
  switch (self.itemsize()) {
    case 1:
      select_as<uint8_t>(self, bytes, count, out);
      break;
    case 2:
      select_as<uint16_t>(self, bytes, count, out);
      break;
    case 4:
      select_as<uint32_t>(self, bytes, count, out);
      break;
    case 8:
      select_as<uint64_t>(self, bytes, count, out);
      break;
    default:
      select_as<Bytes16>(self, bytes, count, out);
  }
  return out;
}

}  // namespace tenon::cpu
