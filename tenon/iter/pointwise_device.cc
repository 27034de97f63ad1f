#include "tenon/iter/pointwise_device.h"

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/pointwise_stub.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon {
namespace {

struct Entry {
  PointwiseDeviceFunction call;  // null once it was taken back
  void* data;
  const Entry* replaced;  // kept for the process: a call may still be reading it
};

constinit std::atomic<const Entry*> g_entries[32] = {};

}  // namespace

void set_pointwise_device(Backend backend, PointwiseDeviceFunction f, void* data) {
  const Entry* replaced = g_entries[backend].load(std::memory_order_acquire);
  g_entries[backend].store(new Entry{f, data, replaced}, std::memory_order_release);
  Dispatcher::singleton().invalidate_tables();
}

namespace detail {

bool pointwise_serves(const void* info, Backend backend) noexcept {
  if (backend == kCpuBackend || backend == kMetaBackend) return true;
  if (info) {
    const StubBase* stub = static_cast<const PointwiseInfo*>(info)->stub;
    if (stub && stub->has_own(backend)) return true;
  }
  const Entry* entry = g_entries[backend].load(std::memory_order_acquire);
  return entry && entry->call;
}

namespace {

// An operand of a launch for each slot: complex operands have two.
constexpr size_t kMaxLaunchOutputs = 2 * PointwiseInfo::kMaxOutputs;
constexpr size_t kMaxLaunchOperands = kMaxLaunchOutputs + 2 * PointwiseInfo::kMaxTensors;

std::vector<std::string_view> views(std::span<const char* const> names) {
  return {names.begin(), names.end()};
}

std::unique_ptr<DevicePointwise> make_program(const PointwiseWork& work, uint32_t complex_results) {
  expr::ExpressionPtr plain;
  if (!work.instance) plain = typed_expression(work.info, work.type);
  const expr::Expression& e = plain ? *plain : *work.instance->expression;
  std::vector<std::string_view> inputs = views(work.info.tensor_names),
                                numbers = views(work.info.scalar_names);
  // Parts of complex operands have no names of their own.
  if (e.num_inputs != inputs.size()) inputs.clear();
  if (e.num_numbers != numbers.size()) numbers.clear();
  return std::unique_ptr<DevicePointwise>(new DevicePointwise{
      work.instance, complex_results, expr::DeviceProgram(e, complex_results, inputs, numbers)});
}

// What devices run for a call, made at the first such call.
DevicePointwise& program_of(const PointwiseWork& work, uint32_t complex_results) {
  auto& list = state_of(work.info).devices[static_cast<size_t>(compute_index(work.type))];
  std::unique_ptr<DevicePointwise> fresh;
  DevicePointwise* first = list.load(std::memory_order_acquire);
  for (DevicePointwise* known = nullptr;;) {
    for (DevicePointwise* p = first; p != known; p = p->next) {
      if (p->instance == work.instance && p->complex_results == complex_results) return *p;
    }
    // If no other thread has added it meanwhile, this one does.
    known = first;
    if (!fresh) fresh = make_program(work, complex_results);
    fresh->next = first;
    if (list.compare_exchange_strong(first, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  }
}

static_assert(sizeof(std::atomic<void*>) == sizeof(void*) && std::atomic<void*>::is_always_lock_free);

}  // namespace

bool launch_on_device(const PointwiseWork& work, const TensorIterator& iter) {
  const Device device = iter.device();
  const Entry* entry = g_entries[device.backend].load(std::memory_order_acquire);
  if (!entry || !entry->call) return false;
  uint32_t complex_results = 0;
  for (int i = 0; i < iter.noutputs(); ++i) {
    const auto result = work.results[static_cast<size_t>(i)];
    if (is_complex(iter.dtype(i)) && !is_complex(result)) complex_results |= 1u << i;
  }
  DevicePointwise& made = program_of(work, complex_results);
  if (iter.numel() == 0) return true;

  const auto ndim = static_cast<size_t>(iter.ndim()), num_tensors = static_cast<size_t>(iter.ntensors());
  SmallVector<int64_t, 32> strides(num_tensors * ndim);
  for (size_t d = 0; d < ndim; ++d) {
    const int64_t* of_all = iter.dim_strides(static_cast<int>(d));
    for (size_t i = 0; i < num_tensors; ++i) strides[i * ndim + d] = of_all[i];
  }
  const expr::Expression& e = made.program.expression();
  TenonOperand operands[kMaxLaunchOperands];
  TenonDType results[kMaxLaunchOutputs];
  size_t count = 0;
  const auto add = [&](const expr::Slot& slot, size_t i) {
    const int tensor = static_cast<int>(i);
    const DType part = real_dtype(iter.dtype(tensor));
    const size_t offset = slot.part == expr::Part::Im ? item_size(part) : 0;
    operands[count++] = {.address = reinterpret_cast<TenonAddress>(iter.data_ptr(tensor)) + offset,
                         .strides = strides.data() + i * ndim,
                         .dtype = static_cast<TenonDType>(part),
                         .place = static_cast<TenonPlace>(
                             iter.tensor(tensor).device().is_cpu() ? TENON_PLACE_HOST : TENON_PLACE_DEVICE),
                         .reserved = {}};
  };
  for (const expr::Slot& slot : e.outputs()) {
    results[count] = static_cast<TenonDType>(real_dtype(work.results[slot.operand]));
    add(slot, slot.operand);
  }
  for (const expr::Slot& slot : e.inputs()) add(slot, static_cast<size_t>(iter.noutputs()) + slot.operand);

  TenonLaunch launch{.struct_size = sizeof(TenonLaunch),
                     .ndim = static_cast<uint32_t>(ndim),
                     .name = work.info.name,
                     .program = &made.program.get(),
                     .stream = {},
                     .sizes = iter.shape().data(),
                     .operands = operands,
                     .results = results,
                     .scalars = work.scalars};
  expr::set_variant(launch);
  return give_launch(launch, device, made.slots);
}

bool give_launch(TenonLaunch& launch, Device device, DeviceSlots& slots) {
  const Entry* entry = g_entries[device.backend].load(std::memory_order_acquire);
  if (!entry || !entry->call) return false;
  // Programs load and store the dtypes that the first devices had; the host serves the wider unsigned
  // integers.
  const uint32_t count = launch.program->num_outputs + launch.program->num_inputs;
  for (uint32_t i = 0; i < count; ++i) {
    if (launch.operands[i].dtype >= TENON_DTYPE_UINT16) return false;
  }
  const Stream stream = current_stream(device);
  launch.stream = {.id = stream.id, .device = {stream.device.backend, stream.device.index}, .reserved = {}};
  launch.slot = reinterpret_cast<void**>(&slots.of(entry));
  return entry->call(entry->data, launch);
}

void StubArg<const TensorIterator&>::push(Stack& s, const TensorIterator& iter) {
  const IntArrayRef sizes = iter.result_shape();
  for (int i = 0; i < iter.ntensors(); ++i) {
    const Tensor& t = iter.tensor(i);
    if (t.sizes() == sizes) {
      s.push(t);
      continue;
    }
    Dims strides(sizes.size());
    const size_t missing = sizes.size() - t.sizes().size();
    for (size_t d = missing; d < sizes.size(); ++d)
      strides[d] = t.sizes()[d - missing] == sizes[d] ? t.strides()[d - missing] : 0;
    s.push(make_view(t, sizes, strides, t.impl()->offset()));
  }
}

void HostArgument<const TensorIterator&>::add(HostCopies& copies, Access) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: device {} has no function for it; call the operator, which also runs by its "
                          "expression",
                          value.op_name(), to_string(copies.device())));
}

void PointwiseStubListing::list(StubBase& stub, const PointwiseInfo& info) noexcept {
  if (!stub.list()) return;
  stub.otherwise_serves_ = [](Backend b) { return b != kMetaBackend && pointwise_serves(nullptr, b); };
  stub.of_host_ = &info;
  stub.host_changed_ = [](const StubBase& changed, const void* of_host) {
    const auto& op = *static_cast<const PointwiseInfo*>(of_host);
    op.direct.store(op.may_be_direct() && !changed.has_own(kCpuBackend), std::memory_order_relaxed);
  };
  stub.host_changed_(stub, &info);
}

namespace {

template <size_t... I>
void call_function(AnyFunction f, const TensorIterator& iter, const Scalar* const* scalars,
                   std::index_sequence<I...>) {
  const auto scalar = [&]<size_t i>() -> const Scalar& { return *scalars[i]; };
  reinterpret_cast<void (*)(const TensorIterator&, decltype(scalar.template operator()<I>())...)>(f)(
      iter, scalar.template operator()<I>()...);
}

}  // namespace

bool run_pointwise_stub(const StubBase& stub, const TensorIterator& iter,
                        std::span<const Scalar* const> scalars) {
  const Device device = iter.device();
  if (!stub.has_own(device.backend)) return false;
  // A number of the host's with the device's tensors is for expressions.
  for (int i = 0; i < iter.ntensors(); ++i) {
    if (iter.tensor(i).device() != device) return false;
  }
  if (iter.numel() == 0) return true;
  if (const AnyFunction f = stub.own(device.backend)) {
    using Call = void (*)(AnyFunction, const TensorIterator&, const Scalar* const*);
    static constexpr auto kCalls = []<size_t... N>(std::index_sequence<N...>) {
      return std::array<Call, sizeof...(N)>{
          +[](AnyFunction g, const TensorIterator& over, const Scalar* const* numbers) {
            call_function(g, over, numbers, std::make_index_sequence<N>());
          }...};
    }
    (std::make_index_sequence<PointwiseInfo::kMaxScalars + 1>());
    kCalls[scalars.size()](f, iter, scalars.data());
    return true;
  }
  Stack stack;
  StubArg<const TensorIterator&>::push(stack, iter);
  for (const Scalar* s : scalars) stack.push(*s);
  return stub.call_boxed(device, stack, 0);
}

void refuse_launch(const PointwiseInfo& info, Device device) {
  const Entry* entry = g_entries[device.backend].load(std::memory_order_acquire);
  TENON_CHECK(
      entry && entry->call, NotImplemented,
      fmt::format("{}: pointwise operators are not implemented for device {}", info.name, to_string(device)));
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: device {} declines these dtypes, and may not fall back", info.name,
                          to_string(device)));
}

}  // namespace detail
}  // namespace tenon
