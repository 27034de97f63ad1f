// print_random_kernels FILE: prints the random kernels that printed_kernels_test.cc compares with the
// interpreter. A build-time tool of the tests; see room.cmake.
#include <deque>
#include <filesystem>
#include <fstream>

#include "tenon/expr/print_simd.h"
#include "tests/expr/random_expression.h"

int main(int argc, char** argv) {
  using namespace tenon::expr;
  if (argc != 2) return 2;
  std::deque<Graph> graphs;
  std::vector<PrintedKernel> kernels;
  for (const ComputeType type : kComputeTypes) {
    for (int i = 0; i < testing::kPrintedPerType; ++i) {
      Graph& g = graphs.emplace_back();
      kernels.push_back({&g, testing::random_kernel(g, testing::printed_seed(type, i), type)});
    }
  }
  std::ofstream out(argv[1]);
  out << print_simd_file(kernels, "random_kernels", std::filesystem::path(argv[1]).filename().string());
  return out.good() ? 0 : 1;
}
