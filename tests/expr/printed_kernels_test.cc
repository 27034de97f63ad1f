// Kernels printed as SIMD C++ give the bits of the tile interpreter for the same expression, on every
// instruction set. room.cmake has them compiled; without it there is nothing to compare.
#ifdef TENON_RANDOM_KERNELS
#include <gtest/gtest.h>

#include "backends/cpu/pointwise/interpreter.h"
#include "tests/expr/random_expression.h"

namespace tenon::cpu {

extern PointwiseTables random_kernels;

namespace {

using namespace expr::testing;
using expr::Type;

template <class T>
void compare(Type type) {
  for (int i = 0; i < kPrintedPerType; ++i) {
    expr::Builder g;
    const uint64_t seed = printed_seed(type, i);
    const std::vector<expr::NodeId> outputs = random_outputs(g, seed, type);
    const Program program(*random_typed(g, outputs, type));
    for (const size_t n : {size_t{1}, size_t{5}, size_t{64}, size_t{333}}) {
      const std::vector<T> x = random_values<T>(n, seed), y = random_values<T>(n, seed + 1),
                           m = random_values<T>(n, seed + 2);
      const uint64_t s = as_number(random_values<T>(1, seed + 3)[0]);
      for (const CpuTarget target : supported_cpu_targets()) {
        std::vector<T> printed[2] = {std::vector<T>(n), std::vector<T>(n)},
                       interpreted[2] = {printed[0], printed[1]};
        const auto run = [&](auto& out, const auto& kernel) {
          void* ptrs[] = {out[0].data(), out[1].data(), const_cast<T*>(x.data()), const_cast<T*>(y.data()),
                          const_cast<T*>(m.data())};
          kernel(ptrs);
        };
        const size_t index =
            static_cast<size_t>(compute_index(type)) * kPrintedPerType + static_cast<size_t>(i);
        run(printed, [&](void** ptrs) { random_kernels[static_cast<int>(target)][index](ptrs, n, &s); });
        run(interpreted, [&](void** ptrs) { program.run(ptrs, n, &s, target); });
        for (size_t o = 0; o < 2; ++o) {
          for (size_t e = 0; e < n; ++e) {
            ASSERT_TRUE(same_bits(printed[o][e], interpreted[o][e]))
                << name(target) << " " << expr::name(type) << " seed " << seed << " element " << e << ": "
                << printed[o][e] << " printed, " << interpreted[o][e] << " interpreted\n"
                << to_string(g, outputs[o]);
          }
        }
      }
    }
  }
}

TEST(PrintedKernels, HaveTheBitsOfTheInterpreterFloat32) { compare<float>(Type::F32); }
TEST(PrintedKernels, HaveTheBitsOfTheInterpreterFloat64) { compare<double>(Type::F64); }
TEST(PrintedKernels, HaveTheBitsOfTheInterpreterInt32) { compare<int32_t>(Type::I32); }
TEST(PrintedKernels, HaveTheBitsOfTheInterpreterInt64) { compare<int64_t>(Type::I64); }

}  // namespace
}  // namespace tenon::cpu
#endif
