// The general path of pointwise calls, for any shapes, strides, dtypes and devices. Internal to tenon/iter.
#pragma once

#include <algorithm>
#include <cstring>

#include "tenon/iter/host.h"
#include "tenon/iter/lower.h"
#include "tenon/iter/pointwise.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::detail {

/// The numbers of a call in 8 bytes each, as kernels take them.
class ScalarBlock {
 public:
  const uint64_t* data() const noexcept { return numbers_; }
  uint64_t& operator[](size_t i) noexcept { return numbers_[i]; }

  /// Stores a number exactly. False if its category is higher than that of `type`, or if it does not fit.
  [[gnu::always_inline]] bool put_exact(size_t i, const Scalar& s, expr::Type type) noexcept {
    return !s.is_complex() && !s.is_beyond_int64() && put_real(numbers_[i], s, type);
  }

 private:
  uint64_t numbers_[2 * PointwiseInfo::kMaxScalars];
};

/// Fills the block of a repeated operand with its element, of the size of T.
template <class T>
void fill_repeated(char* block, const void* element) {
  uint64_t word;
  for (size_t i = 0; i < sizeof word; i += sizeof(T))
    std::memcpy(reinterpret_cast<char*>(&word) + i, element, sizeof(T));
  for (size_t i = 0; i < HostKernel::kRepeatedBytes; i += sizeof word)
    std::memcpy(block + i, &word, sizeof word);
}

struct OutputRules {
  bool in_place = false;  ///< The one output is operand 0.
  bool resizes = false;   ///< Outputs without elements get the result's shape.
};

/// Output i is written to `*outs[i]`; if that is null, it is allocated and becomes the next of `results`.
void general_pointwise(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars, std::span<const Tensor* const> outs,
                       OutputRules rules, std::span<Tensor> results);

}  // namespace tenon::detail
