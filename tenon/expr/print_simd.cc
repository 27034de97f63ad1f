#include "tenon/expr/print_simd.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tenon/expr/function.h"
#include "tenon/expr/lower.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kElement[] = {"float", "double", "int32_t", "int64_t"};
constexpr std::string_view kTag[] = {"F32", "F64", "I32", "I64"};
// The tag of the integers as wide as the type.
constexpr std::string_view kBitsTag[] = {"I32", "I64", "I32", "I64"};

std::string_view tag(ComputeType t) { return kTag[static_cast<int>(t)]; }
std::string_view bits_tag(ComputeType t) { return kBitsTag[static_cast<int>(t)]; }

std::string literal_text(uint64_t bits, ComputeType type, Lane lane) {
  if (lane == Lane::Value && type == ComputeType::Float32) {
    const float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(f)) return "std::numeric_limits<float>::quiet_NaN()";
    if (std::isinf(f)) return fmt::format("{}std::numeric_limits<float>::infinity()", f < 0 ? "-" : "");
    return fmt::format("{:a}f", f);
  }
  if (lane == Lane::Value && type == ComputeType::Float64) {
    const double d = std::bit_cast<double>(bits);
    if (std::isnan(d)) return "std::numeric_limits<double>::quiet_NaN()";
    if (std::isinf(d)) return fmt::format("{}std::numeric_limits<double>::infinity()", d < 0 ? "-" : "");
    return fmt::format("{:a}", d);
  }
  return item_size(type) == 4 ? fmt::format("static_cast<int32_t>(0x{:x}u)", static_cast<uint32_t>(bits))
                              : fmt::format("static_cast<int64_t>(0x{:x}u)", bits);
}

// Prints the nodes of one lowered expression as declarations `const auto v3 = ...;`.
class Body {
 public:
  Body(const Lowered& e, std::string_view input_prefix) : e_(e), input_prefix_(input_prefix) {}

  std::string declaration(uint32_t id) const {
    const LoweredNode& n = e_.nodes[id];
    return fmt::format("const auto v{} = {};\n", id, value(n));
  }

 private:
  std::string arg(const LoweredNode& n, int i) const { return fmt::format("v{}", n.args[i]); }

  std::string value(const LoweredNode& n) const {
    const bool bits = n.lane == Lane::Bits;
    const std::string_view d = bits ? "di" : "d";
    switch (n.op) {
      case Op::Literal:
        return fmt::format("hn::Set({}, {})", d, literal_text(n.bits, e_.type, n.lane));
      case Op::Symbol:
        if (n.scalar) return fmt::format("hn::Set(d, s[{}])", n.bits);
        return fmt::format("{}{}{}", input_prefix_, n.bits, input_prefix_ == "a" ? "" : " + i)");
      case Op::Call:
        return call(fmt::format("{}_{}", functions()[n.function].name, suffix(e_.type)), n, "");
      case Op::Add:
        return call("hn::Add", n, "");
      case Op::Sub:
        return call("hn::Sub", n, "");
      case Op::Mul:
        return call("hn::Mul", n, "");
      case Op::Div:
        return call("hn::Div", n, "");
      case Op::TruncDiv:
        return call("trunc_div", n, d);
      case Op::Fmod:
        return call("truncated_mod", n, d);
      case Op::Neg:
        return call("hn::Neg", n, "");
      case Op::Abs:
        return call("hn::Abs", n, "");
      case Op::Sqrt:
        return call("hn::Sqrt", n, "");
      case Op::Fma:
        return call("fused_mul_add", n, d);
      case Op::Min:
        return call("minimum", n, d);
      case Op::Max:
        return call("maximum", n, d);
      case Op::Floor:
        return call("hn::Floor", n, "");
      case Op::Ceil:
        return call("hn::Ceil", n, "");
      case Op::Trunc:
        return call("hn::Trunc", n, "");
      case Op::Round:
        return call("hn::Round", n, "");
      case Op::IntPow:
        return call("integer_power", n, d);
      case Op::Eq:
        return compare("hn::Eq", n);
      // Not(Eq): Highway's Ne is ordered on some targets, and integers have no Ge and Le.
      case Op::Ne:
        return fmt::format("hn::Not({})", compare("hn::Eq", n));
      case Op::Lt:
        return compare("hn::Lt", n);
      case Op::Gt:
        return compare("hn::Gt", n);
      case Op::Le:
        return at_most(n, "hn::Le", "hn::Gt");
      case Op::Ge:
        return at_most(n, "hn::Ge", "hn::Lt");
      case Op::And:
        return call("hn::And", n, "");
      case Op::Or:
        return call("hn::Or", n, "");
      case Op::Xor:
        return call("hn::Xor", n, "");
      case Op::Not:
        return call("hn::Not", n, "");
      case Op::Where:
        return bits ? fmt::format("hn::IfThenElse(hn::RebindMask(di, {}), {}, {})", arg(n, 0), arg(n, 1),
                                  arg(n, 2))
                    : call("hn::IfThenElse", n, "");
      case Op::Bits:
        return fmt::format("hn::BitCast(di, {})", arg(n, 0));
      case Op::FromBits:
        return fmt::format("hn::BitCast(d, {})", arg(n, 0));
      case Op::ShiftLeft:
        return fmt::format("hn::ShiftLeft<{}>({})", n.bits, arg(n, 0));
      case Op::ShiftRight:
        return fmt::format("hn::ShiftRight<{}>({})", n.bits, arg(n, 0));
      case Op::ShiftRightLogical:
        return fmt::format(
            "hn::BitCast({0}, hn::ShiftRight<{1}>(hn::BitCast(hn::RebindToUnsigned<decltype({0})>(), "
            "{2})))",
            d, n.bits, arg(n, 0));
      case Op::PiReduce:
        return fmt::format("pi_reduce<{}>({}, {})", n.bits, d, arg(n, 0));
    }
    return {};
  }

  std::string call(std::string_view function, const LoweredNode& n, std::string_view first) const {
    std::string text = fmt::format("{}({}", function, first);
    for (int i = 0; i < n.arity; ++i) {
      text += fmt::format("{}{}", i == 0 && first.empty() ? "" : ", ", arg(n, i));
    }
    return text + ")";
  }

  bool on_bits(const LoweredNode& n) const { return e_.nodes[n.args[0]].lane == Lane::Bits; }

  std::string compare(std::string_view function, const LoweredNode& n) const {
    const std::string text = call(function, n, "");
    return on_bits(n) ? fmt::format("hn::RebindMask(d, {})", text) : text;
  }

  std::string at_most(const LoweredNode& n, std::string_view of_floats, std::string_view opposite) const {
    const bool integer = on_bits(n) || !is_floating(e_.type);
    return integer ? fmt::format("hn::Not({})", compare(opposite, n)) : compare(of_floats, n);
  }

  const Lowered& e_;
  std::string_view input_prefix_;
};

class File {
 public:
  void add(const Graph& g, const Kernel& kernel) {
    const Lowered e = lower(g, kernel);
    add_functions(e);
    kernels_ += print_kernel(e, kernel);
  }

  std::string text() const { return functions_ + kernels_; }

 private:
  void add_functions(const Lowered& e) {
    for (const LoweredNode& n : e.nodes) {
      if (n.op != Op::Call) continue;
      const uint32_t key = n.function * 4u + static_cast<uint32_t>(e.type);
      if (std::find(printed_.begin(), printed_.end(), key) != printed_.end()) continue;
      printed_.push_back(key);
      const Lowered body = lower_function(n.function, e.type);
      add_functions(body);
      functions_ += print_function(body, functions()[n.function]);
    }
  }

  static std::string print_function(const Lowered& e, const Function& f) {
    // Always inlined: constants then stay in registers over the loop
    // (docs/decisions/0001-kernel-compile-budget.md).
    std::string text = fmt::format("HWY_INLINE hn::{}<{}> {}_{}(", f.mask ? "Mask" : "Vec", tag(e.type),
                                   f.name, suffix(e.type));
    for (int i = 0; i < f.arity; ++i)
      text += fmt::format("{}hn::Vec<{}> a{}", i > 0 ? ", " : "", tag(e.type), i);
    text += ") {\n" + tags(e.type);
    const Body body(e, "a");
    for (uint32_t id = 0; id < e.nodes.size(); ++id) text += "  " + body.declaration(id);
    return text + fmt::format("  return v{};\n}}\n\n", e.outputs[0]);
  }

  static std::string tags(ComputeType t) {
    return fmt::format("  [[maybe_unused]] const {} d;\n  [[maybe_unused]] const {} di;\n", tag(t),
                       bits_tag(t));
  }

  static std::string print_kernel(const Lowered& e, const Kernel& k) {
    const std::string_view element = kElement[static_cast<int>(e.type)];
    const size_t num_out = e.outputs.size(), num_ptrs = num_out + k.inputs.size();
    std::string text = fmt::format("void {}(void* const* ptrs, size_t n, const void* scalars) {{\n", k.name);
    text += tags(e.type);
    if (!k.scalars.empty()) {
      text += fmt::format("  [[maybe_unused]] const auto* s = static_cast<const {}*>(scalars);\n", element);
    }
    for (size_t i = 0; i < num_ptrs; ++i) {
      const bool out = i < num_out;
      text += fmt::format("  [[maybe_unused]] auto* {}{} = static_cast<{}{}*>(ptrs[{}]);\n",
                          out ? "out" : "in", out ? i : i - num_out, out ? "" : "const ", element, i);
    }
    const Body body(e, "hn::LoadU(d, in");
    for (uint32_t id = 0; id < e.nodes.size(); ++id) {
      if (e.nodes[id].uniform) text += "  " + body.declaration(id);
    }
    text += "  const size_t lanes = hn::Lanes(d), whole = n - n % lanes;\n";
    text += "  for (size_t i = 0; i < whole; i += lanes) {\n";
    for (uint32_t id = 0; id < e.nodes.size(); ++id) {
      if (!e.nodes[id].uniform) text += "    " + body.declaration(id);
    }
    for (size_t i = 0; i < num_out; ++i) {
      const uint32_t id = e.outputs[i];
      const std::string value = e.nodes[id].lane == Lane::Mask
                                    ? fmt::format("hn::IfThenElseZero(v{}, hn::Set(d, {}{{1}}))", id, element)
                                : e.nodes[id].lane == Lane::Bits ? fmt::format("hn::BitCast(d, v{})", id)
                                                                 : fmt::format("v{}", id);
      text += fmt::format("    hn::StoreU({}, d, out{} + i);\n", value, i);
    }
    text += "  }\n";
    text += fmt::format("  if (whole != n) run_tail<{}, {}, {}>(&{}, ptrs, whole, n, scalars);\n}}\n\n",
                        tag(e.type), num_out, num_ptrs, k.name);
    return text;
  }

  std::string functions_, kernels_;
  std::vector<uint32_t> printed_;
};

}  // namespace

std::string print_simd_file(std::span<const PrintedKernel> kernels, std::string_view table,
                            std::string_view file_name) {
  File file;
  std::string names;
  for (const PrintedKernel& k : kernels) {
    file.add(*k.graph, k.kernel);
    names += fmt::format("    &{},\n", k.kernel.name);
  }
  return fmt::format(R"(// Printed from expressions by the build; edit those instead.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "{file}"
#include "backends/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/simd_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {{
namespace {{

{body}}}  // namespace

extern const PointwiseFn {table}_kernels[];
const PointwiseFn {table}_kernels[] = {{
{names}}};

}}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {{
extern PointwiseTables {table};
PointwiseTables {table} = TENON_CPU_TARGET_TABLES({table}_kernels);
}}  // namespace tenon::cpu
#endif
)",
                     fmt::arg("file", file_name), fmt::arg("body", file.text()), fmt::arg("table", table),
                     fmt::arg("names", names));
}

}  // namespace tenon::expr
