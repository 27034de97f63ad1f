#include "tenon/ops/forms/copy_out.h"

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

void copy_out(const BuiltinFunction& body, const std::tuple<Tensor, Tensor>& results, Tensor& first,
              Tensor& second) {
  const StructuredInfo info{.name = body.name, .arguments = "first, second", .out_rule = body.out_rule};
  const StructuredArguments arguments(info, std::get<0>(results), std::get<1>(results));
  const OutputSpec wanted[] = {spec_of(std::get<0>(results)), spec_of(std::get<1>(results))};
  structured_check(info, wanted[0], arguments, first, false);
  structured_check(info, wanted[1], arguments, second, false);
  Tensor* const outs[] = {&first, &second};
  check_apart(body.name, wanted, outs);
  resize_structured(wanted[0], first);
  resize_structured(wanted[1], second);
  ops::copy_elements(first, std::get<0>(results), body.name);
  ops::copy_elements(second, std::get<1>(results), body.name);
}

}  // namespace tenon::detail
