// Kernels printed as SIMD C++ and the tile interpreter give the evaluator's bits for the same expression, on
// every instruction set. room.cmake has them compiled; without it there is nothing to compare.
#ifdef TENON_RANDOM_KERNELS
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/evaluator.h"
#include "tests/expr/random_typed.h"

namespace tenon::cpu {

extern PointwiseTables random_kernels;

namespace {

using namespace expr::testing;
using expr::Type;

using Bytes = std::vector<unsigned char>;
constexpr int kBehind = 64;  // bytes behind an output: a vector of any target

void compare(Type type) {
  const DType d = dtype(type);
  const size_t item = item_size(d);
  for (int i = 0; i < kPrintedPerType; ++i) {
    expr::Builder g;
    const uint64_t seed = printed_seed(type, i);
    const std::vector<expr::NodeId> outputs = random_outputs(g, seed, type);
    const expr::ExpressionPtr e = random_typed(g, outputs, type);
    const Program program(*e);
    for (const size_t n : {size_t{1}, size_t{5}, size_t{64}, size_t{333}}) {
      const Bytes operands[] = {random_elements(d, n, seed), random_elements(d, n, seed + 1),
                                random_elements(d, n, seed + 2)};
      uint64_t s = 0;
      std::memcpy(&s, random_elements(d, 1, seed + 3).data(), item);
      Bytes want[2] = {Bytes(n * item), Bytes(n * item)}, repeated[2] = {want[0], want[1]};
      for (size_t at = 0; at < n * item; at += item) {
        const void* in[] = {&operands[0][at], &operands[1][at], &operands[2][at]};
        void* out[] = {&want[0][at], &want[1][at]};
        evaluate(*e, in, &s, out);
        in[0] = &operands[0][0];
        void* again[] = {&repeated[0][at], &repeated[1][at]};
        evaluate(*e, in, &s, again);
      }
      for (const CpuTarget target : supported_cpu_targets()) {
        const auto run = [&](std::string_view what, const auto& kernel) {
          Bytes in[] = {operands[0], operands[1], operands[2]}, got[2];
          for (Bytes& bytes : got) bytes.assign(n * item + kBehind, 0xA5);
          void* ptrs[] = {got[0].data(), got[1].data(), in[0].data(), in[1].data(), in[2].data()};
          kernel(ptrs);
          for (size_t o = 0; o < 2; ++o) {
            for (size_t at = 0; at < n * item; at += item) {
              ASSERT_TRUE(same_element(&got[o][at], &want[o][at], d))
                  << what << " on " << name(target) << ", " << expr::name(type) << " seed " << seed
                  << ", output " << o << ", element " << at / item << "\n"
                  << to_string(g, outputs[o]);
            }
            ASSERT_TRUE(std::all_of(got[o].end() - kBehind, got[o].end(), [](auto b) { return b == 0xA5; }))
                << what << " on " << name(target) << " writes behind " << n << " elements";
          }
        };
        const size_t index =
            static_cast<size_t>(compute_index(type)) * kPrintedPerType + static_cast<size_t>(i);
        run("printed", [&](void** ptrs) { random_kernels[static_cast<int>(target)][index](ptrs, n, &s, 0); });
        run("interpreted", [&](void** ptrs) { program.run(ptrs, n, &s, target); });
        // The first operand is one element for all.
        std::swap(want[0], repeated[0]);
        std::swap(want[1], repeated[1]);
        run("repeated", [&](void** ptrs) {
          alignas(64) unsigned char block[HostKernel::kRepeatedBytes];
          for (size_t at = 0; at < sizeof block; at += item)
            std::memcpy(block + at, operands[0].data(), item);
          ptrs[2] = block;
          random_kernels[static_cast<int>(target)][index](ptrs, n, &s, 1u << 2);
        });
        std::swap(want[0], repeated[0]);
        std::swap(want[1], repeated[1]);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(PrintedKernels, AndTheInterpreterHaveTheBitsOfTheEvaluatorFloat32) { compare(Type::F32); }
TEST(PrintedKernels, AndTheInterpreterHaveTheBitsOfTheEvaluatorFloat64) { compare(Type::F64); }
TEST(PrintedKernels, AndTheInterpreterHaveTheBitsOfTheEvaluatorInt32) { compare(Type::I32); }
TEST(PrintedKernels, AndTheInterpreterHaveTheBitsOfTheEvaluatorInt64) { compare(Type::I64); }

}  // namespace
}  // namespace tenon::cpu
#endif
