#include "tenon/plugin/call.h"
#include "tenon/dispatch/builtin.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/same_device.h"
#include "tenon/dispatch/stub.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tenon/plugin/operands.h"

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

/// The results of a call until they are on the stack, and one cell more, which the call must leave alone.
struct Results {
  explicit Results(size_t n) : cells(n + 1), tags(n + 1, CellTag::None) {}
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

/// Throws where a call that was declined would come to the same kernel again.
void check_can_fall_back(const OperatorHandle& op, DispatchKeySet keys, const PluginDevice& device) {
  TENON_CHECK(
      keys.backend() == device.backend(), NotImplemented,
      fmt::format("{}: the kernel of device {} has declined a call of key {}, and nobody is left to run it",
                  op.full_name(), device.device_name(), to_string(keys)));
}

[[noreturn]] void throw_wrong_result(const OperatorHandle& op, const PluginDevice& device,
                                     const std::string& what) {
  throw_error(ErrorKind::Device, fmt::format("{}: the kernel of device {} returned {}", op.full_name(),
                                             device.device_name(), what));
}

/// The tensors of a cell: one, those of a list, or none.
std::span<const Tensor> tensors_in(const Cell& cell, CellTag tag) {
  if (tag == CellTag::Tensor) return {reinterpret_cast<const Tensor*>(&cell), 1};
  if (tag != CellTag::TensorList) return {};
  const auto& list = **reinterpret_cast<CellList<Tensor>* const*>(&cell);
  return {list.data(), list.size()};
}
/// "result 0", or "result 0[2]" for a tensor of a list.
std::string name_of_result(size_t i, CellTag tag, size_t at) {
  return tag == CellTag::TensorList ? fmt::format("result {}[{}]", i, at) : fmt::format("result {}", i);
}

/// Throws if a result that the schema calls a new tensor is an argument, or a view of one: a write to it
/// would write the argument, and nothing would know.
void check_fresh(const OperatorHandle& op, const PluginDevice& device, const Tensor& result, size_t i,
                 CellTag tag, size_t at, Stack& stack, size_t first) {
  if (!result.defined()) return;
  for (size_t a = 0; a < op.schema().arguments.size(); ++a) {
    for (const Tensor& argument : tensors_in(stack.cells()[first + a], stack.tag(first + a))) {
      if (!argument.defined()) continue;
      const bool same = result.is_same(argument);
      if (!same && (result.storage() != argument.storage() || result.storage().nbytes() == 0)) continue;
      throw_wrong_result(op, device,
                         fmt::format("{} `{}` as {}, where its schema says a new tensor",
                                     same ? "its argument" : "a view of", op.schema().arguments[a].name,
                                     name_of_result(i, tag, at)));
    }
  }
}

/// Where new tensors of a call for `where` are to be: on which device of the backend, if that can be said. Of
/// an argument that names the backend alone, of an operator that moves tensors, and of others' operators it
/// cannot.
Device device_of_results(const OperatorHandle& op, Stack& stack, size_t first, Device where) {
  const Device any(where.backend);
  if (op.schema().ns != detail::kBuiltinNamespace || op.entry().crosses_devices) return any;
  for (size_t a = 0; a < op.schema().arguments.size(); ++a) {
    if (stack.tag(first + a) != CellTag::Device) continue;
    const Device named = stack.at<Device>(first + a);
    return named.backend == where.backend ? named : any;
  }
  return where;
}

/// Throws unless there are as many results as the schema promises, and of its types; those of a call on the
/// device are on it, new ones where the call is, and what was written is what was passed.
void check_results(const OperatorHandle& op, const Results& results, DispatchKeySet keys, Stack& stack,
                   size_t first, const PluginDevice& device, Device where) {
  const schema::FunctionSchema& schema = op.schema();
  const size_t count = schema.returns.size();
  if (results.tags[count] != CellTag::None)
    throw_wrong_result(op, device, fmt::format("more than the {} results of its schema", count));
  for (size_t i = 0; i < count; ++i) {
    const schema::Return& promised = schema.returns[i];
    const CellTag wanted = cell_tag_of(promised.type);
    if (results.tags[i] != wanted)
      throw_wrong_result(
          op, device,
          fmt::format("{} as result {}, where its schema says {}", name(results.tags[i]), i, name(wanted)));
    const std::span<const Tensor> tensors = tensors_in(results.cells[i], wanted);
    if (promised.is_write() && wanted == CellTag::Tensor) {
      for (size_t a = 0; a < schema.arguments.size(); ++a) {
        if (schema.arguments[a].alias != promised.alias || stack.tag(first + a) != CellTag::Tensor) continue;
        if (!tensors[0].is_same(stack.at<Tensor>(first + a)))
          throw_wrong_result(
              op, device,
              fmt::format("another tensor than `{}`, which it was to write", schema.arguments[a].name));
      }
    }
    for (size_t at = 0; at < tensors.size() && !promised.alias; ++at)
      check_fresh(op, device, tensors[at], i, wanted, at, stack, first);
    if (keys.backend() != device.backend()) continue;
    const Device there = promised.alias ? Device(where.backend) : device_of_results(op, stack, first, where);
    for (size_t at = 0; at < tensors.size(); ++at) {
      if (!tensors[at].defined()) continue;
      const Device found = tensors[at].device();
      if (found.backend != there.backend || (there.index >= 0 && found.index != there.index))
        throw_wrong_result(op, device,
                           fmt::format("a tensor on {} as {}, expected one on {}", to_string(found),
                                       name_of_result(i, wanted, at), to_string(there)));
    }
  }
}

/// What an operator's meta kernel makes of a call's arguments; nothing where it has none, or cannot say.
class MetaResults {
 public:
  MetaResults(const OperatorHandle& op, Stack& arguments, size_t first) {
    constexpr DispatchKeySet kKeys(Functionality::Dense, kMetaBackend);
    const schema::FunctionSchema& schema = op.schema();
    const auto makes_tensors = [](const schema::Return& r) {
      const CellTag tag = cell_tag_of(r.type);
      return (tag == CellTag::Tensor || tag == CellTag::TensorList) && !r.alias;
    };
    if (!std::all_of(schema.returns.begin(), schema.returns.end(), makes_tensors) || schema.returns.empty())
      return;
    const OperatorTable* column = &detail::column_of(op.entry(), kKeys);
    if (column == &detail::kNoTable) column = &detail::compute_column(op.entry(), kKeys);
    if (!column->lookup(kKeys).valid()) return;
    for (size_t i = 0; i < schema.arguments.size(); ++i) add(arguments, first + i);
    try {
      op.redispatch_boxed(kKeys, made_);
    } catch (const std::exception&) {
      made_.clear();  // what it refuses is for the kernel to refuse
    }
  }
  bool known() const noexcept { return !made_.empty(); }
  /// The tensors of result `i`, where they are known.
  std::span<const Tensor> get(size_t i) { return tensors_in(made_.cells()[i], made_.tag(i)); }

 private:
  static Tensor on_meta(const Tensor& t) {
    if (!t.defined()) return t;
    Tensor made = make_empty(t.sizes(), t.dtype(), kMeta);
    made.impl()->set_wrapped_number(t.impl()->is_wrapped_number());
    return made;
  }
  void add(Stack& arguments, size_t i) {
    made_.push_cell_copy(arguments.cells()[i], arguments.tag(i));
    const size_t last = made_.size() - 1;
    if (made_.tag(last) == CellTag::Tensor) {
      Tensor& t = made_.at<Tensor>(last);
      t = on_meta(t);
    } else if (made_.tag(last) == CellTag::TensorList) {
      for (Tensor& t : made_.at<std::vector<Tensor>>(last)) t = on_meta(t);
    } else if (made_.tag(last) == CellTag::Device) {
      made_.at<Device>(last) = kMeta;
    }
  }
  Stack made_;
};

/// Throws unless new results have the sizes and dtypes that the operator's meta kernel gives them.
void check_shapes(const OperatorHandle& op, const Results& results, Stack& stack, size_t first,
                  const PluginDevice& device) {
  MetaResults expected(op, stack, first);
  if (!expected.known()) return;
  const auto text = [](const Tensor& t) {
    return t.defined() ? fmt::format("{} {}", tenon::name(t.dtype()), to_string(t.sizes()))
                       : std::string("an undefined tensor");
  };
  for (size_t i = 0; i < op.schema().returns.size(); ++i) {
    const CellTag tag = results.tags[i];
    const std::span<const Tensor> made = tensors_in(results.cells[i], tag), wanted = expected.get(i);
    if (made.size() != wanted.size())
      throw_wrong_result(op, device,
                         fmt::format("{} tensors as result {}, expected {}", made.size(), i, wanted.size()));
    for (size_t at = 0; at < made.size(); ++at) {
      const Tensor &tensor = made[at], &right = wanted[at];
      if (!tensor.defined() && !right.defined()) continue;
      if (!tensor.defined() || !right.defined() || tensor.dtype() != right.dtype() ||
          tensor.sizes() != right.sizes())
        throw_wrong_result(
            op, device,
            fmt::format("{} as {}, expected {}", text(tensor), name_of_result(i, tag, at), text(right)));
    }
  }
}

/// Runs a call that the kernel declined on host copies. Where the host has no kernel either, the error says
/// what was declined.
void run_declined(const OperatorHandle& op, DispatchKeySet keys, Stack& stack, size_t first,
                  const PluginDevice& device) {
  check_can_fall_back(op, keys, device);
  std::vector<std::string_view> dtypes;
  each_tensor(op.schema(), stack, first, [&](const Tensor& t, const schema::Argument&, int64_t) {
    if (t.defined() && std::ranges::find(dtypes, tenon::name(t.dtype())) == dtypes.end())
      dtypes.push_back(tenon::name(t.dtype()));
  });
  try {
    cpu_fallback(op, keys, stack);
  } catch (const Error& e) {
    constexpr DispatchKey kCpu(Functionality::Dense, kCpuBackend);
    if (e.kind() != ErrorKind::NotImplemented || Dispatcher::singleton().has_kernel_for_key(op, kCpu)) throw;
    throw_error(
        ErrorKind::NotImplemented,
        fmt::format("{}: the kernel of device {} has declined a call with tensors of {}, and there is no "
                    "kernel for cpu, where it would run instead",
                    op.full_name(), device.device_name(), fmt::join(dtypes, ", ")));
  }
}

/// The values on the stack from `first` on as a plug-in sees them.
TenonCall abi_call(Stack& stack, size_t first, Results& results, Stream stream) {
  TenonCall call{};
  call.struct_size = sizeof call;
  call.num_args = static_cast<uint32_t>(stack.size() - first);
  call.num_results = static_cast<uint32_t>(results.cells.size() - 1);
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
  const PluginDevice& device = closure.device;
  const bool on_device = keys.backend() == device.backend();
  const Device where = device_of_call(schema, stack, first, device.backend());
  std::optional<Stack> moved;
  if (on_device) moved = checked_operands(op, stack, first, where);
  Results results(schema.returns.size());
  TenonStatus* status = nullptr;
  {
    const CallScope scope(where);
    TenonCall call = moved ? abi_call(*moved, 0, results, current_stream(where))
                           : abi_call(stack, first, results, current_stream(where));
    call.op = reinterpret_cast<const TenonOperator*>(&op.entry());
    call.keys = keys.bits();
    status = device.status_of([&] { return op.full_name(); }, closure.kernel, closure.data,
                              static_cast<const TenonCall*>(&call));
  }
  if (status == TENON_DECLINED) return run_declined(op, keys, stack, first, device);
  if (status)
    raise(status, fmt::format("{}: device {}:{}", op.full_name(), device.device_name(), where.index));
  check_results(op, results, keys, stack, first, device, where);
  if (on_device) check_shapes(op, results, stack, first, device);
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
  const CallScope scope(stream.device);
  const TenonCall call = abi_call(stack, 0, results, stream);
  TenonStatus* const status = stub.device.status_of(std::string_view(stub.name), stub.kernel, stub.data,
                                                    static_cast<const TenonCall*>(&call));
  if (status == TENON_DECLINED) return false;
  if (status) raise(status, stub.device.text_of(stub.name, call.stream.device.index));
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

CellTag cell_tag_of(const schema::Type& type) {
  return detail::visit_base<CellTag>(type.base, [&]<schema::BaseType base>() {
    using Row = detail::ValueType<base>;
    return type.list ? Row::list_tag : Row::tag;
  });
}

void set_stub(const std::string& stub, const std::string& signature, const PluginDevice& device,
              TenonKernel kernel, void* data) {
  StubBase& found = find_stub(stub);
  const std::string own = found.signature();
  TENON_CHECK(!own.empty(), Type, fmt::format("register_stub: the stub '{}' takes C++ functions only", stub));
  TENON_CHECK(
      found.accepts(signature), Type,
      fmt::format("register_stub: the stub '{}' has the signature `{}`, and device {} gives a function "
                  "of signature `{}`",
                  stub, own, device.device_name(), signature));
  found.set_boxed(device.backend(), &call_stub,
                  new PluginStub{fmt::format("stub {}", stub), device, kernel, data});
}

void remove_stub(const std::string& stub, Backend backend) noexcept {
  find_stub(stub).set_boxed(backend, nullptr, nullptr);
}

CppFunction kernel_of(const PluginDevice& device, TenonKernel kernel, void* data) {
  return CppFunction::from_closure(std::make_shared<PluginKernel>(device, kernel, data), &call_kernel);
}

}  // namespace tenon::plugin
