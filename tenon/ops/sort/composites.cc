// What sort does for other operators.
#include "tenon/generated/sort/bodies.h"
#include "tenon/generated/sort/functions.h"

namespace tenon::ops {

Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(tenon::sort(self, dim, descending));
}
Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(tenon::sort(self, stable, dim, descending));
}
Tensor msort(const Tensor& self) { return tenon::_sort_values(self, 0, false); }

}  // namespace tenon::ops
