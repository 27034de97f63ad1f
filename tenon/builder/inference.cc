#include "tenon/builder/inference.h"

#include <fmt/format.h>

#include <cstring>

#include "tenon/builder/inference_impl.h"
#include "tenon/builder/tracer.h"
#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/graph/ir/program.h"
#include "tenon/record/sink_scope.h"

namespace tenon {
namespace {

std::string text_of(const Inference::Port& port) {
  return fmt::format("{} of shape {}", name(port.dtype), to_string(IntArrayRef(port.sizes)));
}

}  // namespace

struct Inference::Builder::Parts {
  explicit Parts(bool exact) : tracer(exact) {}
  builder::Tracer tracer;
  std::vector<Tensor> inputs;
  std::vector<graph::StorageId> storages;  // of inputs, which a tensor leaves that is written
  std::optional<NoGradGuard> no_grad;
  std::optional<record::SinkScope> scope;
};

Inference::Builder::Builder(std::span<const Tensor> example, InferenceOptions options)
    : parts_(std::make_unique<Parts>(options.exact)) {
  for (const Tensor& t : example) {
    TENON_CHECK(t.defined() && t.device().is_cpu() && t.layout() == Layout::Strided, NotImplemented,
                "inference: inputs are strided tensors on the host");
    const Dims sizes = t.sizes().to_dims();
    parts_->inputs.push_back(parts_->tracer.input(t.dtype(), sizes, contiguous_strides(sizes)));
    parts_->storages.push_back(parts_->tracer.storage_of(parts_->inputs.back()));
  }
  parts_->no_grad.emplace();
  parts_->scope.emplace(parts_->tracer);
}
Inference::Builder::~Builder() {
  if (parts_) abandon();
}
void Inference::Builder::abandon() noexcept {
  parts_->scope.reset();
  parts_->no_grad.reset();
}
const std::vector<Tensor>& Inference::Builder::inputs() const noexcept { return parts_->inputs; }

Inference Inference::Builder::finish(std::span<const Tensor> outputs) {
  builder::Tracer& tracer = parts_->tracer;
  auto impl = std::make_shared<Impl>();
  graph::Signature signature;
  for (size_t i = 0; i < parts_->inputs.size(); ++i) {
    const Tensor& input = parts_->inputs[i];
    signature.tensors.push_back({i, parts_->storages[i], 0});
    impl->inputs.push_back({input.dtype(), input.sizes().to_dims()});
  }
  for (Tensor output : outputs) {
    TENON_CHECK(output.defined(), Value, "inference: the function returns a tensor that is undefined");
    impl->kept.push_back(tracer.is_traced(output) ? Tensor() : output.contiguous());
    if (tracer.is_traced(output)) {
      // A block of its own, which no other output and no input shares.
      const bool whole = tracer.is_made(output) && output.is_contiguous() && output.storage_offset() == 0 &&
                         output.nbytes() == output.storage().nbytes() &&
                         !tracer.program.storages[tracer.storage_of(output)].is_output;
      if (!whole) output = clone(output, MemoryFormat::Contiguous);
      tracer.program.storages[tracer.storage_of(output)].is_output = true;
    }
    const uint64_t uid = parts_->inputs.size() + impl->outputs.size();
    if (tracer.is_traced(output)) signature.tensors.push_back({uid, tracer.storage_of(output), 0});
    impl->outputs.push_back({output.dtype(), output.sizes().to_dims()});
  }
  abandon();
  signature.numbers = std::move(tracer.numbers);
  signature.constants = std::move(tracer.constants);
  impl->program = graph::assemble(tracer.program, graph::KeepErrors::No).graph;
  impl->make_plan(std::move(signature));
  return Inference(std::move(impl));
}

Inference::Inference(std::span<const Tensor> example, const Function& f, InferenceOptions options) {
  Builder builder(example, options);
  *this = builder.finish(f(builder.inputs()));
}

const std::vector<Inference::Port>& Inference::inputs() const noexcept { return impl_->inputs; }
const std::vector<Inference::Port>& Inference::outputs() const noexcept { return impl_->outputs; }

const graph::Graph& Inference::graph() const noexcept { return impl_->program; }
const graph::Signature& Inference::signature() const noexcept { return impl_->plan->signature(); }
const Tensor& Inference::constant_output(size_t i) const noexcept { return impl_->kept[i]; }

bool Inference::fits(std::span<const Tensor> given) const noexcept {
  const std::vector<Port>& ports = impl_->inputs;
  if (given.size() != ports.size()) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (!ports[i].takes(given[i])) return false;
  return true;
}

std::vector<Tensor> Inference::operator()(std::span<const Tensor> given) const {
  const Impl& impl = *impl_;
  TENON_CHECK(given.size() == impl.inputs.size(), Value,
              fmt::format("inference: {} inputs, expected {}", given.size(), impl.inputs.size()));
  std::vector<Tensor> inputs, outputs;
  std::vector<Address> from, to;
  for (size_t i = 0; i < given.size(); ++i) {
    const Port& port = impl.inputs[i];
    const Tensor& t = given[i];
    TENON_CHECK(
        port.takes(t), Shape,
        fmt::format("inference: input {} is {}, and the plan was made for {}", i,
                    t.defined() ? text_of({t.dtype(), t.sizes().to_dims()}) : "undefined", text_of(port)));
    inputs.push_back(t.contiguous());
    from.push_back(reinterpret_cast<Address>(inputs.back().data_ptr()));
  }
  for (size_t i = 0; i < impl.outputs.size(); ++i) {
    outputs.push_back(empty(impl.outputs[i].sizes, TensorOptions(impl.outputs[i].dtype)));
    to.push_back(reinterpret_cast<Address>(outputs.back().data_ptr()));
  }
  execute(from, to);
  return outputs;
}

void Inference::execute(std::span<const Address> inputs, std::span<const Address> outputs) const {
  const Impl& impl = *impl_;
  TENON_CHECK(inputs.size() == impl.inputs.size() && outputs.size() == impl.outputs.size(), Value,
              fmt::format("inference: {} inputs and {} outputs, expected {} and {}", inputs.size(),
                          outputs.size(), impl.inputs.size(), impl.outputs.size()));
  std::unique_ptr<Impl::Run> run = impl.take();
  size_t count = 0;
  for (const Address a : inputs) run->addresses[count++] = a;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& constant = impl.kept[i];
    if (!constant.defined())
      run->addresses[count++] = outputs[i];
    else if (constant.numel() > 0)
      std::memcpy(reinterpret_cast<void*>(outputs[i]), constant.data_ptr(), constant.nbytes());
  }
  const NoGradGuard no_grad;
  impl.plan->execute(std::span(run->addresses).first(count),
                     {reinterpret_cast<std::byte*>(run->workspace ? run->workspace->address_now() : 0),
                      impl.plan->workspace_size()});
  impl.give_back(std::move(run));
}

std::string Inference::report() const { return graph::to_string(impl_->plan->report()); }

}  // namespace tenon
