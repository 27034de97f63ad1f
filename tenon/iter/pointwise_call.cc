#include "tenon/iter/pointwise_call.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/kernel_report.h"
#include "tenon/dispatch/fallback_policy.h"
#include "tenon/dispatch/host_copies.h"
#include "tenon/iter/call_types.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/pointwise_stub.h"

namespace tenon::detail {
namespace {

// "add", or "add_" for the in-place form; only messages need it.
class OpName {
 public:
  OpName(const PointwiseInfo& info, bool in_place) : text_(info.name) {
    if (!in_place) return;
    const size_t n = std::strlen(info.name);
    if (n + 2 > sizeof buffer_) return;
    std::memcpy(buffer_, info.name, n);
    buffer_[n] = '_';
    buffer_[n + 1] = '\0';
    text_ = buffer_;
  }
  OpName(const OpName&) = delete;
  const char* c_str() const noexcept { return text_; }

 private:
  const char* text_;
  char buffer_[64];
};

/// A number that came as a tensor must fit what is computed with, as one that came as a number.
void check_wrapped_numbers(const PointwiseInfo& info, const char* op, const Types& types,
                           std::span<const Tensor* const> tensors) {
  const bool is_unsigned = types.computed == DType::UInt64;
  if (types.type != expr::Type::I32 && !is_unsigned) return;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = *tensors[i];
    if (!t.impl()->is_wrapped_number() || t.dtype() != DType::Int64 || !t.device().is_cpu()) continue;
    const int64_t value = *t.data_ptr<int64_t>();
    TENON_CHECK(is_unsigned ? value >= 0 : value == static_cast<int32_t>(value), Value,
                fmt::format("{}: `{}` is {}, which does not fit {}", op, info.tensor_names[i], value,
                            name(types.computed)));
  }
}

// Whether what an expression asks of dtypes has the answers that its dense kernel assumes: nothing is
// narrower than what is computed with.
bool all_as_computed(const Types& types, std::span<const Tensor* const> tensors) {
  const DType t = dtype(types.type);
  return types.computed == t &&
         std::all_of(tensors.begin(), tensors.end(), [t](const Tensor* x) { return x->dtype() == t; });
}

// Bytes that machine code, which takes some 30 us to make, is worth.
constexpr int64_t kManyBytes = int64_t{1} << 13;

// The kernel that takes the operands as they are stored, where all have one dtype that is narrower than what
// is computed with; null if there is none.
const HostKernel* kernel_as_stored(const PointwiseInfo& info, const Types& types,
                                   std::span<const Tensor* const> tensors, DType result, int64_t numel) {
  const DType stored = types.computed;
  if (stored_index(stored) == kNumStoredDTypes || !info.outputs.empty() || info.mask_tensors != 0)
    return nullptr;
  const bool half = is_floating_point(stored);
  if (half ? result != stored : numel < kManyBytes || item_size(result) != 1) return nullptr;
  const bool alike =
      std::all_of(tensors.begin(), tensors.end(), [stored](const Tensor* t) { return t->dtype() == stored; });
  return alike ? stored_kernel_of(info, types.type, stored, result) : nullptr;
}

// The call's numbers as an instance takes them.
void put_scalars(ScalarBlock& block, const expr::Expression& e, const PointwiseInfo& info, const char* op,
                 const Types& types, std::span<const Scalar* const> scalars) {
  for (size_t k = 0; k < e.num_numbers; ++k)
    put_number(block[k], number_of(info, types, e.numbers()[k]), *scalars[e.numbers()[k].operand], op);
}

/// The call on host copies of its operands, into outputs that the iterator has checked and allocated.
void run_on_host(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                 std::span<const Scalar* const> scalars, const TensorIterator& iter, size_t num_outs,
                 bool in_place) {
  const Device device = iter.device();
  if (!part_falls_back(device.backend, info.name)) refuse_launch(info, device);
  const std::string text = std::string("expression ") + info.name;
  HostCopies copies(device, text);
  Tensor operands[PointwiseInfo::kMaxTensors], results[PointwiseInfo::kMaxOutputs];
  const Tensor *tensors_there[PointwiseInfo::kMaxTensors], *outs_there[PointwiseInfo::kMaxOutputs];
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands[i] = *tensors[i];
    tensors_there[i] = &operands[i];
    copies.add(operands[i], Access::Read);
  }
  for (size_t i = 0; i < num_outs; ++i) {
    results[i] = iter.output(static_cast<int>(i));
    outs_there[i] = &results[i];
    copies.add(results[i], Access::Write);
  }
  copies.fetch();
  copies.run([&] {
    general_pointwise(info, {tensors_there, tensors.size()}, scalars, {outs_there, num_outs},
                      {.in_place = in_place}, {});
  });
  copies.put_back();
  copies.report();
}

/// The call by a function that a library has filled in for the host. False: it has declined.
[[gnu::noinline]] bool run_own(const PointwiseInfo& info, const Types& types, TensorIterator& iter,
                               std::span<const Scalar* const> scalars) {
  iter.promote_to(types.computed);
  return run_pointwise_stub(*info.stub, iter, scalars);
}

/// The call on a device, or on host copies where that does not serve it.
void run_on_device(const PointwiseWork& work, const PointwiseInfo& info, const char* op,
                   std::span<const Tensor* const> tensors, std::span<const Scalar* const> scalars,
                   const TensorIterator& iter, bool in_place) try {
  if (info.stub && run_pointwise_stub(*info.stub, iter, scalars)) return;
  if (!launch_on_device(work, iter)) run_on_host(info, tensors, scalars, iter, work.results.size(), in_place);
} catch (Error& e) {
  e.set_operator(op);  // the device knows of an expression, or of copies
  throw;
}

}  // namespace

void general_pointwise(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars, std::span<const Tensor* const> outs,
                       OutputRules rules, std::span<Tensor> results) {
  const OpName op(info, rules.in_place);
  const HeadersOfTensors headers(tensors);
  check_operands(info, op.c_str(), headers, scalars.size());
  const Types types = decide_types(info, op.c_str(), headers, scalars);
  if (types.common == DType::Bool && info.bool_form) {
    return general_pointwise(*info.bool_form, tensors, scalars, outs, rules, results);
  }
  ScalarBlock block;
  const Instance* instance = nullptr;
  if (types.complex() || types.computed == DType::UInt64 || !info.numbers_as_computed ||
      (info.asks_dtypes && !all_as_computed(types, tensors))) {
    check_in_place(info, op.c_str(), types, rules.in_place);
    instance = &instance_of(info, binding_of(types, headers, scalars));
    put_scalars(block, *instance->expression, info, op.c_str(), types, scalars);
  } else {
    for (size_t i = 0; i < scalars.size(); ++i)
      put_number(block[i], number_of(info, types, i, types.type), *scalars[i], op.c_str());
  }
  if (!types.complex()) check_wrapped_numbers(info, op.c_str(), types, tensors);

  const Tensor undefined;
  TensorIteratorConfig config;
  const char* names[PointwiseInfo::kMaxOutputs] = {rules.in_place ? info.tensor_names[0] : "out"};
  DType dtypes[PointwiseInfo::kMaxOutputs];
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!info.outputs.empty()) names[i] = info.outputs[i].name;
    dtypes[i] = result_dtype(info, i, types.computed);
    if (outs[i]) check_out(info, op.c_str(), types, rules.in_place, dtypes[i], names[i], outs[i]->dtype());
    config.add_borrowed_output(outs[i] ? *outs[i] : undefined);
  }
  config.set_op_name(op.c_str())
      .set_names({names, outs.size()}, info.tensor_names)
      .check_all_same_dtype(false)
      .resize_outputs(rules.resizes)
      .declare_static_dtypes({dtypes, outs.size()});
  for (const Tensor* t : tensors) config.add_borrowed_input(*t);
  TensorIterator iter = config.build();

  const Device device = iter.device();
  if (device.is_cpu()) {
    const bool own = info.stub && info.stub->has_own(kCpuBackend) && run_own(info, types, iter, scalars);
    if (!own) [[likely]] {
      const PointwiseInfo& computed = info_for(info, scalars);
      const HostKernel* stored =
          instance ? nullptr : kernel_as_stored(computed, types, tensors, dtypes[0], iter.numel());
      const HostKernel& kernel = stored     ? *stored
                                 : instance ? instance->host
                                            : kernel_of(computed, types.type);
      if (kernel_reporting()) [[unlikely]]
        report_host_kernel(info.name, kernel);
      const bool whole = stored || (instance && instance->whole);
      run_tiles(iter, kernel, whole ? types.computed : dtype(types.type), {dtypes, outs.size()}, block.data(),
                instance ? instance->of_parts : nullptr);
    }
  } else if (device.is_meta()) {
    if (!instance) check_runs_in(info, types.type);
  } else {
    run_on_device({.info = instance ? info : info_for(info, scalars),
                   .instance = instance,
                   .type = types.type,
                   .results = {dtypes, outs.size()},
                   .scalars = block.data()},
                  info, op.c_str(), tensors, scalars, iter, rules.in_place);
  }
  for (size_t i = 0, next = 0; i < outs.size() && next < results.size(); ++i) {
    if (!info.outputs.empty() && info.outputs[i].operand >= 0) continue;
    results[next++] = iter.output(static_cast<int>(i));
  }
}

}  // namespace tenon::detail
