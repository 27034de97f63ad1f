#include "backends/cpu/jit/jit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "tenon/expr/definition.h"
#include "tenon/expr/function.h"
#include "tenon/expr/program.h"

#ifdef TENON_HAVE_XBYAK
#include "backends/cpu/jit/emitter.h"
#endif

namespace tenon::cpu {

#ifdef TENON_HAVE_XBYAK
namespace {

using expr::Expression;
using expr::Node;
using expr::Op;
using expr::Type;

// Printed kernels ask first whether any element needs a costly call; here all of it is computed. Functions
// are looked into.
bool branches(const Expression& e, Type type, int depth = 0) {
  for (const Node& n : e.nodes()) {
    for (int i = 1; n.op == Op::Where && i < 3; ++i) {
      const Node& chosen = e[n.args[i]];
      if (chosen.op == Op::Call && expr::functions()[chosen.bits].costly) return true;
    }
    if (n.op == Op::Call && depth < 8 && expr::functions()[n.bits].runs_in(type) &&
        branches(expr::definition(static_cast<uint16_t>(n.bits), type), type, depth + 1))
      return true;
  }
  return false;
}

std::string refused_operation(const Node& n, bool avx512) {
  const std::string_view name = expr::info(n.op).name;
  switch (n.op) {
    case Op::TruncDiv:
    case Op::Fmod:
    case Op::IntPow:
      return fmt::format("`{}` is a loop over elements or a long sequence", name);
    case Op::RoundTo:
      return avx512 ? "" : "it rounds to a narrower type";
    case Op::Iota:
    case Op::Length:
    case Op::Reduce:
    case Op::Scan:
      return "it computes with whole rows";
    case Op::Fma:
      return is_floating(n.type) ? "" : "an fma of integers is two operations";
    case Op::Mul:
    case Op::ShiftRight:
    case Op::Min:
    case Op::Max:
    case Op::Abs:
      return avx512 || n.type != Type::I64 ? "" : fmt::format("AVX2 has no `{}` of int64", name);
    default:
      return "";
  }
}

// On AVX2 all values have one size, and so have operands.
std::string refused_by_avx2(const Expression& e) {
  size_t item = 0;
  for (const Node& n : e.nodes()) {
    if (n.op == Op::Cast && is_compute_type(n.type) && is_compute_type(e[n.args[0]].type)) {
      if (n.type == Type::I32) return "numbers become int32 by way of int64";
      if (expr::item_size(n.type) == 8) return "AVX2 does not convert int64";
    }
    if (n.type == Type::Mask) continue;
    if (item != 0 && item != expr::item_size(n.type)) return "its values have several sizes";
    item = expr::item_size(n.type);
  }
  for (const auto& slots : {e.inputs(), e.outputs()}) {
    for (const expr::Slot& s : slots) {
      const Type held = expr::carrier(s.dtype);
      if (!is_compute_type(held) || dtype(held) != real_dtype(s.dtype) || expr::item_size(held) != item)
        return "operands are converted when they are loaded";
    }
  }
  return "";
}

// Results are all in registers before any is stored.
constexpr size_t kMostOutputs512 = 16, kMostOutputs256 = 4, kMostMasks = 4;

std::string refused_primitive(const Expression& e, bool avx512) {
  const size_t most = avx512 ? kMostOutputs512 : kMostOutputs256;
  const auto outputs = e.outputs();
  const auto masks = static_cast<size_t>(std::count_if(
      outputs.begin(), outputs.end(), [&](const expr::Slot& s) { return e[s.node].type == Type::Mask; }));
  if (e.num_outputs > most || masks > kMostMasks)
    return fmt::format("it has more outputs than registers hold beside each other: {}", e.num_outputs);
  for (const Node& n : e.nodes()) {
    const std::string why = refused_operation(n, avx512);
    if (!why.empty()) return why;
  }
  return avx512 ? "" : refused_by_avx2(e);
}

class Made final : public JitKernel {
 public:
  Made(const Expression& primitive, CpuTarget target, int vectors, uint32_t summed = 0)
      : emitter_(primitive, target, vectors, summed) {
    function_ = emitter_.function<Function>();
  }

 private:
  jit::Emitter emitter_;
};

}  // namespace

std::string jit_refusal(const Expression& e, CpuTarget target) {
  if (target == CpuTarget::Sse4) return "SSE4 has no fma, which would be emulated";
  for (const Type type : {Type::F32, Type::F64}) {
    const bool has =
        std::any_of(e.nodes().begin(), e.nodes().end(), [&](const Node& n) { return n.type == type; });
    if (has && branches(e, type)) return "a branch pays: a costly function is chosen by a mask";
  }
  return refused_primitive(*expr::inline_calls(e), target == CpuTarget::Avx3);
}

std::string jit_loss(const Expression& e, CpuTarget target) {
  // Operations that wait for each other leave AVX2's few registers little to do meanwhile, and the
  // interpreter does one function for many vectors. Measured on AVX2: exp(exp(x)) and sin(sin(x)) take 1.1 to
  // 1.2 times as long as the interpreter, silu(x) * tanh(x) 0.7 times.
  if (target == CpuTarget::Avx3) return "";
  constexpr size_t kLookAhead = 60;
  const expr::ExpressionPtr primitive = expr::inline_calls(e);
  const jit::Values values(*primitive, false);
  const size_t operations = values.num_operations(), longest = values.longest_path();
  if (operations < kLookAhead || 2 * operations >= 5 * longest) return "";
  return "of its " + std::to_string(operations) + " operations " + std::to_string(longest) +
         " wait for each other: function by function is faster";
}

std::string jit_sum_refusal(const Expression& e, CpuTarget target, uint32_t summed) {
  constexpr int kMostSums512 = 4, kMostSums256 = 2;
  const int count = std::popcount(summed);
  if (count > (target == CpuTarget::Avx3 ? kMostSums512 : kMostSums256))
    return fmt::format("it has {} sums, which would fill the registers", count);
  const expr::ExpressionPtr primitive = expr::inline_calls(e);
  if (jit::has_wide_items(*primitive)) return "it computes with values of 8 bytes";
  for (size_t o = 0; o < primitive->num_outputs; ++o) {
    const expr::Slot& s = primitive->outputs()[o];
    if ((summed >> o & 1) != 0 && (s.dtype != DType::Float32 || (*primitive)[s.node].type != Type::F32))
      return "sums are of float32";
  }
  return jit_refusal(e, target);
}

std::unique_ptr<const JitKernel> JitKernel::make(const Expression& e, CpuTarget target, int vectors) {
  try {
    return std::make_unique<const Made>(*expr::inline_calls(e), target, vectors);
  } catch (const Xbyak::Error&) {
    return nullptr;
  }
}

std::unique_ptr<const JitKernel> JitKernel::make_sums(const Expression& e, CpuTarget target,
                                                      uint32_t summed) {
  try {
    return std::make_unique<const Made>(*expr::inline_calls(e), target, 0, summed);
  } catch (const Xbyak::Error&) {
    return nullptr;
  }
}

#else

std::string jit_refusal(const expr::Expression&, CpuTarget) { return "this build has no emitter (Xbyak)"; }
std::string jit_loss(const expr::Expression&, CpuTarget) { return ""; }
std::string jit_sum_refusal(const expr::Expression& e, CpuTarget target, uint32_t) {
  return jit_refusal(e, target);
}
std::unique_ptr<const JitKernel> JitKernel::make(const expr::Expression&, CpuTarget, int) { return nullptr; }
std::unique_ptr<const JitKernel> JitKernel::make_sums(const expr::Expression&, CpuTarget, uint32_t) {
  return nullptr;
}

#endif

}  // namespace tenon::cpu
