// Operators that draw random numbers. A call takes a range of the generator's stream and passes it, as the
// numbers seed and offset, to a _philox operator: what that draws depends on its arguments alone, whenever it
// runs.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/complex/bodies.h"
#include "tenon/generated/factory/bodies.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/bodies.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements.h"

namespace tenon::ops {
namespace {

using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;

TensorOptions options_of(OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  TensorOptions options;
  options.dtype_opt = dtype;
  options.layout_opt = layout;
  options.device_opt = device;
  options.pinned_memory_opt = pin_memory;
  return options;
}

/// A range of the stream as an operator's arguments.
struct Place {
  int64_t seed, offset;
};

/// Calls `draw` with the part of the stream for `n` elements of which a block holds `per_block`. Where it
/// throws, as the kernel does that refuses probabilities, the stream gets its part back.
template <class F>
void take_stream(const Generator& generator, int64_t n, int64_t per_block, F&& draw) {
  const Generator& from = generator.defined() ? generator : default_generator();
  const auto blocks = static_cast<uint64_t>(n / per_block + (n % per_block != 0));
  const PhiloxState taken = from->take(blocks);
  try {
    draw(Place{static_cast<int64_t>(taken.seed), static_cast<int64_t>(taken.offset)});
  } catch (...) {
    from->give_back(taken, blocks);
    throw;
  }
}

PhiloxState state_of(int64_t seed, int64_t offset) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)};
}

int64_t per_block(DType dtype) { return is_floating_point(dtype) && dtype != DType::Float64 ? 4 : 2; }

void check_floating(const Tensor& self, const char* op) {
  TENON_CHECK(
      is_floating_point(self.dtype()) && has_arithmetic(self.dtype()), NotImplemented,
      fmt::format("{}: not implemented for {}; it needs a floating point dtype", op, name(self.dtype())));
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
      if (!tenon::is_signed(dtype)) return {0, (int64_t{1} << bits) - 1};
      const auto high = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
      return {-high - 1, high};
    }
  }
}

void check_dropout(double p) {
  TENON_CHECK(p >= 0 && p <= 1, Value,
              fmt::format("dropout: dropout probability has to be between 0 and 1, but got {}", p));
}

/// 1 / (1 - p) where an element is kept, 0 elsewhere.
Tensor dropout_mask(const Tensor& input, double p) {
  if (!input.is_complex()) check_floating(input, "dropout");
  Tensor mask = tenon::empty_like(input, real_dtype(input.dtype()));
  mask.bernoulli_(1 - p);
  return mask.div_(Scalar(1 - p));
}

/// Draws contiguous elements and puts them into `self` in logical order, so that its strides do not matter.
template <class F>
void draw(const Tensor& self, const char* op, F&& fill) {
  check_no_internal_overlap(self, op);
  if (self.is_meta() || self.numel() == 0) return;
  if (self.is_contiguous()) return fill(self);
  const Tensor numbers = make_empty(self.sizes(), self.dtype(), self.device());
  fill(numbers);
  copy_elements(self, numbers, op);
}

/// The real numbers that a floating or complex tensor consists of, which are drawn one by one.
Tensor parts_of(const Tensor& self, const char* op) {
  check_no_internal_overlap(self, op);
  return self.is_complex() ? ops::view_as_real(self) : self;
}

/// The stream for those numbers.
template <class F>
void take_for_parts(const Tensor& self, const Generator& generator, F&& draw) {
  take_stream(generator, self.is_complex() ? 2 * self.numel() : self.numel(),
              per_block(real_dtype(self.dtype())), draw);
}

void check_range(double from, double to) {
  TENON_CHECK(
      std::isfinite(from) && std::isfinite(to) && from <= to, Value,
      fmt::format("uniform_: expects to return a [from, to) range, but found from={} > to={}", from, to));
}

void check_deviation(double std) {
  TENON_CHECK(std >= 0, Value, fmt::format("normal_: expects std >= 0.0, but found std={}", std));
}

void check_probability(double p) {
  TENON_CHECK(p >= 0 && p <= 1, Value, fmt::format("bernoulli_: expects p to be in [0, 1], but got p={}", p));
}

void check_chances(const Tensor& self, const Tensor& p) {
  check_floating(p, "bernoulli_");
  check_real(self.dtype(), "bernoulli_");
  TENON_CHECK(self.device() == p.device(), Device,
              fmt::format("bernoulli_: expected `p` on {} as `self`, got {}", to_string(self.device()),
                          to_string(p.device())));
  ops::expand(p, self.sizes(), false);
}

void check_permutation(int64_t n, DType type) {
  check_arithmetic(type, "randperm");
  TENON_CHECK(type != DType::Bool && !is_complex(type), NotImplemented,
              fmt::format("randperm: not implemented for {}", name(type)));
  TENON_CHECK(n - 1 <= integer_range(type).high, Value,
              fmt::format("randperm: n = {} is more numbers than {} can tell apart", n, name(type)));
}

void check_integers(int64_t low, int64_t high, DType type) {
  TENON_CHECK(
      low < high, Value,
      fmt::format("randint: expects 'low' to be less than 'high', but got low={} >= high={}", low, high));
  check_real(type, "randint");
  // Floats round what they do not hold exactly, up to their largest value; only float16's is below int64's.
  const IntegerRange held = type == DType::Float16    ? IntegerRange{-65504, 65504}
                            : is_floating_point(type) ? IntegerRange{INT64_MIN, INT64_MAX}
                                                      : integer_range(type);
  TENON_CHECK(
      low >= held.low && high - 1 <= held.high, Value,
      fmt::format("randint: numbers from {} to {} are out of bounds for {}", low, high - 1, name(type)));
}

}  // namespace

// What draws, from a place that it is given.

Tensor& philox_uniform_(Tensor& self, double from, double to, int64_t seed, int64_t offset) {
  const Tensor parts = parts_of(self, "uniform_");
  check_floating(parts, "uniform_");
  check_range(from, to);
  draw(parts, "uniform_",
       [&](const Tensor& dst) { uniform_stub(dst.device(), dst, from, to, state_of(seed, offset)); });
  return self;
}

Tensor& philox_normal_(Tensor& self, double mean, double std, int64_t seed, int64_t offset) {
  check_deviation(std);
  const Tensor parts = parts_of(self, "normal_");
  check_floating(parts, "normal_");
  // The variance of a complex number is std^2, half of it in each part.
  const double spread = self.is_complex() ? std * std::numbers::sqrt2 / 2 : std;
  draw(parts, "normal_",
       [&](const Tensor& dst) { normal_stub(dst.device(), dst, mean, spread, state_of(seed, offset)); });
  return self;
}

Tensor& philox_bernoulli__Tensor(Tensor& self, const Tensor& p, int64_t seed, int64_t offset) {
  check_chances(self, p);
  const Tensor wide = contiguous_copy(ops::expand(as_dtype(p, DType::Float64), self.sizes(), false));
  draw(self, "bernoulli_",
       [&](const Tensor& dst) { bernoulli_stub(dst.device(), dst, wide, state_of(seed, offset)); });
  return self;
}

Tensor& philox_bernoulli_(Tensor& self, double p, int64_t seed, int64_t offset) {
  check_probability(p);
  check_real(self.dtype(), "bernoulli_");
  draw(self, "bernoulli_", [&](const Tensor& dst) {
    Tensor chance = make_empty({}, DType::Float64, dst.device());
    fill_elements(chance, p, "bernoulli_");
    bernoulli_stub(dst.device(), dst, chance, state_of(seed, offset));
  });
  return self;
}

Tensor& philox_randint_(Tensor& self, int64_t low, int64_t high, int64_t seed, int64_t offset) {
  check_integers(low, high, self.dtype());
  draw(self, "randint", [&](const Tensor& dst) {
    randint_stub(dst.device(), dst, low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low),
                 state_of(seed, offset));
  });
  return self;
}

Tensor& philox_randperm_(Tensor& self, int64_t seed, int64_t offset) {
  TENON_CHECK(self.dim() == 1, Shape,
              fmt::format("randperm: expected one dimension, got sizes {}", to_string(self.sizes())));
  check_permutation(self.numel(), self.dtype());
  draw(self, "randperm",
       [&](const Tensor& dst) { randperm_stub(dst.device(), dst, state_of(seed, offset)); });
  return self;
}

// What takes the place from a generator. A call that fails takes nothing.

Tensor& uniform_(Tensor& self, double from, double to, const Generator& generator) {
  check_no_internal_overlap(self, "uniform_");
  if (!self.is_complex()) check_floating(self, "uniform_");
  check_range(from, to);
  take_for_parts(self, generator, [&](Place at) { self._philox_uniform_(from, to, at.seed, at.offset); });
  return self;
}

Tensor& normal_(Tensor& self, double mean, double std, const Generator& generator) {
  check_no_internal_overlap(self, "normal_");
  check_deviation(std);
  if (!self.is_complex()) check_floating(self, "normal_");
  take_for_parts(self, generator, [&](Place at) { self._philox_normal_(mean, std, at.seed, at.offset); });
  return self;
}

Tensor& bernoulli__Tensor(Tensor& self, const Tensor& p, const Generator& generator) {
  check_no_internal_overlap(self, "bernoulli_");
  check_chances(self, p);
  take_stream(generator, self.numel(), 2, [&](Place at) { self._philox_bernoulli_(p, at.seed, at.offset); });
  return self;
}

Tensor& bernoulli_(Tensor& self, double p, const Generator& generator) {
  check_no_internal_overlap(self, "bernoulli_");
  check_probability(p);
  check_real(self.dtype(), "bernoulli_");
  take_stream(generator, self.numel(), 2, [&](Place at) { self._philox_bernoulli_(p, at.seed, at.offset); });
  return self;
}

Tensor bernoulli(const Tensor& self, const Generator& generator) {
  check_floating(self, "bernoulli");
  Tensor result = make_empty(self.sizes(), self.dtype(), self.device());
  take_stream(generator, self.numel(), 2,
              [&](Place at) { result._philox_bernoulli_(self, at.seed, at.offset); });
  return result;
}

Tensor bernoulli_p(const Tensor& self, double p, const Generator& generator) {
  Tensor result = ops::empty_like(self, {}, {}, {}, {}, MemoryFormat::Contiguous);
  return ops::bernoulli_(result, p, generator);
}

Tensor dropout(const Tensor& input, double p, bool train) {
  check_dropout(p);
  if (!train || p == 0 || input.numel() == 0) return input;
  if (p == 1) return tenon::mul(input, tenon::zeros_like(input));
  return tenon::mul(input, dropout_mask(input, p));
}

Tensor& dropout_(Tensor& self, double p, bool train) {
  check_dropout(p);
  if (!train || p == 0 || self.numel() == 0) return self;
  if (p == 1) return self.mul_(tenon::zeros_like(self));
  return self.mul_(dropout_mask(self, p));
}

Tensor randn_generator(IntArrayRef size, const Generator& generator, OptDType dtype, OptLayout layout,
                       OptDevice device, OptBool pin_memory) {
  Tensor result = tenon::empty(size, options_of(dtype, layout, device, pin_memory));
  result.normal_(0, 1, generator);
  return result;
}
Tensor randn(IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return randn_generator(size, {}, dtype, layout, device, pin_memory);
}
Tensor rand_generator(IntArrayRef size, const Generator& generator, OptDType dtype, OptLayout layout,
                      OptDevice device, OptBool pin_memory) {
  Tensor result = tenon::empty(size, options_of(dtype, layout, device, pin_memory));
  result.uniform_(0, 1, generator);
  return result;
}
Tensor rand(IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return rand_generator(size, {}, dtype, layout, device, pin_memory);
}

Tensor rand_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                 std::optional<MemoryFormat> memory_format) {
  Tensor result = ops::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return ops::uniform_(result, 0, 1, {});
}
Tensor randn_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  Tensor result = ops::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return ops::normal_(result, 0, 1, {});
}

Tensor randint_low(int64_t low, int64_t high, IntArrayRef size, OptDType dtype, OptLayout layout,
                   OptDevice device, OptBool pin_memory) {
  const DType type = dtype.value_or(DType::Int64);
  check_integers(low, high, type);
  Tensor result = tenon::empty(size, options_of(type, layout, device, pin_memory));
  take_stream({}, result.numel(), 2,
              [&](Place at) { result._philox_randint_(low, high, at.seed, at.offset); });
  return result;
}
Tensor randint(int64_t high, IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device,
               OptBool pin_memory) {
  return randint_low(0, high, size, dtype, layout, device, pin_memory);
}

Tensor randperm_generator(int64_t n, const Generator& generator, OptDType dtype, OptLayout layout,
                          OptDevice device, OptBool pin_memory) {
  TENON_CHECK(n >= 0, Value, fmt::format("randperm: n must be non-negative, got {}", n));
  const DType type = dtype.value_or(DType::Int64);
  check_permutation(n, type);
  Tensor result = tenon::empty({n}, options_of(type, layout, device, pin_memory));
  take_stream(generator, n, 2, [&](Place at) { result._philox_randperm_(at.seed, at.offset); });
  return result;
}
Tensor randperm(int64_t n, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return randperm_generator(n, {}, dtype, layout, device, pin_memory);
}

}  // namespace tenon::ops
