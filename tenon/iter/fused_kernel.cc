#include "tenon/iter/fused_kernel.h"

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"

namespace tenon {

namespace {

size_t num_operands(std::span<const expr::Slot> slots) {
  size_t count = 0;
  for (const expr::Slot& s : slots) count = std::max<size_t>(count, s.operand + 1u);
  return count;
}

HostKernel kernel_for(const expr::Expression& e, const HostProgramOptions& options) {
  const auto is_part = [](const expr::Slot& s) { return s.part != expr::Part::Whole; };
  const bool parts = std::any_of(e.inputs().begin(), e.inputs().end(), is_part) ||
                     std::any_of(e.outputs().begin(), e.outputs().end(), is_part);
  // Kernels that were printed for complex operands take whole elements.
  if (!parts && options.kind == HostProgramOptions::Kind::Any) {
    if (const HostKernel::Function printed = kHost.find(e.key)) return {printed, nullptr};
  }
  return {nullptr, kHost.compile(e, options)};
}

bool has_rows(const expr::Expression& e) {
  return std::any_of(e.nodes().begin(), e.nodes().end(),
                     [](const expr::Node& n) { return expr::info(n.op).rule == expr::TypeRule::Row; });
}

}  // namespace

FusedKernel::FusedKernel(expr::ExpressionPtr expression, std::string name, const HostProgramOptions& options)
    : expression_(std::move(expression)),
      name_(lasting_text(std::move(name))),
      num_outputs_(num_operands(expression_->outputs())),
      num_inputs_(num_operands(expression_->inputs())) {
  TENON_CHECK(!has_rows(*expression_), Internal, "region: an expression over rows without their dimensions");
  kernel_ = kernel_for(*expression_, options);
}

FusedKernel::FusedKernel(expr::ExpressionPtr expression, const Dims& over, std::string name)
    : expression_(std::move(expression)),
      name_(lasting_text(std::move(name))),
      num_outputs_(num_operands(expression_->outputs())),
      num_inputs_(num_operands(expression_->inputs())),
      over_rows_(true),
      over_(over) {}

FusedKernel::~FusedKernel() {
  if (void* made = made_.load(std::memory_order_acquire)) kHost.free_rows(made);
}

void FusedKernel::run(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                      const uint64_t* numbers) const {
  SmallVector<char*, 16> addresses;
  std::vector<FusedOperand> operands;
  operands.reserve(outputs.size() + inputs.size());
  for (const auto& list : {outputs, inputs}) {
    for (const Tensor& t : list) {
      operands.push_back({t.dtype(), t.sizes(), t.strides()});
      addresses.push_back(static_cast<char*>(t.data_ptr()));
    }
  }
  const std::span<const FusedOperand> all(operands);
  FusedLoop(*this, all.first(outputs.size()), all.subspan(outputs.size())).run(addresses.data(), numbers);
}

}  // namespace tenon
