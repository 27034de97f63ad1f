#include "tenon/ops/forms/copy_out.h"

#include <vector>

#include "tenon/ops/elements/elements.h"

namespace tenon::detail {

namespace {

OutputSpec spec_of(const Tensor& result) {
  OutputSpec spec;
  OutputSpecs({&spec, 1}).set(0, result.sizes(), result.dtype());
  return spec;
}

}  // namespace

void check_factory_out(const BuiltinFunction& body, const Tensor& expected, const Tensor& out) {
  const StructuredInfo info{.name = body.name, .out_rule = body.out_rule};
  structured_check(info, spec_of(expected), StructuredArguments(info, std::optional(out.device())), out,
                   false);
}

void copy_out(const BuiltinFunction& body, const Tensor& result, Tensor& out) {
  const StructuredInfo info{.name = body.name, .arguments = "result", .out_rule = body.out_rule};
  const StructuredArguments arguments(info, result);
  const OutputSpec wanted = spec_of(result);
  structured_check(info, wanted, arguments, out, false);
  resize_structured(wanted, out);
  ops::copy_elements(out, result, body.name);
}

void copy_out(const BuiltinFunction& body, std::span<const Tensor> results, std::span<Tensor* const> outs) {
  const StructuredInfo info{.name = body.name, .arguments = "result", .out_rule = body.out_rule};
  const StructuredArguments arguments(info, results[0]);
  std::vector<OutputSpec> wanted;
  for (const Tensor& result : results) wanted.push_back(spec_of(result));
  for (size_t i = 0; i < outs.size(); ++i) structured_check(info, wanted[i], arguments, *outs[i], false);
  check_apart(body.name, wanted, outs.data());
  for (size_t i = 0; i < outs.size(); ++i) resize_structured(wanted[i], *outs[i]);
  for (size_t i = 0; i < outs.size(); ++i) ops::copy_elements(*outs[i], results[i], body.name);
}

}  // namespace tenon::detail
