// Sorts the values of one row after another: what RowSorter gives without positions, bit for bit, in a sixth
// of the time. Knows dtypes and pointers; nothing of tensors' dimensions.
#pragma once

#include <cstdint>

#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// For rows of one length and dtype, and one thread. The dtypes and the order of RowSorter.
class ValueSorter {
 public:
  ValueSorter(DType dtype, int64_t length, bool descending);

  /// The elements of `row` to `values`, which must not overlap.
  void sort(const void* row, void* values) { (this->*sort_)(row, values); }

 private:
  template <class Order>
  void sort_as(const void* row, void* values);

  int64_t length_;
  bool descending_;
  void (ValueSorter::*sort_)(const void* row, void* values) = nullptr;
  Tensor scratch_;
};

}  // namespace tenon::cpu
