#include "tenon/iter/pointwise_state.h"

#include <fmt/core.h>

#include <memory>

#include "tenon/core/kernel_report.h"

namespace tenon::detail {

PointwiseState& make_state(const PointwiseInfo& info) {
  auto fresh = std::make_unique<PointwiseState>();
  if (info.kernels) {
    const std::span<const PointwiseBlockFn> kernels = info.kernels();
    std::copy_n(kernels.begin(), std::min<size_t>(kernels.size(), kNumComputeTypes), fresh->compiled);
  }
  PointwiseState* present = nullptr;
  if (info.state.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *present;  // another thread was first
}

ParsedPointwise parse_pointwise(expr::Graph& g, const PointwiseInfo& info) {
  std::vector<expr::Symbol> symbols;
  for (size_t i = 0; i < info.tensor_names.size(); ++i) {
    const bool mask = (info.mask_tensors >> i) & 1u;
    symbols.push_back({info.tensor_names[i], mask ? expr::SymbolKind::MaskTensor : expr::SymbolKind::Tensor});
  }
  for (const char* name : info.scalar_names) symbols.push_back({name, expr::SymbolKind::Scalar});
  ParsedPointwise parsed;
  parsed.root = expr::parse(g, info.text, symbols);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const expr::NodeId node = g.symbol(symbols[i].name, symbols[i].kind);
    if (i < info.tensor_names.size())
      parsed.tensors.push_back(node);
    else
      parsed.scalars.push_back(node);
  }
  return parsed;
}

namespace {

/// An error of the expression as one of the operator that it defines.
[[noreturn]] void throw_named(const PointwiseInfo& info, const Error& e) {
  constexpr std::string_view kRoom = "expression: ";
  std::string_view text = e.what();
  if (text.starts_with(kRoom)) text.remove_prefix(kRoom.size());
  throw_error(e.kind(), fmt::format("{}: {}", info.name, text));
}

}  // namespace

const cpu::Program& program_of(const PointwiseInfo& info, expr::ComputeType type) {
  std::unique_ptr<const cpu::Program> fresh;
  try {
    expr::Graph g;
    const ParsedPointwise parsed = parse_pointwise(g, info);
    expr::Kernel kernel;
    kernel.name = info.name;
    kernel.outputs = {parsed.root};
    kernel.inputs.assign(parsed.tensors.begin(), parsed.tensors.end());
    kernel.scalars.assign(parsed.scalars.begin(), parsed.scalars.end());
    kernel.type = type;
    fresh = std::make_unique<const cpu::Program>(g, kernel);
  } catch (const Error& e) {
    throw_named(info, e);
  }
  auto& slot = state_of(info).programs[static_cast<size_t>(type)];
  const cpu::Program* present = nullptr;
  if (slot.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *present;
}

namespace {

std::unique_ptr<ComplexProgram> compile_complex(const PointwiseInfo& info, expr::ComputeType type,
                                                const expr::ComplexOperands& which) {
  try {
    expr::Graph g;
    const ParsedPointwise parsed = parse_pointwise(g, info);
    expr::Kernel kernel{.name = info.name, .outputs = {parsed.root}, .type = type};
    kernel.inputs.assign(parsed.tensors.begin(), parsed.tensors.end());
    kernel.scalars.assign(parsed.scalars.begin(), parsed.scalars.end());
    const expr::Kernel parts = expr::split_complex(g, kernel, which, info.result != ResultRule::Compute);
    return std::make_unique<ComplexProgram>(ComplexProgram{type, which, cpu::Program(g, parts)});
  } catch (const Error& e) {
    throw_named(info, e);
  }
}

}  // namespace

const cpu::Program& complex_program_of(const PointwiseInfo& info, expr::ComputeType type,
                                       const expr::ComplexOperands& which) {
  auto& list = state_of(info).complex_programs;
  const ComplexProgram* first = list.load(std::memory_order_acquire);
  for (const ComplexProgram* p = first; p; p = p->next) {
    if (p->type == type && p->which == which) return p->program;
  }
  // Two threads may both add it; either one does.
  ComplexProgram* made = compile_complex(info, type, which).release();
  made->next = first;
  while (!list.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
  }
  return made->program;
}

void report_block_kernel(const PointwiseInfo& info, const BlockKernel& kernel) {
  if (!kernel_reporting()) return;
  struct Names {
    std::string compiled = fmt::format("simd:{}", cpu::cpu_target_name());
    std::string program = fmt::format("interpreter:{}", cpu::cpu_target_name());
  };
  static const Names& names = *new Names;
  report_kernel(info.name, (kernel.compiled ? names.compiled : names.program).c_str());
}

}  // namespace tenon::detail
