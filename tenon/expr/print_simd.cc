#include "tenon/expr/print_simd.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tenon/core/error.h"
#include "tenon/expr/definition.h"
#include "tenon/expr/function.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kElement[] = {"float", "double", "int32_t", "int64_t"};
constexpr std::string_view kTag[] = {"F32", "F64", "I32", "I64"};
// The tag of the integers as wide as the type.
constexpr std::string_view kBitsTag[] = {"I32", "I64", "I32", "I64"};

std::string_view tag(Type t) { return kTag[compute_index(t)]; }
std::string_view bits_tag(Type t) { return kBitsTag[compute_index(t)]; }

std::string literal_text(uint64_t bits, Type type) {
  if (type == Type::F32) {
    const float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(f)) return "std::numeric_limits<float>::quiet_NaN()";
    if (std::isinf(f)) return fmt::format("{}std::numeric_limits<float>::infinity()", f < 0 ? "-" : "");
    return fmt::format("{:a}f", f);
  }
  if (type == Type::F64) {
    const double d = std::bit_cast<double>(bits);
    if (std::isnan(d)) return "std::numeric_limits<double>::quiet_NaN()";
    if (std::isinf(d)) return fmt::format("{}std::numeric_limits<double>::infinity()", d < 0 ? "-" : "");
    return fmt::format("{:a}", d);
  }
  return item_size(type) == 4 ? fmt::format("static_cast<int32_t>(0x{:x}u)", static_cast<uint32_t>(bits))
                              : fmt::format("static_cast<int64_t>(0x{:x}u)", bits);
}

bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

// The dtype of all operands of a kernel in memory: the compute type's, or that of halves.
DType stored_dtype(const Expression& e, Type main) {
  for (const auto& list : {e.inputs(), e.outputs()}) {
    if (!list.empty() && main == Type::F32 && is_half(list[0].dtype)) return list[0].dtype;
  }
  return dtype(main);
}

// Whether operands are complex: slots are their parts in turn, and elements have both side by side.
bool in_pairs(const Expression& e) {
  for (const auto& list : {e.inputs(), e.outputs()}) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].part != (i % 2 == 0 ? Part::Re : Part::Im)) return false;
    }
    if (list.size() % 2 != 0) return false;
  }
  return true;
}

// "hn::LoadU(d, in0)", "hn::StoreU(v3, d, out0 + i)" of elements as they are stored.
std::string load_text(DType stored, std::string_view at) {
  return is_half(stored) ? fmt::format("load_{}(d, {})", tenon::name(stored), at)
                         : fmt::format("hn::LoadU(d, {})", at);
}
std::string store_text(DType stored, std::string_view value, std::string_view at) {
  return is_half(stored) ? fmt::format("store_{}(d, {}, {})", tenon::name(stored), value, at)
                         : fmt::format("hn::StoreU({}, d, {})", value, at);
}

// The compute type of a kernel or definition: that of what it loads, or else stores. Patterns are the
// integers of its width.
Type main_type(const Expression& e) {
  Type main = Type::Open;
  for (const auto& list : {e.inputs(), e.numbers(), e.outputs()}) {
    for (const Slot& s : list) {
      if (main == Type::Open && is_compute_type(carrier(s.dtype))) main = carrier(s.dtype);
    }
  }
  TENON_CHECK(main != Type::Open, NotImplemented, "print_simd: an expression of masks alone is not printed");
  const auto fits = [main](Type t) { return t == Type::Mask || t == main || t == pattern_of(main); };
  const DType stored = stored_dtype(e, main);
  const auto rounds = [&](const Node& n) {
    // What is stored is rounded; elsewhere only the interpreter rounds.
    return n.op == Op::RoundTo && !(&n == &e.nodes().back() && static_cast<DType>(n.bits) == stored);
  };
  for (const Node& n : e.nodes()) {
    TENON_CHECK(fits(n.type) && !rounds(n) && (n.op != Op::Cast || e[n.args[0]].type == Type::Mask),
                NotImplemented,
                fmt::format("print_simd: `{}` of {} beside {} is not printed", info(n.op).name,
                            suffix(n.type), suffix(main)));
  }
  for (const Slot& s : e.inputs()) {
    TENON_CHECK(
        real_dtype(s.dtype) == stored, NotImplemented,
        fmt::format("print_simd: {} elements beside {} are not printed", tenon::name(s.dtype), suffix(main)));
  }
  return main;
}

// The same for a kernel, which stores what it computes.
Type kernel_type(const Expression& e) {
  const Type main = main_type(e);
  for (const Slot& s : e.outputs()) {
    TENON_CHECK(
        real_dtype(s.dtype) == stored_dtype(e, main), NotImplemented,
        fmt::format("print_simd: {} stored beside {} is not printed", tenon::name(s.dtype), suffix(main)));
  }
  return main;
}

// Prints the nodes of one expression as declarations `const auto v3 = ...;`.
class Body {
 public:
  /// `parameters`: loads are the parameters of a function, not elements in memory.
  Body(const Expression& e, Type main, bool parameters)
      : e_(e),
        main_(main),
        stored_(stored_dtype(e, main)),
        parameters_(parameters),
        pairs_(in_pairs(e)),
        chosen_(e.num_nodes) {
    std::vector<int> uses(e.num_nodes);
    for (const Node& n : e.nodes()) {
      for (int i = 0; i < n.arity; ++i) ++uses[n.args[i]];
    }
    for (const Node& n : e.nodes()) {
      for (int i = 1; n.op == Op::Where && n.type == main && i < 3; ++i) {
        const Node& a = e[n.args[i]];
        chosen_[n.args[i]] = a.op == Op::Call && functions()[a.bits].costly && uses[n.args[i]] == 1;
      }
    }
  }

  std::string declaration(NodeId id) const {
    const Node& n = e_[id];
    if (chosen_[id]) return "";
    if (n.op == Op::Where && (chosen_[n.args[1]] || chosen_[n.args[2]])) return choice(id, n);
    return fmt::format("const auto v{} = {};\n", id, value(n));
  }

  /// The parts of complex operand `i`, as one load.
  static std::string load_pair(size_t i, Type main) {
    return fmt::format("hn::Vec<{}> p{}, p{};\n    hn::LoadInterleaved2(d, in{}, p{}, p{});\n", tag(main),
                       2 * i, 2 * i + 1, i, 2 * i, 2 * i + 1);
  }

  /// What a store of node `id` takes.
  std::string stored(NodeId id) const {
    const Node& n = e_[id];
    if (n.op == Op::Cast) return as_number(n);
    if (n.op == Op::RoundTo) return fmt::format("v{}", n.args[0]);
    return n.type == main_ ? fmt::format("v{}", id) : fmt::format("hn::BitCast(d, v{})", id);
  }

 private:
  std::string arg(const Node& n, int i) const { return fmt::format("v{}", n.args[i]); }

  // A choice between calls: one that no element needs is left out.
  std::string choice(NodeId id, const Node& n) const {
    const auto branch = [&](int i) { return chosen_[n.args[i]] ? value(e_[n.args[i]]) : arg(n, i); };
    const std::string mask = arg(n, 0), v = fmt::format("v{}", id);
    std::string text = fmt::format("auto {} = {};\n", v, chosen_[n.args[2]] ? arg_or_zero(n, 1) : arg(n, 2));
    if (chosen_[n.args[1]] && chosen_[n.args[2]])
      text += fmt::format("if (!hn::AllFalse(d, {})) {} = {};\n", mask, v, branch(1));
    if (chosen_[n.args[2]])
      return text + fmt::format("if (!hn::AllTrue(d, {0})) {1} = hn::IfThenElse({0}, {1}, {2});\n", mask, v,
                                branch(2));
    return text + fmt::format("if (!hn::AllFalse(d, {0})) {1} = hn::IfThenElse({0}, {2}, {1});\n", mask, v,
                              branch(1));
  }
  std::string arg_or_zero(const Node& n, int i) const {
    return chosen_[n.args[i]] ? "hn::Zero(d)" : arg(n, i);
  }

  std::string as_number(const Node& n) const {
    return fmt::format("hn::IfThenElseZero({}, hn::Set(d, {}{{1}}))", arg(n, 0),
                       kElement[compute_index(main_)]);
  }

  std::string value(const Node& n) const {
    const bool bits = n.type != Type::Mask && n.type != main_;
    const std::string_view d = bits ? "di" : "d";
    switch (n.op) {
      case Op::Literal:
        if (n.type == Type::Mask) return fmt::format("hn::{}(d)", n.bits != 0 ? "MaskTrue" : "MaskFalse");
        return fmt::format("hn::Set({}, {})", d, literal_text(n.bits, n.type));
      case Op::Load:
        return parameters_ ? fmt::format("a{}", n.bits)
               : pairs_    ? fmt::format("p{}", n.bits)
                           : load_text(stored_, fmt::format("in{}", n.bits));
      case Op::Number:
        return fmt::format("hn::Set({}, number<{}>(numbers, {}))", d, kElement[compute_index(n.type)],
                           n.bits);
      case Op::Call:
        return call(fmt::format("{}_{}", functions()[n.bits].name, suffix(main_)), n, "");
      case Op::Cast:
        return as_number(n);
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
      default:
        throw_error(ErrorKind::Internal, fmt::format("print_simd: `{}`", info(n.op).name));
    }
  }

  std::string call(std::string_view function, const Node& n, std::string_view first) const {
    std::string text = fmt::format("{}({}", function, first);
    for (int i = 0; i < n.arity; ++i) {
      text += fmt::format("{}{}", i == 0 && first.empty() ? "" : ", ", arg(n, i));
    }
    return text + ")";
  }

  bool on_bits(const Node& n) const { return e_[n.args[0]].type != main_; }

  std::string compare(std::string_view function, const Node& n) const {
    const std::string text = call(function, n, "");
    return on_bits(n) ? fmt::format("hn::RebindMask(d, {})", text) : text;
  }

  std::string at_most(const Node& n, std::string_view of_floats, std::string_view opposite) const {
    const bool integer = on_bits(n) || !is_floating(main_);
    return integer ? fmt::format("hn::Not({})", compare(opposite, n)) : compare(of_floats, n);
  }

  const Expression& e_;
  Type main_;
  DType stored_;
  bool parameters_, pairs_;
  std::vector<bool> chosen_;  // costly calls that one choice alone uses
};

class File {
 public:
  void add(const PrintedKernel& kernel) {
    const Type main = kernel_type(*kernel.expression);
    add_functions(*kernel.expression, main);
    kernels_ += print_kernel(*kernel.expression, main, kernel.name);
  }

  std::string text() const { return functions_ + kernels_; }

 private:
  void add_functions(const Expression& e, Type main) {
    for (const Node& n : e.nodes()) {
      if (n.op != Op::Call) continue;
      const uint64_t key = n.bits * kNumComputeTypes + static_cast<uint64_t>(compute_index(main));
      if (std::find(printed_.begin(), printed_.end(), key) != printed_.end()) continue;
      printed_.push_back(key);
      const Expression& body = definition(static_cast<uint16_t>(n.bits), main);
      add_functions(body, main);
      functions_ += print_function(body, main, functions()[n.bits]);
    }
  }

  static std::string print_function(const Expression& e, Type main, const Function& f) {
    // Always inlined: constants then stay in registers over the loop
    // (docs/decisions/0001-kernel-compile-budget.md).
    std::string text =
        fmt::format("HWY_INLINE hn::{}<{}> {}_{}(", f.mask ? "Mask" : "Vec", tag(main), f.name, suffix(main));
    for (int i = 0; i < f.arity; ++i)
      text += fmt::format("{}hn::Vec<{}> a{}", i > 0 ? ", " : "", tag(main), i);
    text += ") {\n" + tags(main);
    const Body body(e, main, true);
    for (NodeId id = 0; id < e.num_nodes; ++id) text += "  " + body.declaration(id);
    return text + fmt::format("  return v{};\n}}\n\n", e.outputs()[0].node);
  }

  static std::string tags(Type t) {
    return fmt::format("  [[maybe_unused]] const {} d;\n  [[maybe_unused]] const {} di;\n", tag(t),
                       bits_tag(t));
  }

  static std::string print_kernel(const Expression& e, Type main, const std::string& name) {
    const DType stored = stored_dtype(e, main);
    const std::string_view element = is_half(stored) ? "uint16_t" : kElement[compute_index(main)];
    const bool pairs = in_pairs(e);
    const size_t parts = pairs ? 2 : 1, num_out = e.num_outputs / parts, num_in = e.num_inputs / parts,
                 num_ptrs = num_out + num_in;
    std::string text = fmt::format(
        "void {}(void* const* ptrs, size_t n, [[maybe_unused]] const void* numbers, "
        "[[maybe_unused]] uint32_t repeated) {{\n",
        name);
    text += tags(main);
    for (size_t i = 0; i < num_ptrs; ++i) {
      const bool out = i < num_out;
      text += fmt::format("  [[maybe_unused]] auto* {}{} = static_cast<{}{}*>(ptrs[{}]);\n",
                          out ? "out" : "in", out ? i : i - num_out, out ? "" : "const ", element, i);
    }
    const Body body(e, main, false);
    // A truth value that is only stored becomes a number there.
    std::vector<bool> used(e.num_nodes);
    for (const Node& n : e.nodes()) {
      for (int i = 0; i < n.arity; ++i) used[n.args[i]] = true;
    }
    const auto declared = [&](NodeId id, Rank rank) {
      return (e[id].rank() == Rank::Number) == (rank == Rank::Number) &&
             (used[id] || (e[id].op != Op::Cast && e[id].op != Op::RoundTo));
    };
    for (NodeId id = 0; id < e.num_nodes; ++id) {
      if (declared(id, Rank::Number)) text += "  " + body.declaration(id);
    }
    text += "  const size_t lanes = hn::Lanes(d), whole = n - n % lanes;\n";
    for (size_t i = 0; i < num_in; ++i)
      text += fmt::format("  const size_t step{} = {}step_of({}, repeated, lanes);\n", i, pairs ? "2 * " : "",
                          num_out + i);
    text += "  for (size_t i = 0; i < whole; i += lanes) {\n";
    for (size_t i = 0; pairs && i < num_in; ++i) text += "    " + Body::load_pair(i, main);
    for (NodeId id = 0; id < e.num_nodes; ++id) {
      if (declared(id, Rank::Element)) text += "    " + body.declaration(id);
    }
    const auto value = [&](size_t slot) { return body.stored(e.outputs()[slot].node); };
    for (size_t i = 0; i < num_out; ++i) {
      text += pairs ? fmt::format("    hn::StoreInterleaved2({}, {}, d, out{} + 2 * i);\n", value(2 * i),
                                  value(2 * i + 1), i)
                    : fmt::format("    {};\n", store_text(stored, value(i), fmt::format("out{} + i", i)));
    }
    for (size_t i = 0; i < num_in; ++i) text += fmt::format("    in{0} += step{0};\n", i);
    text += "  }\n";
    text += fmt::format(
        "  if (whole != n) run_tail<{}, {}, {}, {}, {}>(&{}, ptrs, whole, n, numbers, repeated);\n}}\n\n",
        tag(main), element, num_out, num_ptrs, parts, name);
    return text;
  }

  std::string functions_, kernels_;
  std::vector<uint64_t> printed_;
};

}  // namespace

bool is_printable(const Expression& e) {
  try {
    kernel_type(e);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string print_simd_file(std::span<const PrintedKernel> kernels, std::string_view table,
                            std::string_view file_name) {
  File file;
  std::string names;
  for (const PrintedKernel& k : kernels) {
    file.add(k);
    names += fmt::format("    &{},\n", k.name);
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
