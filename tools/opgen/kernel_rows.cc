#include "tools/opgen/kernel_rows.h"

#include <fmt/format.h>

#include <map>

namespace tenon::opgen {

std::vector<std::vector<KernelRow>> group_by_signature(const std::vector<KernelRow>& rows, size_t count) {
  std::map<std::string, std::vector<KernelRow>> groups;
  for (const KernelRow& row : rows) groups[row.signature].push_back(row);
  std::vector<std::vector<KernelRow>> parts(count);
  size_t i = 0;
  for (auto& [signature, group] : groups) {
    auto& part = parts[i++ * count / groups.size()];
    part.insert(part.end(), group.begin(), group.end());
  }
  return parts;
}

std::string print_rows(const std::vector<KernelRow>& rows, const std::string& name) {
  std::string text = fmt::format("extern const std::span<const BuiltinKernel> {};\n", name);
  if (rows.empty()) return text + fmt::format("const std::span<const BuiltinKernel> {};\n", name);
  std::string bodies, table;
  size_t count = 0;
  for (const KernelRow& r : rows) {
    std::string data = r.data;
    if (!r.body.empty()) {
      data = fmt::format("&{}_bodies[{}]", name, count++);
      bodies += fmt::format("    {},\n", r.body);
    }
    table += fmt::format("    {{{}, {}, &{}, {}{}}},\n", r.op, r.key, r.maker, data,
                         r.probe.empty() ? "" : ", " + r.probe);
  }
  if (count > 0) text += fmt::format("static const BuiltinFunction {}_bodies[] = {{\n{}}};\n", name, bodies);
  text += fmt::format("static const BuiltinKernel {}_rows[] = {{\n{}", name, table);
  return text + fmt::format("}};\nconst std::span<const BuiltinKernel> {0} = {0}_rows;\n", name);
}

}  // namespace tenon::opgen
