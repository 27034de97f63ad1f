#include "tenon/ops/forms/copy_out.h"

#include "tenon/ops/copy/elements.h"

namespace tenon::detail {

namespace {

OutputSpec spec_of(const Tensor& result) {
  OutputSpec spec;
  OutputSpecs({&spec, 1}).set(0, result.sizes(), result.dtype());
  return spec;
}

}  // namespace

void check_factory_out(const char* op, const Tensor& expected, const Tensor& out) {
  const StructuredInfo info{.name = op};
  structured_check(op, spec_of(expected), StructuredArguments(info, std::optional(out.device())), out, false);
}

void copy_out(const char* op, const Tensor& result, Tensor& out) {
  const StructuredInfo info{.name = op, .arguments = "result"};
  const StructuredArguments arguments(info, result);
  const OutputSpec wanted = spec_of(result);
  structured_check(op, wanted, arguments, out, false);
  resize_structured(wanted, out);
  ops::copy_elements(out, result, op);
}

}  // namespace tenon::detail
