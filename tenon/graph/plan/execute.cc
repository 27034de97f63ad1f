// How plans run.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "tenon/core/error.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/thread_state.h"
#include "tenon/graph/plan/plan.h"

namespace tenon::graph {

/// What one run at a time needs: addresses, numbers, and tensors over memory that is elsewhere each time.
struct Plan::Instance {
  std::vector<char*> addresses;  // of storages
  std::vector<Scalar> numbers;
  std::vector<tenon::Storage> storages;  // null where no step sees them as tensors
  std::vector<tenon::Tensor> shells;
  std::vector<char*> operands;  // of a loop
  std::vector<uint64_t> slots;

  explicit Instance(const Plan& plan)
      : addresses(plan.graph_.storages.size()),
        numbers(plan.signature_.numbers),
        storages(plan.graph_.storages.size()) {
    size_t operands_max = 0, slots_max = 0;
    for (const Step& step : plan.steps_) {
      if (!step.loop) continue;
      operands_max = std::max(operands_max, step.loop->places().size());
      slots_max = std::max(slots_max, step.loop->num_numbers());
    }
    operands.resize(operands_max);
    slots.resize(slots_max);
    for (const Shell& shell : plan.shells_) {
      if (shell.storage == kNone) {
        shells.emplace_back();
        continue;
      }
      tenon::Storage& storage = storages[shell.storage];
      if (!storage)
        storage = tenon::Storage::from_foreign(kAlignment, plan.graph_.storages[shell.storage].nbytes,
                                               plan.device_, nullptr, nullptr);
      const Geometry& g = plan.graph_.geometry(shell.geometry);
      auto impl = TensorImpl::make(storage, g.dtype, g.sizes, g.strides, g.offset);
      impl->set_wrapped_number(g.wrapped_number);
      shells.push_back(tenon::Tensor(std::move(impl)));
    }
  }
};

namespace {

Scalar read_number(Address address, DType dtype) {
  const auto* const p = reinterpret_cast<const std::byte*>(address);
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, p, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::Bool:
      return as(uint8_t{}) != 0;
    case DType::UInt8:
      return int64_t{as(uint8_t{})};
    case DType::Int8:
      return int64_t{as(int8_t{})};
    case DType::Int16:
      return int64_t{as(int16_t{})};
    case DType::Int32:
      return int64_t{as(int32_t{})};
    case DType::Int64:
      return as(int64_t{});
    case DType::Float32:
      return double{as(float{})};
    case DType::Float64:
      return as(double{});
    case DType::Float16:
      return static_cast<double>(static_cast<float>(as(Half{})));
    case DType::BFloat16:
      return static_cast<double>(static_cast<float>(as(BFloat16{})));
    default:
      throw_error(ErrorKind::Type, fmt::format("execute: a number of dtype {} passed by value", name(dtype)));
  }
}

#ifndef NDEBUG
/// Notices a workspace that two runs use at once.
class WorkspaceWatch {
 public:
  explicit WorkspaceWatch(const std::byte* workspace) : workspace_(workspace) {
    if (!workspace_) return;
    const std::lock_guard lock(mutex());
    TENON_CHECK(busy().insert(workspace_).second, Runtime,
                "execute: the workspace is in use by another thread; each call at a time needs its own");
  }
  ~WorkspaceWatch() {
    if (!workspace_) return;
    const std::lock_guard lock(mutex());
    busy().erase(workspace_);
  }
  WorkspaceWatch(const WorkspaceWatch&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex& m = *new std::mutex;
    return m;
  }
  static std::unordered_set<const std::byte*>& busy() {
    static auto& all = *new std::unordered_set<const std::byte*>;
    return all;
  }
  const std::byte* workspace_;
};
#endif

}  // namespace

Plan::~Plan() {
  for (auto& spare : spares_) delete spare.load(std::memory_order_acquire);
}

std::unique_ptr<Plan::Instance> Plan::take_instance() const {
  for (auto& spare : spares_) {
    if (spare.load(std::memory_order_relaxed) == nullptr) continue;
    if (Instance* const taken = spare.exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<Instance>(taken);
  }
  return std::make_unique<Instance>(*this);
}

void Plan::give_back(std::unique_ptr<Instance> instance) const noexcept {
  for (auto& spare : spares_) {
    Instance* none = nullptr;
    if (spare.compare_exchange_strong(none, instance.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
      (void)instance.release();
      return;
    }
  }
}

void Plan::check_call(std::span<const Address> sorted, std::span<std::byte> workspace, Stream stream) const {
  TENON_CHECK(sorted.size() == uids_.size(), Value,
              fmt::format("execute: {} addresses, expected {}, one for each UID of [{}]", sorted.size(),
                          uids_.size(), fmt::join(uids_, ", ")));
  TENON_CHECK(stream.device == device_, Device,
              fmt::format("execute: the plan runs on {}, the stream is one of {}",
                          device_.is_cpu() ? "the host" : to_string(device_), to_string(stream.device)));
  if (workspace_size_ == 0) return;
  TENON_CHECK(workspace.size() >= workspace_size_, Value,
              fmt::format("execute: the workspace has {} bytes, the plan needs {} (get_workspace_size)",
                          workspace.size(), workspace_size_));
  TENON_CHECK(workspace.data(), Value,
              fmt::format("execute: the address of the workspace is null, and the plan needs {} bytes",
                          workspace_size_));
  TENON_CHECK(reinterpret_cast<uintptr_t>(workspace.data()) % kAlignment == 0, Value,
              fmt::format("execute: the workspace is not aligned to {} bytes", kAlignment));
}

void Plan::execute(std::span<const Address> sorted, std::span<std::byte> workspace, Stream stream) const {
  check_call(sorted, workspace, stream);
#ifndef NDEBUG
  const WorkspaceWatch watch(workspace_size_ > 0 ? workspace.data() : nullptr);
#endif
  std::unique_ptr<Instance> instance = take_instance();
  for (size_t i = 0; i < signature_.tensors.size(); ++i) {
    const Signature::Tensor& t = signature_.tensors[i];
    const Address address = sorted[tensor_places_[i]];
    TENON_CHECK(address != 0 || graph_.storages[t.storage].nbytes == 0, Value,
                fmt::format("execute: the address of UID {} is null", t.uid));
    const size_t alignment = alignments_[t.storage];
    TENON_CHECK((address & (alignment - 1)) == 0, Value,
                fmt::format("execute: the address of UID {} is {:#x}, which is no multiple of the {} bytes "
                            "of one element; copy the tensor to memory that is aligned",
                            t.uid, address, alignment));
    instance->addresses[t.storage] = reinterpret_cast<char*>(address) - t.offset;
  }
  aliases_.check(graph_, sorted, workspace.first(workspace_size_));
  for (size_t i = 0; i < signature_.values.size(); ++i) {
    const Signature::Value& v = signature_.values[i];
    const Address address = sorted[value_places_[i]];
    TENON_CHECK(address != 0, Value, fmt::format("execute: the address of UID {} is null", v.uid));
    for (const uint32_t number : v.numbers) instance->numbers[number] = read_number(address, v.dtype);
  }
  for (size_t i = 0; i < offsets_.size(); ++i) {
    if (offsets_[i] != kNowhere)
      instance->addresses[i] = reinterpret_cast<char*>(workspace.data()) + offsets_[i];
  }
  for (size_t i = 0; i < instance->storages.size(); ++i) {
    if (instance->storages[i])
      instance->storages[i]->rebind(reinterpret_cast<Address>(instance->addresses[i]));
  }
  {
    // Most callers have made it current before.
    std::optional<StreamGuard> on_stream;
    if (!device_.is_cpu() && current_stream(Device(device_.backend)) != stream) on_stream.emplace(stream);
    const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
    const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) |
                                                         kAutogradKeys};
    const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
    for (const Step& step : steps_) run(step, *instance);
  }
  give_back(std::move(instance));
}

void Plan::run(const Step& step, Instance& instance) const {
  if (step.loop) {
    const LoopStep& loop = *step.loop;
    for (size_t i = 0; i < loop.places().size(); ++i) {
      const LoopStep::Place& place = loop.places()[i];
      instance.operands[i] = instance.addresses[place.storage] + place.offset;
    }
    loop.put_numbers(instance.numbers, instance.slots.data());
    loop.run(instance.operands.data(), instance.slots.data());
    return;
  }
  const std::span<const tenon::Tensor> shells(instance.shells);
  const auto uses = shells.subspan(step.uses.first, step.uses.count);
  const auto defs = shells.subspan(step.defs.first, step.defs.count);
  if (step.call) return step.call->run(uses, defs, instance.numbers);
  bool clobbered_inputs = false;
  step.region->run({uses, defs, instance.numbers}, clobbered_inputs);
}

}  // namespace tenon::graph
