#include <fmt/core.h>

#include "tenon/generated/embedding/shapes.h"

namespace tenon::ops::shape {
namespace {

void check_rows(HeaderRef weight, HeaderRef indices, const char* op) {
  TENON_CHECK(weight.dim() == 2, Shape,
              fmt::format("{}: `weight` must be a matrix [N, D], got {}", op, to_string(weight.sizes())));
  TENON_CHECK(
      indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, Type,
      fmt::format("{}: expected dtype int32 or int64 for indices, got {}", op, name(indices.dtype())));
}

}  // namespace

void embedding(OutputSpecs& out, HeaderRef weight, HeaderRef indices, int64_t, bool, bool sparse) {
  check_rows(weight, indices, "embedding");
  TENON_CHECK(!sparse, NotImplemented, "embedding: `sparse` gradients are not supported");
  Dims sizes = indices.sizes().to_dims();
  sizes.push_back(weight.sizes()[1]);
  out.set(0, sizes, weight.dtype());
}

void embedding_bag_sum(OutputSpecs& out, HeaderRef self, HeaderRef rows, HeaderRef bags, int64_t count) {
  check_rows(self, rows, "embedding_bag");
  TENON_CHECK(rows.dim() == 1 && bags.dim() == 1 && rows.numel() == bags.numel(), Shape,
              fmt::format("embedding_bag: `indices` {} and their bags {} must be vectors of one length",
                          to_string(rows.sizes()), to_string(bags.sizes())));
  out.set(0, Dims{count, self.sizes()[1]}, self.dtype(), Elements::Zero);
}

}  // namespace tenon::ops::shape
