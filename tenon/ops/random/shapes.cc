// Checks of drawing random numbers in place: bounds that the dtype cannot hold, and invalid parameters of
// distributions.
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "tenon/core/tensor.h"
#include "tenon/generated/random/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops::shape {
namespace {

void check_floating(DType dtype, const char* op) {
  TENON_CHECK(is_floating_point(dtype) && has_arithmetic(dtype), NotImplemented,
              fmt::format("{}: not implemented for {}; it needs a floating point dtype", op, name(dtype)));
}

/// The numbers of a complex tensor are drawn one by one.
void check_parts(HeaderRef self, const char* op) {
  check_no_internal_overlap(self, op);
  if (!is_complex(self.dtype())) check_floating(self.dtype(), op);
}

/// The integers that a dtype holds: the range of an integer one, and of a floating one as far as every
/// integer is a value (2^24 for float32).
struct IntegerRange {
  int64_t low, high;
};
IntegerRange integer_range(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return {0, 1};
    case DType::Float16:
      return {-(1 << 11), 1 << 11};
    case DType::BFloat16:
      return {-(1 << 8), 1 << 8};
    case DType::Float32:
      return {-(1 << 24), 1 << 24};
    case DType::Float64:
      return {-(int64_t{1} << 53), int64_t{1} << 53};
    default: {
      const int bits = static_cast<int>(8 * item_size(dtype));
      if (!tenon::is_signed(dtype)) return {0, static_cast<int64_t>(~uint64_t{0} >> std::max(64 - bits, 1))};
      const auto high = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
      return {-high - 1, high};
    }
  }
}

constexpr int64_t kLargestFloat16 = 65504;

/// The largest finite number of a floating dtype.
double largest(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return kLargestFloat16;
    case DType::BFloat16:
      return 0x1.FEp127;
    case DType::Float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

void philox_uniform_(OutputSpecs&, HeaderRef self, double from, double to, int64_t, int64_t) {
  check_parts(self, "uniform_");
  TENON_CHECK(
      std::isfinite(from) && std::isfinite(to) && from <= to, Value,
      fmt::format("uniform_: expects to return a [from, to) range, but found from={} > to={}", from, to));
  const DType dtype = is_complex(self.dtype()) ? real_dtype(self.dtype()) : self.dtype();
  const double most = largest(dtype);
  TENON_CHECK(
      -most <= from && to <= most && to - from <= most, Value,
      fmt::format(
          "uniform_: expected bounds that {} holds and that are at most {} apart, got from={} and to={}",
          name(dtype), most, from, to));
}

void philox_normal_(OutputSpecs&, HeaderRef self, double, double std, int64_t, int64_t) {
  TENON_CHECK(std >= 0, Value, fmt::format("normal_: expects std >= 0.0, but found std={}", std));
  check_parts(self, "normal_");
}

/// Whether the numbers of `p` are chances is the kernel's to check.
void philox_bernoulli__Tensor(OutputSpecs&, HeaderRef self, HeaderRef p, int64_t, int64_t) {
  check_no_internal_overlap(self, "bernoulli_");
  check_floating(p.dtype(), "bernoulli_");
  check_real(self, "bernoulli_");
  TENON_CHECK(self.device() == p.device(), Device,
              fmt::format("bernoulli_: expected `p` on {} as `self`, got {}", to_string(self.device()),
                          to_string(p.device())));
  TENON_CHECK(broadcasts(p.sizes(), self.sizes()), Shape,
              fmt::format("bernoulli_: `p` {} does not broadcast to `self` {}", to_string(p.sizes()),
                          to_string(self.sizes())));
}

void philox_bernoulli_(OutputSpecs&, HeaderRef self, double p, int64_t, int64_t) {
  check_no_internal_overlap(self, "bernoulli_");
  TENON_CHECK(p >= 0 && p <= 1, Value, fmt::format("bernoulli_: expects p to be in [0, 1], but got p={}", p));
  check_real(self, "bernoulli_");
}

void philox_randint_(OutputSpecs&, HeaderRef self, int64_t low, int64_t high, int64_t, int64_t) {
  const DType type = self.dtype();
  TENON_CHECK(
      low < high, Value,
      fmt::format("randint: expects 'low' to be less than 'high', but got low={} >= high={}", low, high));
  check_real(self, "randint");
  // Floats round what they do not hold exactly, up to their largest value; only float16's is below int64's.
  const IntegerRange held = type == DType::Float16    ? IntegerRange{-kLargestFloat16, kLargestFloat16}
                            : is_floating_point(type) ? IntegerRange{INT64_MIN, INT64_MAX}
                                                      : integer_range(type);
  TENON_CHECK(
      low >= held.low && high - 1 <= held.high, Value,
      fmt::format("randint: numbers from {} to {} are out of bounds for {}", low, high - 1, name(type)));
  check_no_internal_overlap(self, "randint");
}

void philox_randperm_(OutputSpecs&, HeaderRef self, int64_t, int64_t) {
  TENON_CHECK(self.dim() == 1, Shape,
              fmt::format("randperm: expected one dimension, got sizes {}", to_string(self.sizes())));
  const DType type = self.dtype();
  check_arithmetic(self, "randperm");
  TENON_CHECK(type != DType::Bool && !is_complex(type), NotImplemented,
              fmt::format("randperm: not implemented for {}", name(type)));
  TENON_CHECK(
      self.numel() - 1 <= integer_range(type).high, Value,
      fmt::format("randperm: n = {} is more numbers than {} can tell apart", self.numel(), name(type)));
  check_no_internal_overlap(self, "randperm");
}

}  // namespace tenon::ops::shape
