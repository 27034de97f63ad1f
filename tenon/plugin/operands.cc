#include "tenon/plugin/operands.h"
#include "tenon/dispatch/builtin.h"

#include "tenon/dispatch/same_device.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::plugin {
namespace {

/// The number as a tensor of the device. It is written by the device, not copied, so that nothing waits.
Tensor on_device(const Tensor& number, Device device) {
  Tensor there = make_empty({}, number.dtype(), device);
  ops::fill_elements(there, ops::read_scalar(number), "number of the host");
  there.impl()->set_wrapped_number(number.impl()->is_wrapped_number());
  return there;
}

}  // namespace

Device device_of_call(const schema::FunctionSchema& schema, Stack& stack, size_t first, Backend backend) {
  std::optional<Device> found;
  each_tensor(schema, stack, first, [&](const Tensor& t, const schema::Argument&, int64_t) {
    if (!found && t.defined() && t.device().backend == backend) found = t.device();
  });
  for (size_t i = 0; !found && i < schema.arguments.size(); ++i) {
    if (stack.tag(first + i) == CellTag::Device && stack.at<Device>(first + i).backend == backend)
      found = stack.at<Device>(first + i);
  }
  return resolved(found.value_or(Device(backend)));
}

std::optional<Stack> checked_operands(const OperatorHandle& op, Stack& stack, size_t first, Device device) {
  const schema::FunctionSchema& schema = op.schema();
  if (schema.ns != detail::kBuiltinNamespace || op.entry().crosses_devices) return std::nullopt;
  check_same_device(op.entry(), schema, stack, first);
  if (op.entry().mixed_devices) return std::nullopt;
  bool numbers = false;
  each_tensor(schema, stack, first,
              [&](const Tensor& t, const schema::Argument& a, int64_t) { numbers |= is_host_number(t, a); });
  if (!numbers) return std::nullopt;
  Stack copy;
  for (size_t i = 0; i < schema.arguments.size(); ++i) copy.push_copy(stack, first + i);
  each_tensor(schema, copy, 0, [&](Tensor& t, const schema::Argument& a, int64_t) {
    if (is_host_number(t, a)) t = on_device(t, device);
  });
  return copy;
}

}  // namespace tenon::plugin
