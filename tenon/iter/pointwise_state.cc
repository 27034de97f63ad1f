#include "tenon/iter/pointwise_state.h"

#include <fmt/core.h>

#include <memory>
#include <vector>

#include "tenon/core/kernel_report.h"

namespace tenon::detail {

PointwiseState& make_state(const PointwiseInfo& info) {
  auto fresh = std::make_unique<PointwiseState>();
  PointwiseState* present = nullptr;
  if (info.state.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *present;  // another thread was first
}

ParsedPointwise parse_pointwise(expr::Builder& g, const PointwiseInfo& info) {
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

// Its typed expression for one kind of call, over slots that are dense in the compute type.
expr::ExpressionPtr instantiate_dense(const PointwiseInfo& info, expr::CallTypes types) {
  types.dense = true;
  return Written(info).instantiate(types);
}

/// What was printed for a typed expression, or a program.
HostKernel find_or_compile(const expr::Expression& e) {
  if (const HostKernel::Function printed = kHost.find(e.key)) return {printed, nullptr};
  return {nullptr, kHost.compile(e, {})};
}

HostKernel find_or_compile(const PointwiseInfo& info, expr::Type type) {
  const expr::Key key = expr::in_type((*Written(info)).key, compute_index(type));
  if (const HostKernel::Function printed = kHost.find(key)) return {printed, nullptr};
  return {nullptr, kHost.compile(*typed_expression(info, type), {})};
}

}  // namespace

Written::Written(const PointwiseInfo& info) : info_(info), expression_(info.written) {
  if (expression_) return;
  try {
    expr::Builder g;
    owned_ = g.finish({parse_pointwise(g, info).root});
  } catch (const Error& e) {
    throw_named(info, e);
  }
  expression_ = owned_.get();
}

expr::ExpressionPtr Written::instantiate(const expr::CallTypes& types) const {
  try {
    return expr::instantiate(*expression_, types);
  } catch (const Error& e) {
    throw_named(info_, e);
  }
}

expr::ExpressionPtr typed_expression(const PointwiseInfo& info, expr::Type type) {
  return instantiate_dense(info, {.compute = type});
}

const HostKernel kNoKernel{};

const HostKernel& make_kernel(const PointwiseInfo& info, expr::Type type) {
  auto& slot = state_of(info).host[static_cast<size_t>(compute_index(type))];
  auto fresh = std::make_unique<const HostKernel>(find_or_compile(info, type));
  const HostKernel* present = nullptr;
  if (slot.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *present;  // another thread was first
}

namespace {

// Kernels of half types are printed, those of bytes are not: machine code takes a fraction of what tiles of
// converted elements take.
std::unique_ptr<const HostKernel> stored_kernel(const PointwiseInfo& info, expr::Type type, DType stored,
                                                DType result) {
  const Written written(info);
  const std::vector<DType> inputs((*written).num_inputs, stored), results((*written).num_outputs, result);
  const expr::ExpressionPtr e = written.instantiate({.compute = type, .inputs = inputs, .results = results});
  if (is_floating_point(stored)) {
    const HostKernel::Function printed = kHost.find(e->key);
    return printed ? std::make_unique<const HostKernel>(HostKernel{printed, nullptr}) : nullptr;
  }
  auto program = kHost.compile(*e, {.kind = HostProgramOptions::Kind::MachineCode});
  if (!program->is_machine_code()) return nullptr;
  return std::make_unique<const HostKernel>(HostKernel{nullptr, std::move(program)});
}

}  // namespace

const HostKernel* make_stored_kernel(const PointwiseInfo& info, expr::Type type, DType stored, DType result) {
  auto& slot = state_of(info).stored[stored_index(stored)];
  auto fresh = stored_kernel(info, type, stored, result);
  const HostKernel* present = nullptr;
  const HostKernel* const mine = fresh ? fresh.get() : &kNoKernel;
  if (!slot.compare_exchange_strong(present, mine, std::memory_order_acq_rel))
    return present;  // made meanwhile
  fresh.release();
  return mine;
}

void check_runs_in(const PointwiseInfo& info, expr::Type type) {
  auto& known = state_of(info).runs_in;
  const uint32_t bit = 1u << compute_index(type);
  if (known.load(std::memory_order_relaxed) & bit) return;
  typed_expression(info, type);
  known.fetch_or(bit, std::memory_order_relaxed);
}

namespace {

bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

/// Whether node `a` of one expression is node `b` of another, where that reads `part` of complex operands.
bool same_value(const expr::Expression& real, expr::NodeId a, const expr::Expression& parts, expr::NodeId b,
                expr::Part part) {
  const expr::Node &x = real[a], &y = parts[b];
  if (x.op != y.op || x.type != y.type || x.arity != y.arity) return false;
  if (x.op == expr::Op::Load) {
    const expr::Slot &s = real.inputs()[x.bits], &t = parts.inputs()[y.bits];
    return s.operand == t.operand && t.part == part;
  }
  if (x.bits != y.bits) return false;
  for (int i = 0; i < x.arity; ++i) {
    if (!same_value(real, x.args[i], parts, y.args[i], part)) return false;
  }
  return true;
}

/// Whether an expression of complex operands is for both parts what it is for real ones.
bool is_of_parts(const expr::Expression& real, const expr::Expression& complex) {
  if (real.num_outputs != 1 || complex.num_outputs != 2 || real.num_numbers != complex.num_numbers)
    return false;
  for (size_t k = 0; k < complex.num_numbers; ++k) {
    const expr::Slot& n = complex.numbers()[k];
    if (n.part == expr::Part::Im || n.operand != real.numbers()[k].operand ||
        n.dtype != real.numbers()[k].dtype)
      return false;
  }
  for (const expr::Slot& out : complex.outputs()) {
    if (!same_value(real, real.outputs()[0].node, complex, out.node, out.part)) return false;
  }
  return true;
}

const HostKernel* kernel_of_parts(const PointwiseInfo& info, const Binding& binding,
                                  const expr::Expression& e) {
  if (!is_complex(binding.computed) || binding.complex_numbers != 0 || info.mask_tensors != 0 ||
      !info.numbers_as_computed || info.conjugates != 0 ||
      result_dtype(info, 0, binding.computed) != binding.computed)
    return nullptr;
  for (size_t i = 0; i < info.tensor_names.size(); ++i) {
    if (binding.inputs[i] != binding.computed) return nullptr;
  }
  return is_of_parts(*typed_expression(info, binding.type), e) ? &kernel_of(info, binding.type) : nullptr;
}

std::unique_ptr<Instance> make_instance(const PointwiseInfo& info, const Binding& binding) {
  const size_t num_inputs = info.tensor_names.size();
  DType results[PointwiseInfo::kMaxOutputs];
  expr::ExpressionPtr e = instantiate_dense(info, call_types_of(info, binding, results));
  TENON_CHECK(e->num_numbers <= kMaxNumbers, NotImplemented,
              fmt::format("{}: the expression takes its numbers in {} ways, at most {} are possible",
                          info.name, e->num_numbers, kMaxNumbers));
  HostKernel kernel = find_or_compile(*e);
  const HostKernel* of_parts = kernel_of_parts(info, binding, *e);
  // What the build printed of complex operands takes whole ones, where there are no others.
  const bool whole =
      kernel.compiled && is_complex(results[0]) &&
      std::all_of(binding.inputs, binding.inputs + num_inputs, [](DType t) { return is_complex(t); });
  return std::make_unique<Instance>(
      Instance{binding.packed(num_inputs), std::move(e), std::move(kernel), of_parts, whole});
}

}  // namespace

expr::CallTypes call_types_of(const PointwiseInfo& info, const Binding& binding, std::span<DType> results) {
  for (size_t i = 0; i < info.num_outputs(); ++i) results[i] = result_dtype(info, i, binding.computed);
  return {.compute = binding.computed == DType::UInt64 ? expr::Type::U64 : binding.type,
          // Halves are widened to float32, wider floats to float64.
          .wide = is_half(binding.computed) ? expr::Type::F32 : expr::Type::Open,
          .inputs = {binding.inputs, info.tensor_names.size()},
          .results = results.first(info.num_outputs()),
          .complex_numbers = binding.complex_numbers,
          .conjugated = info.conjugates & ~PointwiseInfo::kConjugatedResult,
          .conjugated_results = (info.conjugates & PointwiseInfo::kConjugatedResult) != 0};
}

const Instance& instance_of(const PointwiseInfo& info, const Binding& binding) {
  auto& list = state_of(info).instances;
  const uint64_t packed = binding.packed(info.tensor_names.size());
  const Instance* first = list.load(std::memory_order_acquire);
  for (const Instance* i = first; i; i = i->next) {
    if (i->binding == packed) return *i;
  }
  // Two threads may both add it; either one does.
  Instance* made = make_instance(info, binding).release();
  made->next = first;
  while (!list.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
  }
  return *made;
}

DType result_dtype(const PointwiseInfo& info, size_t i, DType computed) noexcept {
  const bool truth = info.outputs.empty() ? info.result == ResultRule::Bool : info.outputs[i].truth;
  if (truth) return DType::Bool;
  return info.result == ResultRule::Real ? real_dtype(computed) : computed;
}

void set_what_it_asks(PointwiseInfo& info, const expr::Expression& written) {
  const expr::Asks asks = expr::asks_of(written);
  info.asks_dtypes = asks.dtypes;
  info.numbers_as_computed = !asks.typed_numbers;
  info.direct = info.may_be_direct();
}

void report_host_kernel(const char* name, const HostKernel& kernel) {
  struct Names {
    std::string compiled = fmt::format("simd:{}", kHost.target());
    std::string program = fmt::format("interpreter:{}", kHost.target());
    std::string code = fmt::format("jit:{}", kHost.target());
  };
  static const Names& names = *new Names;
  const std::string& ran = kernel.compiled                     ? names.compiled
                           : kernel.program->is_machine_code() ? names.code
                                                               : names.program;
  report_kernel(name, ran.c_str());
}

}  // namespace tenon::detail
