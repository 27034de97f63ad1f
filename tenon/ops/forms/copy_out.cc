#include "tenon/ops/forms/copy_out.h"

#include "tenon/ops/copy/elements.h"

namespace tenon::detail {

void copy_out(const char* op, const Tensor& result, Tensor& out) {
  const StructuredInfo info{.name = op, .arguments = "result"};
  const StructuredArguments arguments(info, result);
  OutputSpec wanted;
  OutputSpecs({&wanted, 1}).set(0, result.sizes(), result.dtype());
  structured_check(op, wanted, arguments, out, false);
  resize_structured(wanted, out);
  ops::copy_elements(out, result, op);
}

}  // namespace tenon::detail
