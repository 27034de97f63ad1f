// RowProducts: products of rows of one tensor by one weight, one after another, as an unrolled recurrent
// layer has them. Each reads the whole weight, so that a few of them take as long as one product of all rows,
// whose rows have the same bits. Used by Tracer.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::builder {

/// Whether they are the same elements in the same order.
bool is_same_view(const tenon::Tensor& a, const tenon::Tensor& b);

class RowProducts {
 public:
  /// The product of `rows` [m, k] with a weight, with a bias or none, as rows of the product of all rows that
  /// their storage holds, which others may get, too; an undefined tensor where it is to be computed by
  /// itself. That product is made by `multiply` once so many have been asked for that it pays.
  tenon::Tensor take(const tenon::Tensor& rows, const tenon::Tensor& weight, const tenon::Tensor& bias,
                     const std::function<tenon::Tensor(const tenon::Tensor& all)>& multiply);
  /// Nothing of a storage that is written is taken from a product from here on.
  void forget(const StorageImpl& written);

 private:
  struct Product {
    tenon::Tensor first, weight, bias;  // the first rows that were asked for
    int64_t rows = 0;                   // asked for so far
    int64_t times = 0;
    tenon::Tensor result;  // of all rows; undefined: not made yet
  };
  std::vector<Product> products_;
  std::unordered_set<const StorageImpl*> written_;
};

}  // namespace tenon::builder
