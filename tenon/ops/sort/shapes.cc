// Shapes of sorted tensors.
#include <fmt/core.h>

#include "tenon/generated/sort/shapes.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops::shape {

void sort(OutputSpecs& out, HeaderRef self, int64_t dim, bool descending) {
  sort_stable(out, self, std::nullopt, dim, descending);
}

void sort_stable(OutputSpecs& out, HeaderRef self, std::optional<bool>, int64_t dim, bool) {
  check_real(self, kThisCall);
  wrap_dim(dim, self.dim(), "sort");
  out.set_like(0, self, self.dtype());
  out.set_like(1, self, DType::Int64);
}

void _sort_values(OutputSpecs& out, HeaderRef self, int64_t dim, bool) {
  check_real(self, kThisCall);
  wrap_dim(dim, self.dim(), "sort");
  out.set_like(0, self, self.dtype());
}

void topk(OutputSpecs& out, HeaderRef self, int64_t k, int64_t dim, bool, bool) {
  check_real(self, kThisCall);
  const int64_t d = wrap_dim(dim, self.dim(), "topk");
  Dims sizes(self.sizes());
  const int64_t most = sizes.empty() ? 1 : sizes[static_cast<size_t>(d)];
  TENON_CHECK(k >= 0 && k <= most, Runtime,
              fmt::format("topk: selected index k out of range: {} of the {} elements of `self`, {}, along "
                          "dimension {}",
                          k, most, to_string(self.sizes()), d));
  if (!sizes.empty()) sizes[static_cast<size_t>(d)] = k;
  out.set(0, sizes, self.dtype());
  out.set(1, sizes, DType::Int64);
}

}  // namespace tenon::ops::shape
