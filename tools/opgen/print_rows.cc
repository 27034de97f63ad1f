// Row operators as constant data, and their shape functions and bodies, which hand the arguments on.
#include <fmt/format.h>

#include "tools/opgen/printers.h"
#include "tools/opgen/rows_forms.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

using schema::BaseType;

std::string name_list(const std::string& id, std::string_view what, const std::vector<std::string>& list,
                      std::string& out) {
  if (list.empty()) return "{}";
  std::string items;
  for (const std::string& s : list) items += (items.empty() ? "" : ", ") + quote(s);
  out += fmt::format("constexpr const char* {}_{}[] = {{{}}};\n", id, what, items);
  return fmt::format("{}_{}", id, what);
}

std::string_view role_of(const Rows& r, const schema::Argument& a) {
  if (a.name == "keepdim") return "KeepDim";
  if (a.name == r.dtype) return "DType";
  if (a.name == r.float32_when) return "Float32When";
  if (a.name == r.dims) return "Dims";
  if (is_rows_setting(r, a)) return "Other";
  return a.type.base == BaseType::Tensor ? "Tensor" : "Number";
}

std::string info_of(const OpDef& def) {
  const RowsForm form = rows_form(def);
  const Rows& r = *def.rows;
  const std::string id = def.operators.front().constant;
  std::vector<std::string> tensors;
  for (const expr::Symbol& t : form.tensors) tensors.push_back(t.name);
  std::string text = expression_data(id, *form.written());
  const std::string tensor_names = name_list(id, "tensor_names", tensors, text);
  const std::string scalar_names = name_list(id, "scalar_names", form.scalars, text);
  const std::string name = r.name.empty() ? def.schema().name : r.name;
  std::string roles;
  for (const schema::Argument& a : def.schema().arguments)
    roles += fmt::format("{}RowsInfo::Role::{}", roles.empty() ? "" : ", ", role_of(r, a));
  text += fmt::format("constexpr RowsInfo::Role {}_roles[] = {{{}}};\n", id, roles);
  return text +
         fmt::format(
             "const RowsInfo {}{{\n    .name = {},\n    .text = {},\n    .tensor_names = {},\n"
             "    .scalar_names = {},\n    .written = &{}_written.head,\n    .over = RowsInfo::Over::{},\n"
             "    .keepdim = {},\n    .needs_elements = {},\n    .mixed = {},\n    .complex = {},\n"
             "    .computes = RowsInfo::Computes::{},\n"
             "    .refused_dtypes = {:#x},\n    .refused_reason = {},\n    .roles = {}_roles}};\n",
             id, quote(name), quote(form.text), tensor_names, scalar_names, id, r.over, r.keepdim,
             r.needs_elements, r.mixed, r.complex, r.computes, refused_mask(r.refused_dtypes),
             quote(r.refused_reason), id);
}

// The arguments as rows_shape and rows_run take them: declarations, then the RowsArguments.
std::string arguments_of(const OpDef& def, std::string& declarations) {
  const Rows& r = *def.rows;
  std::string tensors, numbers, settings;
  for (const schema::Argument& a : def.schema().arguments) {
    const std::string name = schema::cpp_name(a);
    if (a.name == "keepdim") settings += ", .keepdim = " + name;
    if (a.name == r.dtype) settings += ", .dtype = " + name;
    if (a.name == r.float32_when)
      settings += fmt::format(", .dtype = {} ? std::optional<DType>(DType::Float32) : std::nullopt", name);
    if (is_rows_setting(r, a)) continue;
    if (a.type.base == BaseType::Tensor) {
      tensors += (tensors.empty() ? "" : ", ") + name;
    } else {
      const std::string separator = numbers.empty() ? "" : ", ";
      numbers +=
          separator + (a.type.optional ? fmt::format("{0} ? std::optional<Scalar>(*{0}) : std::nullopt", name)
                                       : fmt::format("std::optional<Scalar>({})", name));
    }
  }
  declarations += fmt::format("  const HeaderRef tensors[] = {{{}}};\n", tensors);
  if (!numbers.empty())
    declarations += fmt::format("  const std::optional<Scalar> numbers[] = {{{}}};\n", numbers);
  std::string dims;
  for (const schema::Argument& a : def.schema().arguments) {
    if (a.name == r.dims) dims = fmt::format(", .dims = ops::rows_dims({})", schema::cpp_name(a));
  }
  return fmt::format("{{.tensors = tensors{}{}{}}}", numbers.empty() ? "" : ", .numbers = numbers", dims,
                     settings);
}

std::string parameters(const OpDef& def, bool shape) {
  if (!shape) return kernel_parameters(def.schema(), true);
  std::string text = "OutputSpecs& out";
  for (const schema::Argument& a : def.schema().arguments)
    text += fmt::format(", {} {}", shape_type(a), schema::cpp_name(a));
  return text;
}

}  // namespace

std::vector<const OpDef*> rows_of(const Family& family) {
  std::vector<const OpDef*> list;
  for (const OpDef* def : family.defs) {
    if (def->rows) list.push_back(def);
  }
  return list;
}

std::string rows_data(const Family& family) {
  std::string text;
  for (const OpDef* def : rows_of(family)) text += info_of(*def);
  if (text.empty()) return "";
  std::string declarations;
  for (const OpDef* def : rows_of(family))
    declarations += fmt::format("extern const RowsInfo {};\n", def->operators.front().constant);
  return "\nnamespace tenon::rows_info {\n\n" + declarations + text + "\n}  // namespace tenon::rows_info\n";
}

std::string rows_functions(const OpDef& def) {
  const std::string id = def.operators.front().constant;
  std::string declarations;
  const std::string arguments = arguments_of(def, declarations);
  std::string operands, results;
  for (const schema::Argument& a : def.schema().arguments) {
    if (a.type.base == BaseType::Tensor)
      operands += fmt::format("{}&{}", operands.empty() ? "" : ", ", schema::cpp_name(a));
  }
  const size_t count = def.schema().returns.size();
  for (size_t i = 0; i < count; ++i)
    results += count == 1 ? std::string("&out") : fmt::format("{}&out{}", i ? ", " : "", i);
  return fmt::format(
      "void {0}_rows_shape({1}) {{\n{2}  ops::rows_shape(rows_info::{0}, {3}, out);\n}}\n"
      "void {0}_rows_body({4}) {{\n{2}  const Tensor* operands[] = {{{5}}};\n  Tensor* results[] = {{{6}}};\n"
      "  ops::rows_run(rows_info::{0}, {3}, operands, results);\n}}\n",
      id, parameters(def, true), declarations, arguments, parameters(def, false), operands, results);
}

}  // namespace tenon::opgen
