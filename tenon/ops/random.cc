// Operators that draw random numbers. A call takes a range of the generator's stream and hands it to the
// device.
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

/// The part of the stream for `n` elements of which a block holds `per_block`.
PhiloxState take_stream(const Generator& generator, int64_t n, int64_t per_block) {
  const Generator& from = generator.defined() ? generator : default_generator();
  return from->take(static_cast<uint64_t>(n / per_block + (n % per_block != 0)));
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

/// Throws unless every element is in [0, 1], which a NaN is not.
void check_probabilities(const Tensor& p, const char* argument, const char* op) {
  if (p.is_meta() || p.numel() == 0) return;
  const double low = tenon::amin(p, IntArrayRef()).item().to_double(),
               high = tenon::amax(p, IntArrayRef()).item().to_double();
  TENON_CHECK(low >= 0 && high <= 1, Value,
              fmt::format("{}: expects all elements of `{}` to be in [0, 1], but they are in [{}, {}]", op,
                          argument, low, high));
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
  if (self.numel() == 0) return;
  if (self.is_contiguous()) return fill(self);
  const Tensor numbers = make_empty(self.sizes(), self.dtype(), self.device());
  fill(numbers);
  copy_elements(self, numbers, op);
}

/// The real numbers that a complex tensor consists of, to be drawn one by one.
Tensor parts_to_draw(const Tensor& self, const char* op) {
  check_no_internal_overlap(self, op);
  return ops::view_as_real(self);
}

}  // namespace

Tensor& uniform_(Tensor& self, double from, double to, const Generator& generator) {
  if (self.is_complex()) {
    Tensor parts = parts_to_draw(self, "uniform_");
    ops::uniform_(parts, from, to, generator);
    return self;
  }
  check_floating(self, "uniform_");
  TENON_CHECK(
      std::isfinite(from) && std::isfinite(to) && from <= to, Value,
      fmt::format("uniform_: expects to return a [from, to) range, but found from={} > to={}", from, to));
  const PhiloxState state = take_stream(generator, self.numel(), per_block(self.dtype()));
  if (self.is_meta()) return self;
  draw(self, "uniform_", [&](const Tensor& dst) { uniform_stub(dst.device(), dst, from, to, state); });
  return self;
}

Tensor& normal_(Tensor& self, double mean, double std, const Generator& generator) {
  TENON_CHECK(std >= 0, Value, fmt::format("normal_: expects std >= 0.0, but found std={}", std));
  if (self.is_complex()) {
    // The variance of the whole is std^2, half of it in each part.
    Tensor parts = parts_to_draw(self, "normal_");
    ops::normal_(parts, mean, std * std::numbers::sqrt2 / 2, generator);
    return self;
  }
  check_floating(self, "normal_");
  const PhiloxState state = take_stream(generator, self.numel(), per_block(self.dtype()));
  if (self.is_meta()) return self;
  draw(self, "normal_", [&](const Tensor& dst) { normal_stub(dst.device(), dst, mean, std, state); });
  return self;
}

Tensor& bernoulli__Tensor(Tensor& self, const Tensor& p, const Generator& generator) {
  check_floating(p, "bernoulli_");
  check_real(self.dtype(), "bernoulli_");
  TENON_CHECK(self.device() == p.device(), Device,
              fmt::format("bernoulli_: expected `p` on {} as `self`, got {}", to_string(self.device()),
                          to_string(p.device())));
  check_probabilities(p, "p", "bernoulli_");
  const Tensor wide = contiguous_copy(ops::expand(as_dtype(p, DType::Float64), self.sizes(), false));
  const PhiloxState state = take_stream(generator, self.numel(), 2);
  if (self.is_meta()) return self;
  draw(self, "bernoulli_", [&](const Tensor& dst) { bernoulli_stub(dst.device(), dst, wide, state); });
  return self;
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

Tensor& bernoulli_(Tensor& self, double p, const Generator& generator) {
  TENON_CHECK(p >= 0 && p <= 1, Value, fmt::format("bernoulli_: expects p to be in [0, 1], but got p={}", p));
  check_real(self.dtype(), "bernoulli_");
  const PhiloxState state = take_stream(generator, self.numel(), 2);
  if (self.is_meta()) return self;
  Tensor chance = make_empty({}, DType::Float64, self.device());
  fill_elements(chance, p, "bernoulli_");
  draw(self, "bernoulli_", [&](const Tensor& dst) { bernoulli_stub(dst.device(), dst, chance, state); });
  return self;
}

Tensor bernoulli(const Tensor& self, const Generator& generator) {
  check_floating(self, "bernoulli");
  check_probabilities(self, "self", "bernoulli");
  const PhiloxState state = take_stream(generator, self.numel(), 2);
  Tensor result = make_empty(self.sizes(), self.dtype(), self.device());
  if (self.is_meta() || self.numel() == 0) return result;
  bernoulli_stub(self.device(), result, as_contiguous(as_dtype(self, DType::Float64)), state);
  return result;
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
  TENON_CHECK(
      low < high, Value,
      fmt::format("randint: expects 'low' to be less than 'high', but got low={} >= high={}", low, high));
  const DType type = dtype.value_or(DType::Int64);
  check_real(type, "randint");
  // Floats round what they do not hold exactly, up to their largest value; only float16's is below int64's.
  const IntegerRange held = type == DType::Float16    ? IntegerRange{-65504, 65504}
                            : is_floating_point(type) ? IntegerRange{INT64_MIN, INT64_MAX}
                                                      : integer_range(type);
  TENON_CHECK(
      low >= held.low && high - 1 <= held.high, Value,
      fmt::format("randint: numbers from {} to {} are out of bounds for {}", low, high - 1, name(type)));
  Tensor result = tenon::empty(size, options_of(type, layout, device, pin_memory));
  const PhiloxState state = take_stream({}, result.numel(), 2);
  if (result.is_meta() || result.numel() == 0) return result;
  randint_stub(result.device(), result, low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low), state);
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
  check_arithmetic(type, "randperm");
  TENON_CHECK(type != DType::Bool && !is_complex(type), NotImplemented,
              fmt::format("randperm: not implemented for {}", name(type)));
  TENON_CHECK(n - 1 <= integer_range(type).high, Value,
              fmt::format("randperm: n = {} is more numbers than {} can tell apart", n, name(type)));
  Tensor result = tenon::empty({n}, options_of(type, layout, device, pin_memory));
  const PhiloxState state = take_stream(generator, n, 2);
  if (result.is_meta() || n == 0) return result;
  randperm_stub(result.device(), result, state);
  return result;
}
Tensor randperm(int64_t n, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return randperm_generator(n, {}, dtype, layout, device, pin_memory);
}

}  // namespace tenon::ops
