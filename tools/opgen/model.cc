#include "tools/opgen/model.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tenon/core/error.h"
#include "tools/opgen/check.h"
#include "tools/opgen/rows_forms.h"
#include "tools/opgen/schema_forms.h"
#include "tools/opgen/text.h"
#include "tools/opgen/yaml_fields.h"

namespace tenon::opgen {

namespace {

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

void read_pointwise(YamlEntry& entry, OpDef& def) {
  Pointwise& p = def.pointwise;
  p.text = entry.text("expr");
  p.outputs = entry.pairs("outputs");
  p.at_least_one = entry.list("at_least_one");
  p.bool_text = entry.text("bool_expr");
  const std::string result = entry.has("result") ? entry.text("result") : "same";
  if (!is_one_of(result, {"same", "float", "bool", "real", "real_float"})) {
    entry.fail_in("result", fmt::format("expected same, float, bool, real or real_float, got '{}'", result));
  }
  p.result = result == "float"        ? ResultType::Float
             : result == "bool"       ? ResultType::Bool
             : result == "real"       ? ResultType::Real
             : result == "real_float" ? ResultType::RealFloat
                                      : ResultType::Same;
  p.promote = entry.list("promote");
  p.nonnegative = entry.list("nonnegative");
  p.nonzero = entry.list("nonzero");
  p.truncate = entry.list("truncate");
  p.masks = entry.list("masks");
  p.compiled = entry.flag("compiled", true);
  p.compiled_complex = entry.flag("compiled_complex", false);
  const auto specials = [&](const char* field) {
    std::vector<Pointwise::Special> list;
    for (const auto& [when, text] : entry.pairs(field)) {
      const size_t equals = when.find(" == ");
      if (equals == std::string::npos) entry.fail_in(field, "expected `number == value: expression`");
      list.push_back({when.substr(0, equals), std::stod(when.substr(equals + 4)), text});
    }
    return list;
  };
  p.special = specials("special");
  p.special_gradient = specials("special_gradient");
  if (entry.has("refuse")) {
    YamlEntry refuse = entry.nested("refuse");
    p.refused_dtypes = refuse.list("dtypes");
    p.refused_common = refuse.list("common");
    p.refused_reason = refuse.text("reason");
    refuse.refuse_unknown_fields();
  }
}

// The dimensions of an entry's rows: an argument, or a rule over a list of sizes, or a fixed rule.
void read_over(YamlEntry& rows, Rows& r) {
  const std::string over = rows.required_text("over");
  const size_t open = over.find('(');
  const std::string word = over.substr(0, open);
  if (open != std::string::npos && over.back() == ')') r.dims = over.substr(open + 1, over.size() - open - 2);
  if (word == "all" || word == "channels") {
    r.over = word == "all" ? "All" : "Channels";
  } else if ((word == "last" || word == "leading") && !r.dims.empty()) {
    r.over = word == "last" ? "Last" : "Leading";
  } else if (open == std::string::npos) {
    r.over = "Dims";
    r.dims = over;
  } else {
    rows.fail_in("over",
                 fmt::format("expected all, channels, last(ARGUMENT), leading(ARGUMENT) or an argument "
                             "of dimensions, got '{}'",
                             over));
  }
}

void read_rows(YamlEntry& entry, OpDef& def) {
  Rows r;
  r.text = entry.text("expr");
  if (entry.has("outputs")) r.outputs = entry.pairs("outputs");
  YamlEntry rows = entry.nested("rows");
  read_over(rows, r);
  r.name = rows.text("name");
  r.of_rows = rows.list("of_rows");
  r.index = rows.list("index");
  r.keepdim = rows.flag("keepdim", false);
  r.needs_elements = rows.flag("needs_elements", false);
  r.mixed = rows.flag("mixed", false);
  r.compiled = rows.flag("compiled", false);
  r.complex = rows.flag("complex", false);
  r.float32_when = rows.text("float32_when");
  r.dtype = rows.text("dtype");
  rows.refuse_unknown_fields();
  r.masks = entry.list("masks");
  const std::string result = entry.has("result") ? entry.text("result") : "same";
  if (!is_one_of(result, {"same", "float", "sum", "mean"}))
    entry.fail_in("result", fmt::format("expected same, float, sum or mean, got '{}'", result));
  r.computes = static_cast<char>(std::toupper(result[0])) + result.substr(1);
  if (entry.has("refuse")) {
    YamlEntry refuse = entry.nested("refuse");
    r.refused_dtypes = refuse.list("dtypes");
    r.refused_reason = refuse.text("reason");
    refuse.refuse_unknown_fields();
  }
  def.body = Body::Structured;
  def.rows = std::move(r);
  def.stubs = {"rows"};
}

void read_body(YamlEntry& entry, OpDef& def) {
  def.crosses_devices = entry.flag("crosses_devices", false);
  def.mixed_devices = entry.flag("mixed_devices", false);
  if (entry.has("out_dtype")) {
    const std::string rule = entry.text("out_dtype");
    if (!is_one_of(rule, {"same", "same_or_uint8"}))
      entry.fail_in("out_dtype", fmt::format("expected same or same_or_uint8, got '{}'", rule));
    def.out_dtype = rule == "same" ? "Same" : "SameOrUInt8";
  }
  constexpr const char* kBodies[] = {"expr", "shape", "view", "explicit", "composite", "dispatch"};
  int bodies = 0;
  for (const char* field : kBodies) bodies += entry.has(field);
  bodies += entry.has("outputs") && !entry.has("expr");
  if (bodies != 1) {
    entry.fail(
        fmt::format("expected exactly one body, got {}: expr, outputs, shape (with kernel, body or update), "
                    "view, explicit, "
                    "composite or dispatch",
                    bodies));
  }
  if (entry.has("rows")) {
    read_rows(entry, def);
  } else if (entry.has("expr") || entry.has("outputs")) {
    def.body = Body::Expr;
    read_pointwise(entry, def);
  } else if (entry.has("shape")) {
    def.body = Body::Structured;
    def.shape = entry.text("shape");
    def.kernel = entry.text("kernel");
    def.function = entry.text("body");
    const std::string update = entry.text("update");
    if (!def.kernel.empty() + !def.function.empty() + !update.empty() != 1)
      entry.fail_in("shape", "expected one of `kernel` and `body` beside it, or `update`");
    if (!update.empty()) {
      def.updates = true;
      def.function = update;
    }
    if (!def.function.empty()) def.stubs = entry.list("stubs");
  } else if (entry.has("view")) {
    def.body = Body::View;
    def.function = entry.text("view");
  } else if (entry.has("explicit")) {
    def.body = Body::Explicit;
    if (entry.is_text("explicit"))
      entry.fail_in("explicit", "expected {function: ..., reason: ...}: why there is no `shape` for it");
    YamlEntry body = entry.nested("explicit");
    def.function = body.required_text("function");
    def.reason = body.required_text("reason");
    def.undeclared_alias = body.flag("undeclared_alias", false);
    body.refuse_unknown_fields();
    def.stubs = entry.list("stubs");
  } else if (entry.has("composite")) {
    def.body = Body::Composite;
    def.function = entry.text("composite");
  } else {
    def.body = Body::Dispatch;
    for (auto& [key, function] : entry.pairs("dispatch")) def.dispatch[key] = function;
  }
}

void read_traits(YamlEntry& entry, OpDef& def) {
  Traits& t = def.traits;
  // An index out of range.
  t.value_errors = def.rows && !def.rows->index.empty();
  if (def.body == Body::Expr) t.tags.add(Tag::pointwise);
  for (const std::string& name : entry.list("tags")) {
    try {
      t.tags.add(parse_tag(name));
    } catch (const Error& e) {
      entry.fail_in("tags", e.what());
    }
  }
  if (!entry.has("traits")) return;
  YamlEntry traits = entry.nested("traits");
  t.writes_only = traits.list("writes_only");
  t.equals = traits.text("equals");
  if (traits.is_text("anchor")) {
    t.convolution = traits.text("anchor") == "convolution";
    if (!t.convolution) traits.fail_in("anchor", "expected convolution, or { matmul: LEFT MATRIX }");
  } else if (traits.has("anchor")) {
    YamlEntry anchor = traits.nested("anchor");
    t.matmul = anchor.required_text("matmul");
    anchor.refuse_unknown_fields();
  }
  t.draws_unless_zero = traits.text("draws_unless_zero");
  t.value_errors = traits.flag("value_errors", t.value_errors);
  t.shape_numbers = traits.flag("shape_numbers", false);
  t.uninitialized = traits.flag("uninitialized", false);
  traits.refuse_unknown_fields();
}

void read_derivative(YamlEntry& entry, OpDef& def) {
  DerivativeDef& d = def.derivative;
  d.output_differentiability = entry.flags("output_differentiability");
  d.optional_grads = entry.flags("optional_grads");
  if (!entry.has("derivative")) {
    const bool one = def.body == Body::Expr && def.pointwise.outputs.empty();
    d.kind = one ? DerivativeDef::Kind::Expression : DerivativeDef::Kind::Absent;
    if (def.body == Body::Expr && def.pointwise.result == ResultType::Bool)
      d.kind = DerivativeDef::Kind::None;
  } else if (entry.is_text("derivative")) {
    if (entry.text("derivative") != "none")
      entry.fail_in("derivative", "expected `none` or a mapping from arguments to C++");
    d.kind = DerivativeDef::Kind::None;
  } else {
    d.kind = DerivativeDef::Kind::Formulas;
    d.formulas = entry.pairs("derivative");
  }
}

/// What all forms of an entry have in common.
struct FormFields {
  std::vector<std::string> aliases, cpp_no_default;
};

void add_operator(OpDef& def, const FormFields& fields, FunctionSchema schema, bool function, bool method) {
  schema.ns = "aten";
  Operator op;
  const bool made_inplace = !def.operators.empty() && form_of(schema) == Form::Inplace;
  op.cpp_no_default = fields.cpp_no_default;
  for (const std::string& alias : fields.aliases) op.aliases.push_back(alias + (made_inplace ? "_" : ""));
  op.form = form_of(schema);
  op.constant = schema.name + (schema.overload.empty() ? "" : "_" + schema.overload);
  op.function = function;
  op.method = method;
  op.schema = std::move(schema);
  def.operators.push_back(std::move(op));
}

OpDef read_entry(YamlEntry& entry, const std::string& file) {
  OpDef def;
  def.file = file;
  def.line = entry.line();
  FunctionSchema schema;
  try {
    schema = schema::parse_schema(entry.required_text("schema"));
  } catch (const Error& e) {
    entry.fail_in("schema", e.what());
  }
  read_body(entry, def);
  read_traits(entry, def);
  read_derivative(entry, def);
  def.doc = entry.text("doc");
  def.example = entry.text("example");
  def.python = entry.flag("python", true);
  def.python_name = entry.text("python_name");

  std::vector<std::string> variants = entry.list("variants");
  if (variants.empty()) variants = {form_of(schema) == Form::Inplace ? "method" : "function"};
  for (const std::string& v : variants) {
    if (!is_one_of(v, {"function", "method", "inplace", "inplace_function", "out"})) {
      entry.fail_in("variants",
                    fmt::format("expected function, method, inplace, inplace_function or out, got '{}'", v));
    }
  }
  const auto wants = [&](const char* v) {
    return std::find(variants.begin(), variants.end(), v) != variants.end();
  };
  if (wants("method")) {
    const auto self = schema.argument_index("self");
    if (!self || !schema.arguments[*self].type.is_tensor())
      entry.fail_in("variants", "a method needs an argument `Tensor self`");
  }
  const bool hand_written = def.body != Body::Expr && def.body != Body::Structured;
  if (hand_written &&
      (wants("inplace") || (wants("out") && def.body != Body::Explicit && def.body != Body::Composite))) {
    entry.fail_in(
        "variants",
        "an in-place form is made for `expr` and `shape` entries only, an out form also for `explicit` "
        "and `composite`; write an entry with its schema");
  }
  const std::string inplace_overload = entry.text("inplace_overload");
  const std::string out_overload = entry.text("out_overload");
  const std::vector<std::string> out_names = entry.list("out_names");
  const FormFields fields{entry.list("aliases"), entry.list("cpp_no_default")};
  try {
    add_operator(def, fields, schema, wants("function"), wants("method"));
    // As in PyTorch, functions of one tensor have an in-place form that is a function: relu_(x).
    if (wants("inplace")) {
      const bool unary = wants("function") && schema.arguments.size() == 1;
      add_operator(def, fields, inplace_form(schema, inplace_overload), unary || wants("inplace_function"),
                   true);
    }
    if (wants("out")) add_operator(def, fields, out_form(schema, out_overload, out_names), true, false);
  } catch (const Error& e) {
    entry.fail_in("variants", e.what());
  }
  entry.refuse_unknown_fields();
  const auto take_cpp = [&](std::string& function, std::string& cpp, const char* suffix) {
    if (std::all_of(function.begin(), function.end(), is_word)) return;
    cpp = std::move(function);
    function = def.operators.front().constant + suffix;
  };
  take_cpp(def.function, def.cpp, "_body");
  take_cpp(def.shape, def.shape_cpp, "_shape");
  check_entry(def, entry);
  if (def.rows && is_plain_reduction(def)) def.stubs = {"reduce"};
  return def;
}

void read_text(const std::string& yaml, const std::string& file, std::vector<OpDef>& defs) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& e) {
    throw_error(ErrorKind::Value, fmt::format("{}:{}: {}", file, e.mark.line + 1, e.msg));
  }
  if (root.IsNull()) return;
  TENON_CHECK(root.IsSequence(), Value, fmt::format("{}:1: expected a list of entries", file));
  const std::string base = std::filesystem::path(file).filename().string();
  std::vector<std::string> includes;
  for (const YAML::Node& node : root) {
    YamlEntry entry(node, file);
    if (entry.has("include")) {
      includes.push_back(entry.text("include"));
      entry.refuse_unknown_fields();
      continue;
    }
    defs.push_back(read_entry(entry, base));
    defs.back().includes = includes;
  }
}

void number_operators(std::vector<OpDef>& defs) {
  std::map<std::string, const OpDef*> seen;
  size_t index = 0;
  std::string file;
  for (OpDef& def : defs) {
    if (def.file != file) index = 0;
    file = def.file;
    for (Operator& op : def.operators) {
      op.index = index++;
      const auto [first, inserted] = seen.emplace(op.schema.full_name(), &def);
      TENON_CHECK(inserted, Value,
                  fmt::format("{}: {} is declared already at {}", def.where(), op.schema.full_name(),
                              first->second->where()));
    }
  }
}

}  // namespace

std::vector<OpDef> parse_operators(const std::string& yaml, const std::string& file) {
  std::vector<OpDef> defs;
  read_text(yaml, file, defs);
  number_operators(defs);
  return defs;
}

std::vector<OpDef> read_operators(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (item.path().extension() == ".yaml") files.push_back(item.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<OpDef> defs;
  for (const auto& path : files) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const size_t before = defs.size();
    read_text(text.str(), path.string(), defs);
    // The build names the generated files after the YAML files.
    TENON_CHECK(defs.size() > before, Value, fmt::format("{}:1: no entries", path.string()));
    const std::string family = path.stem().string();
    TENON_CHECK(std::ranges::all_of(family,
                                    [](char c) {
                                      return std::islower(static_cast<unsigned char>(c)) ||
                                             std::isdigit(static_cast<unsigned char>(c)) || c == '_';
                                    }),
                Value,
                fmt::format("{}:1: the file's name is part of C++ names; letters a to z, digits and _ alone",
                            path.string()));
  }
  number_operators(defs);
  return defs;
}

size_t count_operators(const std::vector<OpDef>& defs) {
  size_t n = 0;
  for (const OpDef& def : defs) n += def.operators.size();
  return n;
}

std::string full_name(const FunctionSchema& schema) { return schema.full_name(); }

std::string signature(const FunctionSchema& schema) {
  std::string text = schema::cpp_return_type(schema) + "(";
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    text += (i ? ", " : "") + schema::cpp_type(schema.arguments[i]);
  }
  return text + ")";
}

std::optional<size_t> options_position(const FunctionSchema& schema) {
  constexpr const char* kRun[] = {"dtype", "layout", "device", "pin_memory"};
  const std::optional<size_t> first = schema.argument_index("dtype");
  if (!first || *first + 4 > schema.arguments.size()) return std::nullopt;
  for (size_t i = 0; i < 4; ++i) {
    const schema::Argument& a = schema.arguments[*first + i];
    if (a.name != kRun[i] || !a.type.optional) return std::nullopt;
  }
  return first;
}

bool OpDef::takes_options_of_out(const Operator& op) const {
  return op.form == Form::Out && options_position(schema()).has_value();
}

bool is_factory(const FunctionSchema& schema) {
  bool device = false;
  for (const schema::Argument& a : schema.arguments) {
    if (a.type.base == schema::BaseType::Tensor) return false;
    device |= a.type.base == schema::BaseType::Device && a.type.optional;
  }
  return device;
}

}  // namespace tenon::opgen
