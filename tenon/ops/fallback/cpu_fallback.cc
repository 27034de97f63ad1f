#include "tenon/ops/fallback/cpu_fallback.h"

#include <fmt/core.h>

#include <memory>
#include <mutex>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/host_copies.h"
#include "tenon/dispatch/library.h"
#include "tenon/dispatch/same_device.h"

namespace tenon {
namespace {

void refuse_view(const OperatorHandle& op, Device device) {
  for (const schema::Return& r : op.schema().returns) {
    TENON_CHECK(!r.alias || r.is_write(), NotImplemented,
                fmt::format("Operator '{}' returns a view of its arguments, which copies on the host cannot "
                            "give; device {} needs a kernel of its own",
                            op.full_name(), to_string(device)));
  }
}

/// The device of the call, and where its new results belong.
struct Where {
  Device device, results;
};

Where where_of(const OperatorHandle& op, DispatchKeySet keys, Stack& stack, size_t first) {
  const schema::FunctionSchema& schema = op.schema();
  const Tensor* const there = check_same_device(op.entry(), schema, stack, first);
  std::optional<Device> wanted;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (stack.tag(first + i) == CellTag::Device) wanted = stack.at<Device>(first + i);
    if (stack.tag(first + i) != CellTag::Storage) continue;
    const Device holds = stack.at<Storage>(first + i)->device();
    TENON_CHECK(holds.is_cpu(), NotImplemented,
                fmt::format("{}: `{}` is a storage of {}, of which there is no copy on the host; the device "
                            "needs a kernel of its own",
                            schema.name, schema.arguments[i].name, to_string(holds)));
  }
  const Device device = resolved(there                         ? there->device()
                                 : wanted && !wanted->is_cpu() ? *wanted
                                                               : Device(keys.backend()));
  return {device, wanted.value_or(device)};
}

Access access_of(const schema::Argument& a) {
  return !a.is_write() ? Access::Read : a.is_out ? Access::Write : Access::ReadWrite;
}

void run_on_cpu(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  constexpr DispatchKey kCpu(Functionality::Dense, kCpuBackend);
  try {
    op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kCpuBackend), stack);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::NotImplemented && !Dispatcher::singleton().has_kernel_for_key(op, kCpu))
      detail::missing_kernel(op.entry(), keys);
    throw;
  }
}

bool takes(Backend backend, std::string_view full_name) { return falls_back(backend, full_name); }

}  // namespace

void cpu_fallback(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) try {
  const schema::FunctionSchema& schema = op.schema();
  const size_t first = stack.size() - schema.arguments.size();
  const auto [device, results] = where_of(op, keys, stack, first);
  refuse_view(op, device);
  const std::string name = op.full_name();
  HostCopies copies(device, name);
  each_tensor(schema, stack, first,
              [&](Tensor& t, const schema::Argument& a, int64_t) { copies.add(t, access_of(a)); });
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (stack.tag(first + i) == CellTag::Device) stack.at<Device>(first + i) = kCPU;
  }
  copies.fetch();
  copies.run([&] { run_on_cpu(op, keys, stack); });
  copies.put_back();
  for (size_t i = stack.size() - schema.returns.size(); i < stack.size(); ++i) {
    const bool written = schema.returns[i - (stack.size() - schema.returns.size())].alias.has_value();
    if (results.is_cpu() && !written) continue;
    if (stack.tag(i) == CellTag::Tensor) copies.move(stack.at<Tensor>(i));
    if (stack.tag(i) == CellTag::TensorList) {
      for (Tensor& t : stack.at<std::vector<Tensor>>(i)) copies.move(t);
    }
  }
  copies.report();
} catch (Error& e) {
  e.set_operator(op.schema().name);  // a device knows of copies only
  throw;
}

namespace {

std::mutex g_mutex;
/// By backend; kept for the process, as the dispatcher is.
std::unique_ptr<Library>* registered() {
  static auto* all = new std::unique_ptr<Library>[32];
  return all;
}

}  // namespace

void set_cpu_fallback(Backend backend, FallbackPolicy policy) {
  TENON_CHECK(backend != kCpuBackend && backend != kMetaBackend, Value,
              fmt::format("set_cpu_fallback: {} does not fall back", backend_name(backend)));
  set_fallback_policy(backend, std::move(policy));
  const std::lock_guard lock(g_mutex);
  std::unique_ptr<Library>& library = registered()[backend];
  if (library) return;
  auto fresh =
      std::make_unique<Library>(Library::Kind::Impl, "_", backend_key(backend), SourceLocation::here());
  fresh->fallback(CppFunction::make_from_boxed_function<&cpu_fallback>().taking(&takes));
  library = std::move(fresh);
}

void remove_cpu_fallback(Backend backend) {
  set_fallback_policy(backend, {});
  const std::lock_guard lock(g_mutex);
  registered()[backend].reset();
}

}  // namespace tenon
