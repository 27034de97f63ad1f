#include "tenon/expr/print_simd.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/expr/definition.h"
#include "tenon/expr/function.h"
#include "tenon/expr/print_simd_body.h"

namespace tenon::expr {

namespace {

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

// Of maths with at most so many operations, what surrounds them is a good part of the time. Its kernels have
// a loop with one index for calls where nothing is repeated, and the operations once more for the last
// elements.
constexpr size_t kLightCost = 12;

std::string tags(Type t) {
  return fmt::format("  [[maybe_unused]] const {} d;\n  [[maybe_unused]] const {} di;\n", tag(t),
                     bits_tag(t));
}

// Prints one kernel.
class Kernel {
 public:
  Kernel(const Expression& e, Type main, const std::string& name)
      : e_(e),
        main_(main),
        name_(name),
        stored_(stored_dtype(e, main)),
        element_(is_half(stored_) ? "uint16_t" : element_name(main)),
        pairs_(in_pairs(e)),
        parts_(pairs_ ? 2 : 1),
        num_out_(e.num_outputs / parts_),
        num_in_(e.num_inputs / parts_),
        light_(cost(e, main) <= kLightCost),
        used_(e.num_nodes) {
    for (const Node& n : e.nodes()) {
      for (int i = 0; i < n.arity; ++i) used_[n.args[i]] = true;
    }
  }

  /// A chunk's sums: docs/decisions/0019-rows.md.
  std::string summing() const {
    TENON_CHECK(main_ == Type::F32 && stored_ == DType::Float32 && !pairs_, Internal,
                "print_simd: sums are of float32");
    std::string text = signature(name_) + " {\n" + pointers_and_numbers(false);
    for (size_t i = 0; i < num_out_; ++i)
      text +=
          fmt::format("  hn::Vec<F32> sum{0}[kVecs<F32>];\n  for (auto& s : sum{0}) s = hn::Zero(d);\n", i);
    const std::string unrolled =
        "#pragma GCC unroll 8\n    for (size_t v = 0; v < kVecs<F32>; ++v) {\n      "
        "const size_t at = v * hn::Lanes(d);\n";
    text += "  size_t i = 0;\n  for (; i + kReduceLanes <= n; i += kReduceLanes) {\n" + unrolled +
            declarations(SimdBody(e_, main_, load_text(stored_, "in{} + i + at"))) +
            added([](size_t, const std::string& sum) { return sum; }) +
            "    }\n  }\n  if (i < n) {\n    const size_t rest = n - i;\n";
    for (size_t i = 0; i < num_in_; ++i)
      text += fmt::format(
          "    HWY_ALIGN float rest{0}[kReduceLanes];\n    pad_lanes(rest{0}, in{0} + i, rest);\n", i);
    text += unrolled +
            "    const auto first = hn::FirstN(d, std::min(hn::Lanes(d), rest - std::min(at, rest)));\n" +
            declarations(SimdBody(e_, main_, load_text(stored_, "rest{} + at"))) +
            added([](size_t o, const std::string& sum) {
              return fmt::format("hn::IfThenElse(first, {}, sum{}[v])", sum, o);
            }) +
            "    }\n  }\n";
    for (size_t i = 0; i < num_out_; ++i)
      text += fmt::format("  *out{0} = fold_vectors<ReduceOp::Sum>(d, sum{0});\n", i);
    return text + "}\n\n";
  }

  std::string text() const {
    if (num_in_ <= 1) return indexed("");
    if (!light_)
      return stepping(name_, fmt::format("run_tail<{}>(&{}, rest, 0, n - whole, numbers)", shape(), name_));
    const std::string steps = name_ + "_steps";
    return signature(name_) + ";\n" + stepping(steps, name_ + "(rest, n - whole, numbers, 0)") +
           indexed(fmt::format("  if (HWY_UNLIKELY(repeated != 0)) return {}(ptrs, n, numbers, repeated);\n",
                               steps));
  }

 private:
  // One index for all operands. `start`: what comes first.
  std::string indexed(const std::string& start) const {
    const char* index = pairs_ ? " + 2 * i" : " + i";
    std::string text = signature(name_) + " {\n" + start + pointers_and_numbers() +
                       "  for (size_t i = 0; i < whole; i += lanes) {\n" + elements(index) + stores(index) +
                       "  }\n  if (whole == n) return;\n";
    const std::string tail = fmt::format("run_tail<{}>(&{}, ptrs, whole, n, numbers);\n", shape(), name_);
    if (!light_ || pairs_ || is_half(stored_)) return text + "  " + tail + "}\n\n";
    text += "  if constexpr (kMasksAreSafe) {\n    const auto first = hn::FirstN(d, n - whole);\n";
    text += declarations(SimdBody(e_, main_, "load_first(d, first, in{} + whole)"));
    const SimdBody body(e_, main_, "");
    for (size_t i = 0; i < num_out_; ++i)
      text += fmt::format("    hn::BlendedStore({}, first, d, out{} + whole);\n",
                          body.stored(e_.outputs()[i].node), i);
    return text + "  } else {\n    " + tail + "  }\n}\n\n";
  }

  // A step for each input: a vector, or nothing where it is repeated. `tail` takes the pointers of the rest.
  std::string stepping(const std::string& name, const std::string& tail) const {
    std::string text = signature(name) + " {\n" + pointers_and_numbers();
    for (size_t i = 0; i < num_in_; ++i)
      text += fmt::format("  const size_t step{} = (repeated >> {} & 1u) != 0 ? 0 : {} * lanes;\n", i,
                          num_out_ + i, parts_);
    text += "  for (size_t i = 0; i < whole; i += lanes) {\n" + elements("") +
            stores(pairs_ ? " + 2 * i" : " + i");
    for (size_t i = 0; i < num_in_; ++i) text += fmt::format("    in{0} += step{0};\n", i);
    text += "  }\n  if (whole == n) return;\n  void* const rest[] = {";
    for (size_t i = 0; i < num_out_; ++i) text += fmt::format("out{} + {} * whole, ", i, parts_);
    for (size_t i = 0; i < num_in_; ++i) text += fmt::format("in{}, ", i);
    return text + fmt::format("}};\n  {};\n}}\n\n", tail);
  }

  static std::string signature(const std::string& name) {
    return fmt::format(
        "void {}(void* const* ptrs, size_t n, [[maybe_unused]] const void* numbers, "
        "[[maybe_unused]] uint32_t repeated)",
        name);
  }
  std::string shape() const {
    return fmt::format("{}, {}, {}, {}, {}", tag(main_), element_, num_out_, num_out_ + num_in_, parts_);
  }

  // Adds a vector of what is computed to each sum; `kept`: what becomes of the new sum.
  template <class F>
  std::string added(F&& kept) const {
    std::string text;
    const SimdBody body(e_, main_, "");
    for (size_t i = 0; i < num_out_; ++i)
      text +=
          fmt::format("    sum{}[v] = {};\n", i,
                      kept(i, fmt::format("hn::Add(sum{}[v], {})", i, body.stored(e_.outputs()[i].node))));
    return text;
  }

  // `whole`: how many elements go in whole vectors is wanted too.
  std::string pointers_and_numbers(bool whole = true) const {
    std::string text = tags(main_);
    for (size_t i = 0; i < num_out_ + num_in_; ++i) {
      const bool out = i < num_out_;
      text += fmt::format("  [[maybe_unused]] auto* {}{} = static_cast<{}*>(ptrs[{}]);\n", out ? "out" : "in",
                          out ? i : i - num_out_, element_, i);
    }
    const SimdBody body(e_, main_, "");
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      if (e_[id].rank() == Rank::Number && declared(id)) text += "  " + body.declaration(id);
    }
    return whole ? text + "  const size_t lanes = hn::Lanes(d), whole = n - n % lanes;\n" : text;
  }

  // A truth value that is only stored becomes a number there.
  bool declared(NodeId id) const { return used_[id] || (e_[id].op != Op::Cast && e_[id].op != Op::RoundTo); }

  std::string declarations(const SimdBody& body) const {
    std::string text;
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      if (e_[id].rank() != Rank::Number && declared(id)) text += "    " + body.declaration(id);
    }
    return text;
  }

  // A vector of elements, at `index` from the inputs' pointers.
  std::string elements(const char* index) const {
    if (!pairs_) return declarations(SimdBody(e_, main_, load_text(stored_, fmt::format("in{{}}{}", index))));
    std::string text;
    for (size_t i = 0; i < num_in_; ++i)
      text += fmt::format("    hn::Vec<{}> p{}, p{};\n    hn::LoadInterleaved2(d, in{}{}, p{}, p{});\n",
                          tag(main_), 2 * i, 2 * i + 1, i, index, 2 * i, 2 * i + 1);
    return text + declarations(SimdBody(e_, main_, "p{}"));
  }

  std::string stores(const char* index) const {
    std::string text;
    const SimdBody body(e_, main_, "");
    const auto value = [&](size_t slot) { return body.stored(e_.outputs()[slot].node); };
    for (size_t i = 0; i < num_out_; ++i) {
      const std::string at = fmt::format("out{}{}", i, index);
      text += pairs_ ? fmt::format("    hn::StoreInterleaved2({}, {}, d, {});\n", value(2 * i),
                                   value(2 * i + 1), at)
                     : fmt::format("    {};\n", store_text(stored_, value(i), at));
    }
    return text;
  }

  // Operations of one element, those of functions included.
  static size_t cost(const Expression& e, Type main) {
    size_t sum = 0;
    for (const Node& n : e.nodes()) {
      if (n.op == Op::Call)
        sum += cost(definition(static_cast<uint16_t>(n.bits), main), main);
      else
        sum += n.arity > 0 && n.rank() == Rank::Element;
    }
    return sum;
  }

  const Expression& e_;
  Type main_;
  const std::string& name_;
  DType stored_;
  std::string_view element_;
  bool pairs_;
  size_t parts_, num_out_, num_in_;
  bool light_;
  std::vector<bool> used_;
};

class File {
 public:
  void add(const PrintedKernel& kernel) {
    const Type main = kernel_type(*kernel.expression);
    add_functions(*kernel.expression, main);
    const Kernel printed(*kernel.expression, main, kernel.name);
    kernels_ += kernel.sums ? printed.summing() : printed.text();
    sums_ = sums_ || kernel.sums;
  }

  bool sums() const { return sums_; }
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
    // Inlined but for long ones: constants then stay in registers over the loop
    // (docs/decisions/0001-kernel-compile-budget.md).
    std::string text = fmt::format("{} hn::{}<{}> {}_{}(", f.apart ? "HWY_NOINLINE" : "HWY_INLINE",
                                   f.mask ? "Mask" : "Vec", tag(main), f.name, suffix(main));
    for (int i = 0; i < f.arity; ++i)
      text += fmt::format("{}hn::Vec<{}> a{}", i > 0 ? ", " : "", tag(main), i);
    text += ") {\n" + tags(main);
    // By two powers of two, so that only the second product rounds; the instruction gives the same where
    // definitions make anything of the result (backends/cpu/jit/select.cc).
    if (f.name == "scale")
      text += fmt::format(
          "  if constexpr (kScalesByPower)\n    return scale_by_power(d, a0, hn::Sub(a1, hn::Set(d, {})));\n",
          main == Type::F32 ? "0x1.8p23f" : "0x1.8p52");
    const SimdBody body(e, main, "a{}");
    for (NodeId id = 0; id < e.num_nodes; ++id) text += "  " + body.declaration(id);
    return text + fmt::format("  return v{};\n}}\n\n", e.outputs()[0].node);
  }

  std::string functions_, kernels_;
  bool sums_ = false;
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
                            std::string_view file_name, std::string_view targets) {
  File file;
  std::string names;
  for (const PrintedKernel& k : kernels) {
    file.add(k);
    names += fmt::format("    &{},\n", k.name);
  }
  return fmt::format(
      R"(// Printed from expressions by the build; edit those instead.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "{file}"
#include "backends/cpu/targets.h"
{targets}#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/simd_ops-inl.h"
{sums}
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
      fmt::arg("names", names),
      fmt::arg("targets", targets.empty() ? std::string() : fmt::format("#include \"{}\"\n", targets)),
      fmt::arg("sums", file.sums() ? "#include \"backends/cpu/reduce/lanes-inl.h\"\n" : ""));
}

}  // namespace tenon::expr
