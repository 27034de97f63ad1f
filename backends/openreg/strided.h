// Strided: what the device sees of a tensor, kept for a task that runs later. For kernels.
#pragma once

#include <vector>

#include "backend.h"

namespace openreg {

template <class T>
struct Strided {
  Strided(Backend& backend, const TenonTensorView& v)
      : data(reinterpret_cast<T*>(backend.memory(v.device.index).seen_by_device(v.address))),
        sizes(v.sizes, v.sizes + v.ndim),
        strides(v.strides, v.strides + v.ndim) {}

  /// The i-th element in logical order.
  T& at(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) offset += i % sizes[d] * strides[d];
    return data[offset];
  }
  /// Element [i, j] of a matrix.
  T& at(int64_t i, int64_t j) const { return data[i * strides[0] + j * strides[1]]; }

  T* data;
  std::vector<int64_t> sizes, strides;
};

}  // namespace openreg
