// print_random_kernels FILE: prints the random kernels that printed_kernels_test.cc compares with the
// interpreter. A build-time tool of the tests; see room.cmake.
#include <filesystem>
#include <fstream>

#include "tenon/expr/print_simd.h"
#include "tests/expr/random_expression.h"

int main(int argc, char** argv) {
  using namespace tenon::expr;
  if (argc != 2) return 2;
  std::vector<ExpressionPtr> expressions;
  std::vector<PrintedKernel> kernels;
  for (const Type type : kComputeTypes) {
    for (int i = 0; i < testing::kPrintedPerType; ++i) {
      Builder g;
      const uint64_t seed = testing::printed_seed(type, i);
      expressions.push_back(testing::random_typed(g, testing::random_outputs(g, seed, type), type));
      kernels.push_back({"random_" + std::to_string(seed), expressions.back().get()});
    }
  }
  std::ofstream out(argv[1]);
  out << print_simd_file(kernels, "random_kernels", std::filesystem::path(argv[1]).filename().string());
  return out.good() ? 0 : 1;
}
