#include "tenon/dispatch/same_device.h"

#include <fmt/core.h>

namespace tenon {
namespace {

std::string name_of(const schema::Argument& argument, int64_t i) {
  return i < 0 ? argument.name : fmt::format("{}[{}]", argument.name, i);
}

}  // namespace

const Tensor* check_same_device(const OperatorEntry& op, const schema::FunctionSchema& schema, Stack& stack,
                                size_t first) {
  const Tensor* there = nullptr;
  const schema::Argument* named = nullptr;
  int64_t element = -1;
  each_tensor(schema, stack, first, [&](const Tensor& t, const schema::Argument& a, int64_t i) {
    if (there || !t.defined() || t.device().is_cpu()) return;
    there = &t;
    named = &a;
    element = i;
  });
  each_tensor(schema, stack, first, [&](const Tensor& t, const schema::Argument& a, int64_t i) {
    if (!there || !t.defined() || t.device() == there->device()) return;
    if ((t.device().is_cpu() && op.mixed_devices) || is_host_number(t, a)) return;
    throw_error(ErrorKind::Device,
                fmt::format("{}: `{}` is on {}, expected the same device as `{}`, {}; move one with .to()",
                            schema.name, name_of(a, i), to_string(t.device()), name_of(*named, element),
                            to_string(there->device())));
  });
  return there;
}

}  // namespace tenon
