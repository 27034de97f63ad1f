#include "tenon/ops/copy_out.h"

#include "tenon/ops/elements.h"

namespace tenon::detail {

void copy_out(const char* op, const Tensor& result, Tensor& out) {
  const StructuredArguments arguments(op, result);
  const ShapeResult::Output wanted{result.sizes().to_dims(), result.dtype(), true};
  structured_check(op, wanted, arguments, out, false);
  resize_structured(wanted, out);
  ops::copy_elements(out, result, op);
}

}  // namespace tenon::detail
