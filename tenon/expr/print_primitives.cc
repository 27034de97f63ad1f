#include <fmt/format.h>

#include <algorithm>

#include "tenon/expr/primitives.h"
#include "tenon/expr/print_simd.h"

namespace tenon::expr {

namespace {

// Some 60 small kernels a file: small enough to rebuild and to compile in parallel, large enough that
// Highway's headers are a minor part (docs/decisions/0001-kernel-compile-budget.md).
constexpr size_t kKernelsPerFile = 48;

}  // namespace

std::vector<GeneratedFile> print_interpreter_primitives(std::string_view prefix) {
  const auto& all = primitives();
  std::vector<GeneratedFile> files;
  std::string declarations, rows;
  for (size_t begin = 0; begin < all.size(); begin += kKernelsPerFile) {
    const std::string table = fmt::format("primitives_{}", files.size());
    std::vector<ExpressionPtr> expressions;
    std::vector<PrintedKernel> kernels;
    for (size_t i = begin; i < std::min(all.size(), begin + kKernelsPerFile); ++i) {
      const ExpressionPtr& e = expressions.emplace_back(primitive_expression(all[i]));
      kernels.push_back({kernel_name(all[i]), e.get()});
      rows += fmt::format("    {{{}, {}}},\n", table, i - begin);
    }
    declarations += fmt::format("extern PointwiseTables {};\n", table);
    files.push_back({table + ".cc", print_simd_file(kernels, table, fmt::format("{}{}.cc", prefix, table))});
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
                   declarations, rows)});
  return files;
}

}  // namespace tenon::expr
