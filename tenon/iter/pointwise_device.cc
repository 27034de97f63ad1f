#include "tenon/iter/pointwise_device.h"

#include <fmt/core.h>

#include <atomic>

#include "tenon/core/error.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/pointwise_state.h"
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
  // A launch has one output.
  if (info && !static_cast<const PointwiseInfo*>(info)->outputs.empty()) return false;
  const Entry* entry = g_entries[backend].load(std::memory_order_acquire);
  return entry && entry->call;
}

bool launch_on_device(const PointwiseInfo& info, const TensorIterator& iter, expr::Type type, DType result,
                      const void* scalars) {
  const Device device = iter.device();
  const Entry* entry = g_entries[device.backend].load(std::memory_order_acquire);
  if (!entry || !entry->call || !info.outputs.empty()) return false;
  check_runs_in(info, type);
  if (iter.numel() == 0) return true;
  PointwiseOperand operands[1 + PointwiseInfo::kMaxTensors];
  Dims strides[1 + PointwiseInfo::kMaxTensors];
  for (int i = 0; i < iter.ntensors(); ++i) {
    strides[i] = iter.strides(i);
    operands[i] = {reinterpret_cast<Address>(iter.data_ptr(i)), strides[i].data(), iter.dtype(i),
                   iter.tensor(i).device().is_cpu()};
  }
  DeviceSlots& places = state_of(info).devices[static_cast<size_t>(compute_index(type))];
  const PointwiseLaunch launch{.name = info.name,
                               .expression = info.text,
                               .tensor_names = info.tensor_names.data(),
                               .scalar_names = info.scalar_names.data(),
                               .num_tensors = static_cast<uint32_t>(info.tensor_names.size()),
                               .num_scalars = static_cast<uint32_t>(info.scalar_names.size()),
                               .mask_tensors = info.mask_tensors,
                               .type = type,
                               .result = result,
                               .stream = current_stream(device),
                               .ndim = static_cast<uint32_t>(iter.ndim()),
                               .sizes = iter.shape().data(),
                               .operands = operands,
                               .scalars = scalars,
                               .made = &places.of(entry)};
  return entry->call(entry->data, launch);
}

void refuse_launch(const PointwiseInfo& info, Device device) {
  const Entry* entry = g_entries[device.backend].load(std::memory_order_acquire);
  TENON_CHECK(
      entry && entry->call, NotImplemented,
      fmt::format("{}: pointwise operators are not implemented for device {}", info.name, to_string(device)));
  TENON_CHECK(info.outputs.empty(), NotImplemented,
              fmt::format("{}: a pointwise launch has one result, and this operator has {}; not implemented "
                          "for device {}",
                          info.name, info.outputs.size(), to_string(device)));
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: device {} declines these dtypes, and may not fall back", info.name,
                          to_string(device)));
}

}  // namespace detail
}  // namespace tenon
