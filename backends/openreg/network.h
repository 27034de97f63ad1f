// The kernels of option kernels=network, and what their files share.
#pragma once

#include <array>

#include "tenon/abi/kernel.h"

namespace openreg {

void register_network(tenon::abi::Library& library);
/// Its part in network_loss.cc.
void register_loss(tenon::abi::Library& library);

inline constexpr int64_t kChunk = 1024;

/// The sum of up to kChunk numbers by the tree that Tenon's reductions have: sixteen lanes, folded in halves.
template <class F>
float sum_of(int64_t n, F&& element) {
  std::array<float, 16> lanes{};
  for (int64_t i = 0; i < n; ++i) lanes[static_cast<size_t>(i % 16)] += element(i);
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

inline bool is_matrix(const TenonTensorView& v) { return v.dtype == TENON_DTYPE_FLOAT32 && v.ndim == 2; }

}  // namespace openreg
