#include <fmt/format.h>

#include <algorithm>

#include "tenon/expr/function.h"
#include "tenon/expr/primitives.h"
#include "tenon/expr/print_simd.h"

namespace tenon::expr {

namespace {

// Some 60 small kernels a file: small enough to rebuild and to compile in parallel, large enough that
// Highway's headers are a minor part (docs/decisions/0001-kernel-compile-budget.md).
constexpr size_t kKernelsPerFile = 48;

bool is_narrow(const Primitive& p) {
  if (p.op != Op::Call) return false;
  const Function& f = functions()[p.function];
  return f.narrow || (f.narrow_f64 && p.type == Type::F64);
}

}  // namespace

std::vector<GeneratedFile> print_interpreter_primitives(std::string_view prefix) {
  const auto& all = primitives();
  std::vector<GeneratedFile> files;
  std::string declarations;
  std::vector<std::string> rows(all.size());
  for (const bool narrow : {false, true}) {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_narrow(all[i]) == narrow) chosen.push_back(i);
    }
    const size_t each = narrow ? std::max(chosen.size(), size_t{1}) : kKernelsPerFile;
    for (size_t begin = 0; begin < chosen.size(); begin += each) {
      const std::string table = narrow ? "primitives_narrow" : fmt::format("primitives_{}", files.size());
      std::vector<ExpressionPtr> expressions;
      std::vector<PrintedKernel> kernels;
      for (size_t i = begin; i < std::min(chosen.size(), begin + each); ++i) {
        const Primitive& p = all[chosen[i]];
        const ExpressionPtr& e = expressions.emplace_back(primitive_expression(p));
        kernels.push_back({kernel_name(p), e.get()});
        rows[chosen[i]] = fmt::format("    {{{}, {}}},\n", table, i - begin);
      }
      declarations += fmt::format("extern PointwiseTables {};\n", table);
      const std::string name = fmt::format("{}{}.cc", prefix, table);
      files.push_back(
          {table + ".cc",
           print_simd_file(kernels, table, name, narrow ? "backends/cpu/pointwise/narrow_targets.h" : "")});
    }
  }
  files.push_back(
      {"primitives_table.cc",
       fmt::format(R"(// Printed from the table of ops and functions by the build; edit those instead.
#include "backends/cpu/pointwise/primitive_table.h"

namespace tenon::cpu {{

{}
namespace {{
struct Row {{
  const PointwiseFn* const* tables;
  unsigned index;
}};
const Row kRows[] = {{
{}}};
}}  // namespace

PointwiseFn primitive(unsigned number, CpuTarget target) noexcept {{
  return kRows[number].tables[static_cast<int>(target)][kRows[number].index];
}}

}}  // namespace tenon::cpu
)",
                   declarations, fmt::join(rows, ""))});
  return files;
}

}  // namespace tenon::expr
