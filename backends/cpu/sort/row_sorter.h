// Sorts one row of elements after another, by (element, position): the order is total, so every way of
// sorting gives the same result. Used by sort and topk. Knows dtypes and pointers; nothing of tensors'
// dimensions.
#pragma once

#include <cstdint>

#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// What sorting rows of one length and dtype needs, kept from row to row. For one thread.
class RowSorter {
 public:
  /// Rows of `length` elements; the first `count` in order are asked for. Elements that come last
  /// otherwise come first if `descending`; equal ones keep their order. Bool and all integer and
  /// floating-point dtypes that kernels compute with.
  RowSorter(DType dtype, int64_t length, int64_t count, bool descending);

  /// The elements to `values`, and where they are in `row` to `positions`, `count` of each.
  void sort(const void* row, void* values, int64_t* positions) { (this->*sort_)(row, values, positions); }

 private:
  using Sort = void (RowSorter::*)(const void* row, void* values, int64_t* positions);

  template <class Order>
  void set_order();
  template <class Order>
  void sort_words(const void* row, void* values, int64_t* positions);
  template <class Order>
  void sort_pairs(const void* row, void* values, int64_t* positions);
  template <class Order>
  void select(const void* row, void* values, int64_t* positions);
  template <class Order>
  void write(const void* row, const uint64_t* words, void* values, int64_t* positions) const;

  int64_t length_, count_;
  bool descending_;
  Sort sort_ = nullptr;
  Tensor scratch_;
};

}  // namespace tenon::cpu
