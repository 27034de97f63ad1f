// ulp_bench [STRIDE]: the largest error of every maths function in units in the last place, per compute type
// and CPU target. float32: every STRIDE-th bit pattern (1: all of them, minutes a function). float64: a
// million samples over all magnitudes. The reference is the C library's long double. Figures in
// docs/decisions/0002.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "backends/cpu/pointwise/primitive_table.h"
#include "tenon/expr/function.h"
#include "tenon/expr/primitives.h"
#include "tests/expr/long_double_reference.h"

namespace {

using namespace tenon;
using expr::testing::LongDoubleRow;

template <class T>
struct Worst {
  double ulp = 0;
  T at = 0;
  size_t special_mismatches = 0;
};

template <class T>
void measure(const LongDoubleRow& row, cpu::PointwiseFn kernel, std::vector<T>& x, Worst<T>& worst) {
  std::vector<T> out(x.size());
  void* ptrs[] = {out.data(), x.data(), nullptr, nullptr};
  kernel(ptrs, x.size(), nullptr);
  for (size_t i = 0; i < x.size(); ++i) {
    const double ulp = expr::testing::ulp_error(out[i], row.value(x[i], 0));
    if (std::isinf(ulp))
      ++worst.special_mismatches;
    else if (ulp > worst.ulp)
      worst.ulp = ulp, worst.at = x[i];
  }
  x.clear();
}

void row_float32(const LongDoubleRow& row, cpu::PointwiseFn kernel, uint64_t stride, Worst<float>& worst) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    if (x.size() == 4096) measure(row, kernel, x, worst);
  }
  measure(row, kernel, x, worst);
}

void row_float64(const LongDoubleRow& row, cpu::PointwiseFn kernel, Worst<double>& worst) {
  std::mt19937_64 rng(7);
  const auto uniform = [&rng] { return static_cast<double>(rng() >> 11) * 0x1p-53; };
  std::vector<double> x;
  for (int i = 0; i < 1'000'000; ++i) {
    const double magnitude = std::exp2(-30 + 41 * uniform()) * (rng() % 2 == 0 ? 1 : -1);
    x.push_back(i % 4 == 0 ? std::bit_cast<double>(rng()) : i % 4 == 1 ? 4 * uniform() - 2 : magnitude);
    if (x.size() == 4096) measure(row, kernel, x, worst);
  }
  measure(row, kernel, x, worst);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4099;
  if (stride == 0) {
    std::fprintf(stderr, "usage: ulp_bench [STRIDE]\n");
    return 2;
  }
  std::printf("%-12s %-8s %-6s %9s  %-24s %s\n", "function", "type", "target", "ulp", "at",
              "special values wrong");
  for (const LongDoubleRow& row : expr::testing::long_double_rows()) {
    if (row.arity != 1) continue;
    for (const expr::ComputeType type : {expr::ComputeType::Float32, expr::ComputeType::Float64}) {
      const uint16_t number = expr::find_primitive(
          {.op = expr::Op::Call, .function = expr::find_function(row.name), .type = type});
      if (number == expr::kNoPrimitive) continue;
      for (const cpu::CpuTarget target : cpu::supported_cpu_targets()) {
        const cpu::PointwiseFn kernel = cpu::primitive(number, target);
        Worst<float> of_float;
        Worst<double> of_double;
        const bool is_float = type == expr::ComputeType::Float32;
        is_float ? row_float32(row, kernel, stride, of_float) : row_float64(row, kernel, of_double);
        std::printf("%-12s %-8s %-6s %9.4f  %-24a %zu\n", row.name.data(), name(type).data(),
                    name(target).data(), is_float ? of_float.ulp : of_double.ulp,
                    is_float ? of_float.at : of_double.at,
                    is_float ? of_float.special_mismatches : of_double.special_mismatches);
      }
    }
  }
}
