#include "tenon/plugin/call.h"

#include <fmt/core.h>

#include <utility>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/stub.h"
#include "tenon/ops/fallback/cpu_fallback.h"

namespace tenon::plugin {
namespace {

// A cell, a tag and a tensor are the same on both sides.
static_assert(sizeof(TenonCell) == sizeof(Cell) && sizeof(CellTag) == sizeof(uint8_t));
static_assert(TENON_CELL_STORAGE == static_cast<int>(CellTag::Storage));
static_assert(TENON_CELL_TENSOR == static_cast<int>(CellTag::Tensor));
static_assert(TENON_CELL_SCALAR == static_cast<int>(CellTag::Scalar));
static_assert(sizeof(Tensor) == sizeof(TenonTensor*) && sizeof(Device) == sizeof(TenonDevice));

struct PluginKernel final : detail::ClosureBase {
  PluginKernel(const PluginDevice& d, TenonKernel k, void* a) : device(d), kernel(k), data(a) {}
  const PluginDevice& device;
  const TenonKernel kernel;
  void* const data;
};

/// The results of a call until they are on the stack.
struct Results {
  explicit Results(size_t n) : cells(n), tags(n, CellTag::None) {}
  ~Results() {
    // A stack knows how to free them.
    Stack rest;
    for (size_t i = 0; i < cells.size(); ++i) rest.push_cell(cells[i], tags[i]);
  }
  /// Moves the results up to the first that there is not to a stack.
  void give(Stack& stack) {
    for (size_t i = 0; i < cells.size() && tags[i] != CellTag::None; ++i)
      stack.push_cell(cells[i], std::exchange(tags[i], CellTag::None));
  }
  SmallVector<Cell, 4> cells;
  SmallVector<CellTag, 4> tags;
};

/// What a cell of that type holds.
CellTag cell_tag_of(const schema::Type& type) {
  return detail::visit_base<CellTag>(type.base, [&]<schema::BaseType base>() {
    using Row = detail::ValueType<base>;
    return type.list ? Row::list_tag : Row::tag;
  });
}

/// Throws where a call that was declined would come to the same kernel again.
void check_can_fall_back(const std::string& name, DispatchKeySet keys, const PluginDevice& device) {
  TENON_CHECK(
      keys.backend() == device.backend(), NotImplemented,
      fmt::format("{}: the kernel of device {} has declined a call of key {}, and nobody is left to run it",
                  name, device.device_name(), to_string(keys)));
}

/// Throws unless the results are those that the schema promises; those of a call on the device are on it.
void check_results(const schema::FunctionSchema& schema, Results& results, DispatchKeySet keys,
                   const PluginDevice& device) {
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    const CellTag wanted = cell_tag_of(schema.returns[i].type);
    TENON_CHECK(
        results.tags[i] == wanted, Device,
        fmt::format("{}: the kernel of device {} returned {} as result {}, where its schema says {}",
                    schema.full_name(), device.device_name(), name(results.tags[i]), i, name(wanted)));
    if (wanted != CellTag::Tensor || keys.backend() != device.backend()) continue;
    const auto& tensor = *reinterpret_cast<const Tensor*>(&results.cells[i]);
    TENON_CHECK(
        tensor.defined() && tensor.device().backend == device.backend(), Device,
        fmt::format("{}: the kernel of device {} returned {} as result {}, expected one on {}",
                    schema.full_name(), device.device_name(),
                    tensor.defined() ? "a tensor on " + to_string(tensor.device()) : "an undefined tensor", i,
                    device.device_name()));
  }
}

/// The values on the stack from `first` on as a plug-in sees them.
TenonCall abi_call(Stack& stack, size_t first, Results& results, Stream stream) {
  TenonCall call{};
  call.struct_size = sizeof call;
  call.num_args = static_cast<uint32_t>(stack.size() - first);
  call.num_results = static_cast<uint32_t>(results.cells.size());
  call.args = reinterpret_cast<const TenonCell*>(stack.cells() + first);
  call.arg_tags = reinterpret_cast<const uint8_t*>(stack.tags() + first);
  call.results = reinterpret_cast<TenonCell*>(results.cells.data());
  call.result_tags = reinterpret_cast<uint8_t*>(results.tags.data());
  call.stream = abi_stream(stream);
  return call;
}

void call_kernel(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const auto& closure = *static_cast<const PluginKernel*>(kernel.data);
  const schema::FunctionSchema& schema = op.schema();
  const size_t num_args = schema.arguments.size(), first = stack.size() - num_args;
  Results results(schema.returns.size());
  TenonCall call = abi_call(stack, first, results, current_stream(Device(closure.device.backend())));
  call.op = reinterpret_cast<const TenonOperator*>(&op.entry());
  call.keys = keys.bits();
  const std::string name = op.full_name();
  TenonStatus* const status = closure.device.status_of(name.c_str(), closure.kernel, closure.data,
                                                       static_cast<const TenonCall*>(&call));
  if (status == TENON_DECLINED) {
    check_can_fall_back(name, keys, closure.device);
    return cpu_fallback(op, keys, stack);
  }
  if (status) raise(status, name);
  check_results(schema, results, keys, closure.device);
  stack.erase(first, num_args);
  results.give(stack);
}

/// A stub's function. Lives as long as the process, because a call may be in it when it is taken back.
struct PluginStub {
  std::string name;
  const PluginDevice& device;
  TenonKernel kernel;
  void* data;
};

bool call_stub(void* data, Stream stream, Stack& stack) {
  const auto& stub = *static_cast<const PluginStub*>(data);
  Results results(4);  // more than any stub returns
  const TenonCall call = abi_call(stack, 0, results, stream);
  TenonStatus* const status =
      stub.device.status_of(stub.name.c_str(), stub.kernel, stub.data, static_cast<const TenonCall*>(&call));
  if (status == TENON_DECLINED) return false;
  if (status) raise(status, stub.name);
  stack.clear();
  results.give(stack);
  return true;
}

StubBase& find_stub(const std::string& name) {
  for (const StubBase* s : StubBase::all()) {
    if (s->name() == name) return const_cast<StubBase&>(*s);
  }
  throw_error(ErrorKind::Value,
              fmt::format("register_stub: there is no stub '{}'; `tenon stubs` lists them", name));
}

}  // namespace

void set_stub(const std::string& stub, const PluginDevice& device, TenonKernel kernel, void* data) {
  find_stub(stub).set_boxed(device.backend(), &call_stub,
                            new PluginStub{fmt::format("stub {}", stub), device, kernel, data});
}

void remove_stub(const std::string& stub, Backend backend) noexcept {
  find_stub(stub).set_boxed(backend, nullptr, nullptr);
}

CppFunction kernel_of(const PluginDevice& device, TenonKernel kernel, void* data) {
  return CppFunction::from_closure(std::make_shared<PluginKernel>(device, kernel, data), &call_kernel);
}

}  // namespace tenon::plugin
