// Prints pointwise operators and their derivatives as constant data, and SIMD kernels for the ones used most.
#include <fmt/format.h>

#include <map>
#include <set>

#include "tenon/expr/instantiate.h"
#include "tenon/expr/passes.h"
#include "tools/opgen/families.h"
#include "tools/opgen/files.h"
#include "tools/opgen/pointwise_forms.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/rows_forms.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

using expr::Type;

// The kernels of all forms, equal ones once: sub's derivative by `self` and mul's are kernels that exist
// already. An entry's kernels are all in one file, which follows from its name, so that a new operator
// changes one.
class KernelPool {
 public:
  /// Prints the kernel of a form, unless the form cannot run in that type or the interpreter runs it.
  void add(const std::string& entry, const PointwiseForm& form, Type type) {
    if (!form.runs_in(type)) return;
    const expr::Key key = expr::in_type(form.written()->key, expr::compute_index(type));
    expr::ExpressionPtr expression = form.typed(type);
    if (!expr::is_printable(*expression) || !known_.insert(key).second) return;
    of(entry).emplace(key, Kernel{std::move(expression)});
  }

  /// The same for operands as they are stored, or for complex ones, which the typed expression is found by.
  void add_typed(const std::string& entry, expr::ExpressionPtr expression) {
    if (!expr::is_printable(*expression) || !known_.insert(expression->key).second) return;
    const expr::Key key = expression->key;
    of(entry).emplace(key, Kernel{std::move(expression)});
  }

  /// Prints the kernels of a row operator's passes, with all its arguments present, for float32; of passes
  /// that make sums alone also those that add up what they compute.
  void add_rows(const OpDef& def) {
    const expr::ExpressionPtr typed =
        expr::instantiate(*rows_form(def).written(), {.compute = Type::F32, .dense = true});
    Kernels& kernels = of(def.operators.front().constant);
    for (const expr::RowForm form : {expr::RowForm::Along, expr::RowForm::Across}) {
      for (const bool sums : {false, true}) {
        expr::RowPasses cut = expr::cut_passes(*typed, form, expr::Keep::Dear);
        for (expr::RowPass& pass : cut.passes) {
          expr::ExpressionPtr& flat = pass.elements.flat;
          if (!flat || !expr::is_printable(*flat)) continue;
          if (sums && (form != expr::RowForm::Along || !expr::is_summed(pass))) continue;
          const expr::Key key = sums ? expr::summed(flat->key) : flat->key;
          if (known_.insert(key).second) kernels.emplace(key, Kernel{std::move(flat), sums});
        }
      }
    }
  }

  std::vector<GeneratedFile> files() const {
    std::vector<GeneratedFile> files;
    std::string declarations, list;
    for (size_t f = 0; f < kKernelFiles; ++f) {
      const std::string table = fmt::format("kernels_{}", f);
      files.push_back({table + ".cc", file(kernels_[f], table)});
      if (kernels_[f].empty()) continue;
      declarations += fmt::format("extern const PrintedKernels {}_by_key;\n", table);
      list += fmt::format("      &{}_by_key,\n", table);
    }
    std::string text = banner("The files of printed kernels.") +
                       "#include \"backends/cpu/pointwise/printed_kernels.h\"\n\nnamespace tenon::cpu {\n\n" +
                       declarations + "\nstd::span<const PrintedKernels* const> printed_kernels() {\n";
    text += list.empty() ? "  return {};\n"
                         : "  static constexpr const PrintedKernels* kFiles[] = {\n" + list +
                               "  };\n  return kFiles;\n";
    files.push_back({"printed_kernels.cc", text + "}\n\n}  // namespace tenon::cpu\n"});
    return files;
  }

 private:
  struct Kernel {
    expr::ExpressionPtr expression;
    bool sums = false;
  };
  using Kernels = std::map<expr::Key, Kernel>;

  Kernels& of(const std::string& entry) { return kernels_[stable_hash(entry) % kKernelFiles]; }

  static std::string file(const Kernels& kernels, const std::string& table) {
    if (kernels.empty()) return banner("No kernels here.");
    std::vector<expr::PrintedKernel> printed;
    std::string keys;
    for (const auto& [key, kernel] : kernels) {
      printed.push_back({fmt::format("k{}", printed.size()), kernel.expression.get(), kernel.sums});
      keys += fmt::format("    {{{:#x}u, {:#x}u}},\n", key.high, key.low);
    }
    return expr::print_simd_file(printed, table, table + ".cc", "backends/cpu/pointwise/wide_targets.h") +
           fmt::format(
               "\n#if HWY_ONCE\nnamespace tenon::cpu {{\n"
               "static constexpr expr::Key {0}_keys[] = {{\n{1}}};\n"
               "extern const PrintedKernels {0}_by_key;\n"
               "constexpr PrintedKernels {0}_by_key{{{0}_keys, {2}, {0}}};\n"
               "}}  // namespace tenon::cpu\n#endif\n",
               table, keys, kernels.size());
  }

  Kernels kernels_[kKernelFiles];
  std::set<expr::Key> known_;
};

class InfoPrinter {
 public:
  explicit InfoPrinter(KernelPool& pool) : pool_(pool) {}

  void add(const OpDef& def, const Family& family) {
    const std::string id = def.operators.front().constant;
    std::string bool_form;
    if (!def.pointwise.bool_text.empty()) {
      add_info(def, pointwise_form(def, def.pointwise.bool_text), id + "_on_bool", {});
      bool_form = fmt::format("&{}_on_bool", id);
    }
    const auto forms = pointwise_forms(def);
    std::string without;
    for (size_t i = 1; i < forms.size(); ++i) {
      if (forms[i]) add_form(def, *forms[i], id + forms[i]->absent, {});
      without += forms[i] ? fmt::format(", &{}{}", id, forms[i]->absent) : ", nullptr";
    }
    Links links{.bool_form = bool_form, .exported = true};
    if (!without.empty()) {
      text_ += fmt::format("constexpr const PointwiseInfo* {0}_without[] = {{&{0}{1}}};\n", id, without);
      links.without = id + "_without";
    }
    links.special = special(def, def.pointwise.special, *forms[0], id, {});
    links.stub = pointwise_stub_name(def, family.defs);
    stubs_ += fmt::format(
        "constinit Stub<{0}> {1}_stub({2}, {3});\n"
        "static const tenon::detail::PointwiseStubListing {1}_listing({1}_stub, pointwise_info::{4});\n",
        pointwise_stub_type(def), links.stub, quote(links.stub), quote(pointwise_signature(def)), id);
    add_form(def, *forms[0], id, links);
  }

  std::string file(const Family& family) const {
    const std::string rows = rows_data(family);
    if (text_.empty() && rows.empty()) return banner("No pointwise operators here.");
    return banner("Pointwise operators, their derivatives and stubs, and row operators as data.") +
           "#include " + quote(family.header("pointwise")) +
           (rows.empty() ? "" : "\n#include \"tenon/ops/forms/rows.h\"") + "\n#include " +
           quote(family.header("stubs")) +
           (stubs_.empty() ? ""
                           : "\n\nnamespace tenon::ops {\n\n" + stubs_ + "\n}  // namespace tenon::ops") +
           "\n\nnamespace tenon::pointwise_info {\n\n" + text_ + "\n}  // namespace tenon::pointwise_info\n" +
           rows;
  }

  std::string header() const {
    return banner("PointwiseInfo of each `expr` operator, by the name of its constant.") +
           "#pragma once\n\n#include \"tenon/iter/pointwise.h\"\n\nnamespace tenon::pointwise_info {\n\n" +
           declarations_ + "\n}  // namespace tenon::pointwise_info\n";
  }

 private:
  // What an info refers to, in C++, and whether other files refer to it.
  struct Links {
    std::string derivatives = {}, bool_form = {}, without = {}, special = {}, stub = {};
    bool exported = false, derived = false;
  };

  // What runs for special numbers in place of `form`, as data; empty where there is none.
  std::string special(const OpDef& def, const std::vector<Pointwise::Special>& list, const PointwiseForm& of,
                      const std::string& id, const Links& links) {
    std::string rows;
    for (const Pointwise::Special& s : list) {
      const PointwiseForm form = pointwise_form(of, s.text);
      const auto number = std::find(form.scalars.begin(), form.scalars.end(), s.number);
      TENON_CHECK(number != form.scalars.end(), Value,
                  fmt::format("{}: `special`: there is no number `{}`", form.name, s.number));
      const std::string own = fmt::format("{}_special_{}", id, &s - list.data());
      add_info(def, form, own, links);
      rows += fmt::format("{}{{{}, {}, &{}}}", rows.empty() ? "" : ", ", number - form.scalars.begin(),
                          s.value, own);
    }
    if (rows.empty()) return "";
    text_ += fmt::format("constexpr PointwiseSpecial {}_special[] = {{{}}};\n", id, rows);
    return id + "_special";
  }

  void add_form(const OpDef& def, const PointwiseForm& form, const std::string& id, Links links) {
    std::string derivatives;
    if (def.derivative.kind == DerivativeDef::Kind::Expression) {
      for (size_t i = 0; i < form.tensors.size(); ++i)
        derivatives += (i ? ", " : "") + add_gradient(def, form, i, id);
      text_ +=
          fmt::format("constexpr const PointwiseDerivative* {}_derivatives[] = {{{}}};\n", id, derivatives);
      links.derivatives = id + "_derivatives";
    }
    add_info(def, form, id, links);
  }

  std::string add_gradient(const OpDef& def, const PointwiseForm& forward, size_t operand,
                           const std::string& id) {
    const auto gradient = pointwise_gradient(forward, operand);
    if (!gradient) return "nullptr";
    const std::string name = fmt::format("{}_backward_{}", id, forward.tensors[operand].name);
    Links links{.derived = true};
    if (operand == 0)
      links.special = special(def, def.pointwise.special_gradient, gradient->form, name, links);
    add_info(def, gradient->form, name, links);
    text_ +=
        fmt::format("constexpr int8_t {}_tensors[] = {{{}}};\n", name, fmt::join(gradient->tensors, ", "));
    std::string scalars = "{}";
    if (!gradient->scalars.empty()) {
      text_ +=
          fmt::format("constexpr int8_t {}_scalars[] = {{{}}};\n", name, fmt::join(gradient->scalars, ", "));
      scalars = name + "_scalars";
    }
    static constexpr const char* kFactors[] = {"Other", "One", "Number"};
    text_ +=
        fmt::format("constexpr PointwiseDerivative {0}_by{{&{0}, {0}_tensors, {1}, expr::Factor::{2}}};\n",
                    name, scalars, kFactors[static_cast<int>(gradient->factor)]);
    return fmt::format("&{}_by", name);
  }

  // Of maths so light that to convert its operands would cost more, kernels that do so as they go.
  void add_half_kernels(const OpDef& def, const PointwiseForm& form) {
    constexpr size_t kLightNodes = 6;
    if (!form.outputs.empty() || !form.runs_in(Type::F32)) return;
    for (const DType half : {DType::Float16, DType::BFloat16}) {
      expr::ExpressionPtr typed = expr::instantiate_stored(*form.written(), half);
      if (typed->num_nodes - typed->num_inputs - typed->num_numbers <= kLightNodes && is_light(*typed))
        pool_.add_typed(def.operators.front().constant, std::move(typed));
    }
  }
  static bool is_light(const expr::Expression& e) {
    return std::none_of(e.nodes().begin(), e.nodes().end(),
                        [](const expr::Node& n) { return n.op == expr::Op::Call || n.op == expr::Op::Fmod; });
  }

  // For complex operands and numbers.
  void add_complex_kernels(const OpDef& def, const PointwiseForm& form, bool derived, bool to_real) {
    for (const Type type : {Type::F32, Type::F64}) {
      const DType part = expr::dtype(type), whole = complex_dtype(part);
      const std::vector<DType> inputs(form.tensors.size(), whole);
      const DType result = to_real ? part : whole;
      pool_.add_typed(
          def.operators.front().constant,
          expr::instantiate(*form.written(), {.compute = type,
                                              .inputs = inputs,
                                              .results = {&result, 1},
                                              .complex_numbers = (uint64_t{1} << form.scalars.size()) - 1,
                                              .conjugated = derived ? 1u : 0u,
                                              .conjugated_results = derived,
                                              .dense = true}));
    }
  }

  static std::string mask_of(const std::vector<std::string>& names, const std::vector<std::string>& wanted) {
    uint32_t mask = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      for (const std::string& w : wanted) mask |= names[i] == w ? 1u << i : 0u;
    }
    return fmt::format("{:#x}", mask);
  }

  std::string names(const std::string& id, std::string_view what, const std::vector<std::string>& list) {
    if (list.empty()) return "{}";
    std::string items;
    for (const std::string& s : list) items += (items.empty() ? "" : ", ") + quote(s);
    text_ += fmt::format("constexpr const char* {}_{}[] = {{{}}};\n", id, what, items);
    return fmt::format("{}_{}", id, what);
  }

  // The outputs of a form as data; "{}" where it has one new result.
  std::string outputs(const PointwiseForm& form, const std::string& id) {
    if (form.outputs.empty()) return "{}";
    std::string rows;
    for (size_t i = 0; i < form.outputs.size(); ++i) {
      int operand = -1;
      for (size_t t = 0; t < form.tensors.size(); ++t) {
        if (form.tensors[t].name == form.outputs[i]) operand = static_cast<int>(t);
      }
      rows += fmt::format("{}{{{}, {}, {}}}", i ? ", " : "", quote(form.outputs[i]), operand,
                          form.graph.is_mask(form.roots[i]));
    }
    text_ += fmt::format("constexpr PointwiseOutput {}_outputs[] = {{{}}};\n", id, rows);
    return id + "_outputs";
  }

  // "`min` and `max` are both None; give at least one of them"
  static std::string refused_absence(const std::vector<std::string>& names) {
    if (names.empty()) return "";
    std::string list;
    for (size_t i = 0; i < names.size(); ++i)
      list += fmt::format("{}`{}`", i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
    return fmt::format("{} are {} None; give at least one of them", list, names.size() == 2 ? "both" : "all");
  }

  // Bits of those names that are optional arguments.
  static std::string optional_mask(const OpDef& def, const std::vector<std::string>& names) {
    return mask_of(names, optional_operands(def));
  }

  void add_info(const OpDef& def, const PointwiseForm& form, const std::string& id, const Links& links) {
    const bool derived = links.derived;
    std::vector<std::string> tensors, masks;
    for (const expr::Symbol& t : form.tensors) {
      tensors.push_back(t.name);
      if (t.kind == expr::SymbolKind::MaskTensor) masks.push_back(t.name);
    }
    const std::string tensor_names = names(id, "tensor_names", tensors);
    const std::string scalar_names = names(id, "scalar_names", form.scalars);
    const Pointwise& p = def.pointwise;
    const bool to_float = !derived && (p.result == ResultType::Float || p.result == ResultType::RealFloat);
    const bool to_real = !derived && (p.result == ResultType::Real || p.result == ResultType::RealFloat);
    const bool floats_only = derived || to_float;
    if (p.compiled && !form.name.ends_with("_on_bool")) {
      for (const Type type : expr::kComputeTypes) {
        if (!floats_only || expr::is_floating(type)) pool_.add(def.operators.front().constant, form, type);
      }
      if (p.result != ResultType::Bool) add_half_kernels(def, form);
    }
    if (p.compiled_complex) add_complex_kernels(def, form, derived, to_real);
    const expr::ExpressionPtr expression = form.written();
    text_ += expression_data(id, *expression);
    const std::string output_rows = outputs(form, id);
    std::string text = fmt::format("{}const PointwiseInfo {}{{\n    .name = {},\n    .text = {},\n",
                                   links.exported ? "" : "static ", id, quote(form.name), quote(form.text));
    text += fmt::format("    .tensor_names = {},\n    .scalar_names = {},\n", tensor_names, scalar_names);
    text += fmt::format("    .written = &{}_written.head,\n", id);
    const expr::Asks asks = expr::asks_of(*expression);
    text += fmt::format("    .promoting_scalars = {},\n",
                        mask_of(form.scalars, derived ? std::vector<std::string>{} : p.promote));
    if (!derived && !p.nonnegative.empty())
      text += fmt::format("    .nonnegative_scalars = {},\n    .nonnegative_floats = {},\n",
                          mask_of(form.scalars, p.nonnegative),
                          std::ranges::find(p.refused_dtypes, "integral") != p.refused_dtypes.end());
    if (!derived && !p.nonzero.empty())
      text += fmt::format("    .nonzero_scalars = {},\n", mask_of(form.scalars, p.nonzero));
    if (!derived && !p.truncate.empty())
      text += fmt::format("    .truncated_scalars = {},\n", mask_of(form.scalars, p.truncate));
    text += fmt::format("    .mask_tensors = {},\n", mask_of(tensors, masks));
    text += fmt::format(
        "    .compute = ComputeRule::{},\n    .out_rule = OutRule::{},\n    .result = ResultRule::{},\n",
        to_float ? "Float" : "Same", derived ? "Cast" : def.out_dtype,
        !derived && p.result == ResultType::Bool ? "Bool"
        : to_real                                ? "Real"
                                                 : "Compute");
    const std::string asked =
        fmt::format("{}{}", asks.typed_numbers ? "    .numbers_as_computed = false,\n" : "",
                    asks.dtypes ? "    .asks_dtypes = true,\n" : "");
    // Operand 0 of a derivative is `grad`.
    if (derived) text += "    .conjugates = PointwiseInfo::kConjugatedResult | 1u,\n";
    text +=
        fmt::format("    .refused_dtypes = {:#x},\n    .refused_common = {:#x},\n    .refused_reason = {},\n",
                    derived ? 0u : refused_mask(p.refused_dtypes),
                    derived ? 0u : refused_mask(p.refused_common), quote(derived ? "" : p.refused_reason));
    text += asked;
    text += fmt::format("    .derivatives = {},\n    .bool_form = {},\n",
                        links.derivatives.empty() ? "{}" : links.derivatives,
                        links.bool_form.empty() ? "nullptr" : links.bool_form);
    if (!form.outputs.empty()) text += fmt::format("    .outputs = {},\n", output_rows);
    if (!links.special.empty()) text += fmt::format("    .special = {},\n", links.special);
    if (!links.without.empty()) {
      text += fmt::format(
          "    .optional_tensors = {},\n    .optional_scalars = {},\n    .without = {},\n"
          "    .refused_absence = {},\n",
          optional_mask(def, tensors), optional_mask(def, form.scalars), links.without,
          quote(refused_absence(p.at_least_one)));
    }
    if (!links.stub.empty()) text += fmt::format("    .stub = &ops::{}_stub,\n", links.stub);
    text_ += text + "};\n";
    if (links.exported) declarations_ += fmt::format("extern const PointwiseInfo {};\n", id);
  }

  KernelPool& pool_;
  std::string text_, declarations_, stubs_;
};

}  // namespace

std::string expression_data(const std::string& id, const expr::Expression& e) {
  std::string slots, nodes;
  for (const auto& list : {e.inputs(), e.numbers(), e.outputs()}) {
    for (const expr::Slot& s : list) {
      slots += fmt::format(
          "{{DType{{{}}}, expr::Rank{{{}}}, expr::Part{{{}}}, expr::Reduces{{{}}}, {}, {}, {}u, 0u}}, ",
          static_cast<int>(s.dtype), static_cast<int>(s.rank), static_cast<int>(s.part),
          static_cast<int>(s.reduces), s.operand, s.flags, s.node);
    }
  }
  for (const expr::Node& n : e.nodes()) {
    nodes += fmt::format("    {{expr::Op{{{}}}, expr::Type{{{}}}, {}, {}, {{{}u, {}u, {}u}}, {:#x}u}},\n",
                         static_cast<int>(n.op), static_cast<int>(n.type), n.arity, n.flags, n.args[0],
                         n.args[1], n.args[2], n.bits);
  }
  return fmt::format(
      "constexpr expr::ExpressionData<{}, {}> {}_written{{\n"
      "    {{{{{:#x}u, {:#x}u}}, expr::Level::Written, false, {}, {}, {}, {}u, 0u}},\n"
      "    {{{}}},\n    {{\n{}    }}}};\n",
      e.num_inputs + e.num_numbers + e.num_outputs, e.num_nodes, id, e.key.high, e.key.low, e.num_inputs,
      e.num_numbers, e.num_outputs, e.num_nodes, slots, nodes);
}

uint32_t refused_mask(const std::vector<std::string>& words) {
  uint32_t mask = 0;
  for (const DType t : kDTypes) {
    for (const std::string& w : words) {
      const bool hit = w == "floating"   ? is_floating_point(t) || is_complex(t)
                       : w == "integral" ? is_integral(t, false)
                                         : parse_dtype(w) == t;
      mask |= hit ? 1u << static_cast<uint8_t>(t) : 0u;
    }
  }
  return mask;
}

std::vector<GeneratedFile> print_pointwise(const std::vector<OpDef>& defs) {
  KernelPool pool;
  std::vector<GeneratedFile> files;
  std::string all;
  for (const Family& family : families_of(defs)) {
    InfoPrinter printer(pool);
    for (const OpDef* def : family.defs) {
      if (def->body == Body::Expr) printer.add(*def, family);
      if (def->rows && def->rows->compiled) pool.add_rows(*def);
    }
    files.push_back({family.header("pointwise"), printer.header()});
    files.push_back({family.source("pointwise"), printer.file(family)});
    all += fmt::format("#include {}\n", quote(family.header("pointwise")));
  }
  for (GeneratedFile& file : pool.files()) files.push_back(std::move(file));
  files.push_back({"tenon/generated/pointwise_info.h",
                   banner("PointwiseInfo of every `expr` operator.") + "#pragma once\n\n" + all});
  return files;
}

}  // namespace tenon::opgen
