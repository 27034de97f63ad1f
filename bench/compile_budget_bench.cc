// compile_budget_bench SOURCE_ROOT: what printed kernels cost the build. Prints files of more and more
// kernels, compiles each and tells processor seconds, peak memory and object size. Figures in
// docs/decisions/0001.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/print_simd.h"

namespace {

using namespace tenon::expr;

// A mixture like that of the operators: arithmetic, comparisons, activations and their derivatives.
constexpr std::string_view kTexts[] = {"x + y",
                                       "x - s * y",
                                       "x * y",
                                       "where(x > y, x, y)",
                                       "abs(x)",
                                       "x == y",
                                       "sign(x) * s",
                                       "max(x, s)",
                                       "x / y",
                                       "exp(x)",
                                       "log(x)",
                                       "tanh(x)",
                                       "sigmoid(x)",
                                       "x * sigmoid(x)",
                                       "let t = sigmoid(x); y * (t + x * t * (1 - t))",
                                       "pow(x, y)",
                                       "sqrt(x)",
                                       "0.5 * x * (1 + erf(x * 0.7071067811865476))",
                                       "where(x > 0, x, s * expm1(x))",
                                       "softplus(x)",
                                       "y * (1 - x * x)",
                                       "1 / x",
                                       "sin(x)",
                                       "x * tanh(softplus(x))"};

std::string print(size_t count) {
  std::vector<ExpressionPtr> expressions;
  std::vector<PrintedKernel> kernels;
  for (size_t i = 0; kernels.size() < count; ++i) {
    Builder g;
    const Symbol symbols[] = {
        {"x", SymbolKind::Tensor}, {"y", SymbolKind::Tensor}, {"s", SymbolKind::Scalar}};
    const NodeId root = parse(g, kTexts[i / 4 % std::size(kTexts)], symbols);
    const Type type = kComputeTypes[i % 4];
    if (!is_floating(type) && !runs_on_integers(g, root)) continue;
    expressions.push_back(instantiate(*g.finish({root}), {.compute = type}));
    kernels.push_back({"k" + std::to_string(i), expressions.back().get()});
  }
  return print_simd_file(kernels, "budget", "budget.cc");
}

double processor_seconds(const rusage& u) {
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: compile_budget_bench SOURCE_ROOT\n");
    return 2;
  }
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tenon_compile_budget";
  std::filesystem::create_directories(folder);
  const char* compiler = std::getenv("CXX");
  const std::string command = std::string(compiler != nullptr ? compiler : "c++") +
                              " -std=c++20 -O2 -DNDEBUG -ffp-contract=off -fno-math-errno -fPIC -I" +
                              argv[1] + " -I" + folder.string() + " -c " + (folder / "budget.cc").string() +
                              " -o " + (folder / "budget.o").string();
  std::printf("%8s %8s %10s %10s %12s\n", "kernels", "s", "ms/kernel", "object KB", "peak MB");
  for (const size_t count : {1, 24, 48, 96, 192}) {
    std::ofstream(folder / "budget.cc") << print(count);
    rusage before{}, after{};
    getrusage(RUSAGE_CHILDREN, &before);
    if (std::system(command.c_str()) != 0) return 1;
    getrusage(RUSAGE_CHILDREN, &after);
    const double seconds = processor_seconds(after) - processor_seconds(before);
    std::printf("%8zu %8.2f %10.0f %10.0f %12.0f\n", count, seconds,
                1000 * seconds / static_cast<double>(count),
                static_cast<double>(std::filesystem::file_size(folder / "budget.o")) / 1024,
                static_cast<double>(after.ru_maxrss) / 1024);
  }
  std::filesystem::remove_all(folder);
}
