// Finds elements of a row by their rank in the order of sort, without sorting it. Used by kthvalue and
// medians. Knows dtypes and pointers; nothing of tensors' dimensions.
#pragma once

#include <cstdint>

#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// For rows of one length and dtype, and one thread.
class RowRanks {
 public:
  /// The dtypes of RowSorter.
  RowRanks(DType dtype, int64_t length);

  /// The position of the element that `k` others come before; of equal elements the first comes first.
  int64_t find(const void* row, int64_t k) { return (this->*find_)(row, k); }
  /// How many elements are no NaN.
  int64_t numbers(const void* row) const { return (this->*numbers_)(row); }

 private:
  template <class Order>
  int64_t find_as(const void* row, int64_t k);
  template <class Order>
  int64_t numbers_as(const void* row) const;

  int64_t length_;
  int64_t (RowRanks::*find_)(const void* row, int64_t k) = nullptr;
  int64_t (RowRanks::*numbers_)(const void* row) const = nullptr;
  Tensor scratch_;
};

}  // namespace tenon::cpu
