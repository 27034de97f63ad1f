// How plans run.
#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "tenon/core/error.h"
#include "tenon/graph/plan/instance.h"

namespace tenon::graph {

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
    case DType::UInt16:
      return int64_t{as(uint16_t{})};
    case DType::UInt32:
      return int64_t{as(uint32_t{})};
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

std::unique_ptr<Instance> Plan::take_instance() const {
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
    instance->place(t.storage, reinterpret_cast<char*>(address) - t.offset);
  }
  aliases_.check(graph_, sorted, workspace.first(workspace_size_));
  for (size_t i = 0; i < signature_.values.size(); ++i) {
    const Signature::Value& v = signature_.values[i];
    const Address address = sorted[value_places_[i]];
    TENON_CHECK(address != 0, Value, fmt::format("execute: the address of UID {} is null", v.uid));
    for (const uint32_t number : v.numbers) instance->put_number(number, read_number(address, v.dtype));
  }
  for (StorageId id = 0; id < offsets_.size(); ++id) {
    if (offsets_[id] != kNowhere)
      instance->place(id, reinterpret_cast<char*>(workspace.data()) + offsets_[id]);
  }
  {
    // Most callers have made it current before.
    std::optional<StreamGuard> on_stream;
    if (!device_.is_cpu() && current_stream(Device(device_.backend)) != stream) on_stream.emplace(stream);
    if (const std::exception_ptr error = instance->run()) std::rethrow_exception(error);
  }
  give_back(std::move(instance));
}

}  // namespace tenon::graph
