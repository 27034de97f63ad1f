#include "kernels.h"

#include <algorithm>

#include "source.h"
#include "tenon/abi/address.h"
#include "tenon/abi/plugin.h"

namespace opencl {
namespace {

namespace abi = tenon::abi;

std::string name_of(const std::array<uint64_t, 2>& variant) {
  std::string name = "tenon_";
  for (const uint64_t half : variant) {
    for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[half >> shift & 15u];
  }
  return name;
}

}  // namespace

Kernels::Kernels(cl_context context, const std::vector<DeviceInfo>& devices, const std::vector<Queue>& queues,
                 const Abilities& abilities)
    : context_(context),
      devices_(devices),
      queues_(queues),
      arithmetic_{abilities.f64, abilities.division},
      parameters_(devices[0].parameters) {
  for (const DeviceInfo& d : devices) parameters_ = std::min(parameters_, d.parameters);
}

bool Kernels::runs(const TenonLaunch& launch) const {
  const uint32_t num_words = abi::count_kernel_words(launch),
                 num_operands = launch.program->num_outputs + launch.program->num_inputs;
  return abi::prints(launch, arithmetic_) && num_words <= kMaxWords && num_operands <= kMaxOperands &&
         num_words * sizeof(uint64_t) + num_operands * sizeof(cl_mem) <= parameters_;
}

Kernels::Compiled* Kernels::add(const TenonLaunch& launch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* variants = static_cast<Variants*>(__atomic_load_n(launch.slot, __ATOMIC_ACQUIRE));
  if (!variants) {
    variants = &variants_.emplace_front();
    __atomic_store_n(launch.slot, static_cast<void*>(variants), __ATOMIC_RELEASE);
  }
  // Another thread may have been first.
  if (const Link* link = find_in(*variants, launch)) return link->kernel;
  const Variant variant{launch.variant[0], launch.variant[1]};
  Compiled* kernel = nullptr;
  if (runs(launch)) {
    auto known = compiled_.find(variant);
    if (known == compiled_.end()) {
      const bool f64 = !abi::prints(launch, {false, arithmetic_.f32_division});
      if (collecting_.load(std::memory_order_relaxed)) {
        noted_.try_emplace({f64, variant}, print(launch));
        return nullptr;
      }
      const NotedKernels alone{{{f64, variant}, print(launch)}};
      compile(alone.begin(), alone.end());
      known = compiled_.find(variant);
    }
    kernel = known->second.get();
  }
  const Link& link =
      links_.emplace_front(Link{variant, kernel, variants->first.load(std::memory_order_relaxed)});
  variants->first.store(&link, std::memory_order_release);
  return kernel;
}

Kernels::Noted Kernels::print(const TenonLaunch& launch) const {
  const uint32_t num_operands = launch.program->num_outputs + launch.program->num_inputs;
  uint32_t on_device = 0;
  for (uint32_t k = 0; k < num_operands; ++k) on_device += launch.operands[k].place == TENON_PLACE_DEVICE;
  return {kernel_source(name_of({launch.variant[0], launch.variant[1]}), launch),
          abi::count_kernel_words(launch), on_device};
}

void Kernels::compile(NotedKernels::const_iterator first, NotedKernels::const_iterator last) {
  bool f64 = false;
  for (auto k = first; k != last; ++k) f64 = f64 || k->first.first;
  std::string source = prelude({f64, arithmetic_.f32_division});
  for (auto k = first; k != last; ++k) source += k->second.source;

  const std::lock_guard<std::mutex> alone(compiling());
  const Program program = build(context_, devices_, source, options(arithmetic_));
  programs_.fetch_add(1, std::memory_order_relaxed);
  for (auto k = first; k != last; ++k) {
    const Variant& variant = k->first.second;
    cl_int code = CL_SUCCESS;
    auto compiled = std::make_unique<Compiled>();
    compiled->kernel.reset(
        clCreateKernel(program.get(), name_of(variant).c_str(), &code));  // keeps the program
    check(code, "clCreateKernel");
    compiled->num_words = k->second.num_words;
    compiled->num_buffers = k->second.num_buffers;
    run_over_nothing(*compiled, kLocalSize);
    compiled_[variant] = std::move(compiled);
  }
}

void Kernels::run_over_nothing(Compiled& compiled, size_t work_items) const {
  const cl_kernel kernel = compiled.kernel.get();
  const uint64_t words[kMaxWords] = {};
  check(clSetKernelArg(kernel, 0, compiled.num_words * sizeof(uint64_t), words), "clSetKernelArg");
  for (uint32_t k = 0; k < compiled.num_buffers; ++k)
    check(clSetKernelArg(kernel, k + 1, sizeof(cl_mem), nullptr), "clSetKernelArg");
  const size_t size = kLocalSize;
  for (const Queue& queue : queues_) {
    check(clEnqueueNDRangeKernel(queue.get(), kernel, 1, nullptr, &work_items, &size, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    check(clFinish(queue.get()), "clFinish");
  }
}

size_t Kernels::compile_collected() {
  const std::lock_guard<std::mutex> lock(mutex_);
  collecting_.store(false, std::memory_order_relaxed);
  const size_t count = noted_.size();
  while (!noted_.empty()) {
    auto last = noted_.cbegin();
    for (size_t i = 0; i < kKernelsOfAProgram && last != noted_.cend(); ++i) ++last;
    compile(noted_.cbegin(), last);
    noted_.erase(noted_.cbegin(), last);
  }
  return count;
}

uint32_t Kernels::words_of(const TenonLaunch& launch, uint64_t* words) {
  return abi::kernel_words(
      launch, [](const TenonOperand& o) { return abi::offset_of(o.address); }, words);
}

std::function<void(cl_command_queue)> Kernels::recorded(Compiled& kernel, const uint64_t* words,
                                                        uint32_t num_words, const cl_mem* buffers,
                                                        uint32_t num_buffers) {
  std::vector<std::shared_ptr<std::remove_pointer_t<cl_mem>>> kept;
  for (uint32_t k = 0; k < num_buffers; ++k) kept.push_back(shared(buffers[k]));
  return [this, &kernel, own = std::vector<uint64_t>(words, words + num_words),
          handles = std::vector<cl_mem>(buffers, buffers + num_buffers),
          kept = std::move(kept)](cl_command_queue queue) {
    enqueue(kernel, own.data(), static_cast<uint32_t>(own.size()), queue, handles.data(),
            static_cast<uint32_t>(handles.size()));
  };
}

void Kernels::enqueue(Compiled& kernel, const uint64_t* words, uint32_t num_words, cl_command_queue queue,
                      const cl_mem* buffers, uint32_t num_buffers) {
  const size_t local = kLocalSize, global = (words[0] + local - 1) / local * local;

  const std::lock_guard<std::mutex> lock(kernel.mutex);
  if (global >= kLargeGrid && !kernel.ran_large) {
    const std::lock_guard<std::mutex> alone(compiling());
    kernel.epoch = kNoEpoch;
    run_over_nothing(kernel, kLargeGrid);
    kernel.ran_large = true;
  }
  check(clSetKernelArg(kernel.kernel.get(), 0, num_words * sizeof(uint64_t), words), "clSetKernelArg");
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  for (uint32_t k = 0; k < num_buffers; ++k) {
    if (kernel.epoch == epoch && kernel.buffers[k] == buffers[k]) continue;
    kernel.buffers[k] = nullptr;
    check(clSetKernelArg(kernel.kernel.get(), k + 1, sizeof(cl_mem), &buffers[k]), "clSetKernelArg");
    kernel.buffers[k] = buffers[k];
  }
  kernel.epoch = epoch;
  check(clEnqueueNDRangeKernel(queue, kernel.kernel.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
  launches_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace opencl
