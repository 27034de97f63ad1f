#include "tenon/iter/device_loop.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tenon/core/stream.h"
#include "tenon/dispatch/host_copies.h"
#include "tenon/expr/program.h"
#include "tenon/iter/device_slots.h"
#include "tenon/iter/fused_kernel.h"
#include "tenon/iter/pointwise_device.h"

namespace tenon {

namespace detail {

/// What devices get of an expression, and where they keep what they make of it. Lives as long as the process,
/// as the interface of plug-ins promises.
struct DeviceExpression {
  explicit DeviceExpression(const expr::Expression& typed) : program(typed) {}
  expr::DeviceProgram program;
  DeviceSlots slots;
};

}  // namespace detail

namespace {

detail::DeviceExpression& device_expression(const expr::Expression& typed) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<expr::Key, std::unique_ptr<detail::DeviceExpression>>;
  const std::lock_guard lock(mutex);
  auto& known = all[typed.key];
  if (!known) known = std::make_unique<detail::DeviceExpression>(typed);
  return *known;
}

}  // namespace

DeviceLoop::DeviceLoop(expr::ExpressionPtr expression, std::string name, Device device,
                       std::span<const FusedOperand> outputs, std::span<const FusedOperand> inputs)
    : expression_(std::move(expression)),
      name_(std::move(name)),
      device_(device),
      made_(device_expression(*expression_)),
      num_outputs_(outputs.size()) {
  const expr::Expression& e = *expression_;
  place(e, outputs, inputs);
  for (const auto& list : {outputs, inputs}) {
    for (const FusedOperand& o : list) operands_.push_back({o.dtype, o.sizes.to_dims(), o.strides.to_dims()});
  }
  if (numel_ == 0) return;
  const size_t ndim = shape_.size();
  slot_strides_.resize(slots_.size() * ndim);
  for (size_t i = 0; i < slots_.size(); ++i) {
    for (size_t d = 0; d < ndim; ++d) slot_strides_[i * ndim + d] = stride(d, i);
    const auto dtype = static_cast<TenonDType>(real_dtype(operands_[slots_[i].operand].dtype));
    slot_operands_.push_back({.address = 0,
                              .strides = slot_strides_.data() + i * ndim,
                              .dtype = dtype,
                              .place = TENON_PLACE_DEVICE,
                              .reserved = {}});
    if (i < e.num_outputs) results_.push_back(dtype);
  }
  launch_ = {.struct_size = sizeof(TenonLaunch),
             .ndim = static_cast<uint32_t>(ndim),
             .name = name_.c_str(),
             .program = &made_.program.get(),
             .stream = {},
             .sizes = shape_.data(),
             .operands = slot_operands_.data(),
             .results = results_.data()};
  expr::set_variant(launch_);
}

bool DeviceLoop::launch(const Address* at, const int64_t* sizes, const uint64_t* numbers) const {
  SmallVector<TenonOperand, 16> operands = slot_operands_;
  for (size_t i = 0; i < operands.size(); ++i) operands[i].address = at[i];
  TenonLaunch launch = launch_;
  launch.sizes = sizes;
  launch.operands = operands.data();
  launch.scalars = numbers;
  return detail::give_launch(launch, device_, made_.slots);
}

bool DeviceLoop::is_taken() const {
  if (!detail::pointwise_serves(nullptr, device_.backend)) return false;
  if (numel_ == 0) return true;
  constexpr size_t kItem = 16;  // of the largest dtype
  const StreamGuard guard({device_, 0});
  const Storage memory = Storage::allocate(kItem * slots_.size(), device_);
  std::vector<Address> at;
  for (size_t i = 0; i < slots_.size(); ++i) at.push_back(memory.address() + i * kItem);
  const std::vector<int64_t> one(shape_.size(), 1);
  const std::vector<uint64_t> numbers(expression_->num_numbers);
  return launch(at.data(), one.data(), numbers.data());
}

bool DeviceLoop::run(char* const* addresses, const uint64_t* numbers) const {
  if (numel_ == 0) return true;
  SmallVector<Address, 16> at(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i)
    at[i] = reinterpret_cast<Address>(addresses[slots_[i].operand]) + static_cast<Address>(slots_[i].offset);
  return launch(at.data(), shape_.data(), numbers);
}

Tensor DeviceLoop::tensor(size_t operand, char* address) const {
  const Operand& o = operands_[operand];
  const Extent reached = extent(o.sizes, o.strides, name_.c_str());
  const auto item = static_cast<int64_t>(item_size(o.dtype));
  const Address first = reinterpret_cast<Address>(address) + static_cast<Address>(reached.low * item);
  Storage storage = Storage::from_foreign(first, static_cast<size_t>((reached.high - reached.low) * item),
                                          device_, nullptr, nullptr);
  return Tensor(TensorImpl::make(std::move(storage), o.dtype, o.sizes, o.strides, -reached.low));
}

void DeviceLoop::run_on_host(char* const* addresses, const uint64_t* numbers) const {
  HostCopies copies(device_, name_);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < operands_.size(); ++i) tensors.push_back(tensor(i, addresses[i]));
  for (size_t i = 0; i < tensors.size(); ++i)
    copies.add(tensors[i], i < num_outputs_ ? Access::Write : Access::Read);
  copies.fetch();
  copies.run([&] {
    const std::span<const Tensor> all(tensors);
    FusedKernel(expr::make_expression(expr::parts_of(*expression_)), name_,
                {.kind = HostProgramOptions::Kind::Interpreter})
        .run(all.first(num_outputs_), all.subspan(num_outputs_), numbers);
  });
  copies.put_back();
  copies.report();
}

}  // namespace tenon
