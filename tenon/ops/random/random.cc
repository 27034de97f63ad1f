// Operators that draw random numbers. A call takes a range of the generator's stream and passes it, as the
// numbers seed and offset, to a _philox operator: what that draws depends on its arguments alone, whenever it
// runs.
#include <fmt/core.h>

#include <numbers>
#include <utility>

#include "tenon/core/capture.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/complex/bodies.h"
#include "tenon/generated/factory/bodies.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/bodies.h"
#include "tenon/generated/random/shapes.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/iter/promotion.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"

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

/// Where captured draws of this thread find seed and position: an operator's arguments have no place for it.
thread_local uint64_t t_drawn_at = 0;
class DrawsAt {
 public:
  explicit DrawsAt(uint64_t at) noexcept : before_(std::exchange(t_drawn_at, at)) {}
  ~DrawsAt() { t_drawn_at = before_; }
  DrawsAt(const DrawsAt&) = delete;
  DrawsAt& operator=(const DrawsAt&) = delete;

 private:
  uint64_t before_;
};

/// Calls `draw` with the part of the stream for `n` numbers in `self`; a block holds `per_block` numbers.
/// Where it throws, as the kernel does that refuses probabilities, the stream gets its part back. A meta
/// tensor has no numbers, and takes none; who writes calls down learns of the draw all the same.
template <class F>
void take_stream(const Tensor& self, const Generator& generator, int64_t n, int64_t per_block, F&& draw) {
  if (self.is_meta()) {
    if (thread_state.included.has(Functionality::Record)) draw(Place{});
    return;
  }
  const Generator& from = generator.defined() ? generator : default_generator();
  const auto blocks = static_cast<uint64_t>(n / per_block + (n % per_block != 0));
  const PhiloxState taken = take_philox(from, self.device(), blocks);
  const DrawsAt scope(taken.at);
  try {
    draw(Place{static_cast<int64_t>(taken.seed), static_cast<int64_t>(taken.offset)});
  } catch (...) {
    if (taken.at == 0) from->give_back(taken, blocks);
    throw;
  }
}

PhiloxState state_of(int64_t seed, int64_t offset) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset), t_drawn_at};
}

int64_t per_block(DType dtype) { return is_floating_point(dtype) && dtype != DType::Float64 ? 4 : 2; }

/// Throws what drawing would: its shape function checks the arguments.
template <class... P, class... A>
void check_draw(void (*shape)(OutputSpecs&, P...), A&&... args) {
  OutputSpecs none{std::span<OutputSpec>()};
  shape(none, std::forward<A>(args)...);
}

void check_dropout(double p) {
  TENON_CHECK(p >= 0 && p <= 1, Value,
              fmt::format("dropout: dropout probability has to be between 0 and 1, but got {}", p));
}

void check_dropout_dtype(const Tensor& input) {
  TENON_CHECK(
      is_complex(input.dtype()) || (is_floating_point(input.dtype()) && has_arithmetic(input.dtype())),
      NotImplemented,
      fmt::format("dropout: not implemented for {}; it needs a floating point dtype", name(input.dtype())));
}

/// 1 / (1 - p) where an element is kept, 0 elsewhere.
Tensor dropout_mask(const Tensor& input, double p) {
  check_dropout_dtype(input);
  Tensor mask = tenon::empty_like(input, real_dtype(input.dtype()));
  mask.bernoulli_(1 - p);
  return mask.div_(Scalar(1 - p));
}

/// The largest integer up to which a dtype has all of them.
int64_t largest_integer(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return 1;
    case DType::UInt8:
      return 255;
    case DType::Int8:
      return 127;
    case DType::Int16:
      return 32767;
    case DType::UInt16:
      return UINT16_MAX;
    case DType::Int32:
      return INT32_MAX;
    case DType::UInt32:
      return UINT32_MAX;
    case DType::Float16:
      return 1 << 11;
    case DType::BFloat16:
      return 1 << 8;
    case DType::Float32:
      return 1 << 24;
    case DType::Float64:
      return int64_t{1} << 53;
    default:
      return INT64_MAX;
  }
}

/// Draws contiguous elements and puts them into `self` in logical order, so that its strides do not matter.
template <class F>
void draw(const Tensor& self, const char* op, F&& fill) {
  if (self.numel() == 0) return;
  if (self.is_contiguous()) return fill(self);
  const Tensor numbers = tenon::empty_like(self, {}, MemoryFormat::Contiguous);
  fill(numbers);
  copy_elements(self, numbers, op);
}

/// The real numbers that a floating or complex tensor consists of, which are drawn one by one.
Tensor parts_of(const Tensor& self) { return self.is_complex() ? ops::view_as_real(self) : self; }

/// The stream for those numbers.
template <class F>
void take_for_parts(const Tensor& self, const Generator& generator, F&& draw) {
  take_stream(self, generator, self.is_complex() ? 2 * self.numel() : self.numel(),
              per_block(real_dtype(self.dtype())), draw);
}

}  // namespace

// What draws, from a place that it is given.

void philox_uniform_(Tensor& self, double from, double to, int64_t seed, int64_t offset) {
  draw(parts_of(self), "uniform_",
       [&](const Tensor& dst) { uniform_stub(dst.device(), dst, from, to, state_of(seed, offset)); });
}

void philox_normal_(Tensor& self, double mean, double std, int64_t seed, int64_t offset) {
  // The variance of a complex number is std^2, half of it in each part.
  const double spread = self.is_complex() ? std * std::numbers::sqrt2 / 2 : std;
  draw(parts_of(self), "normal_",
       [&](const Tensor& dst) { normal_stub(dst.device(), dst, mean, spread, state_of(seed, offset)); });
}

void philox_bernoulli__Tensor(Tensor& self, const Tensor& p, int64_t seed, int64_t offset) {
  const Tensor wide = contiguous_copy(ops::expand(as_dtype(p, DType::Float64), self.sizes(), false));
  draw(self, "bernoulli_",
       [&](const Tensor& dst) { bernoulli_stub(dst.device(), dst, wide, state_of(seed, offset)); });
}

void philox_bernoulli_(Tensor& self, double p, int64_t seed, int64_t offset) {
  draw(self, "bernoulli_", [&](const Tensor& dst) {
    Tensor chance = make_empty({}, DType::Float64, dst.device());
    fill_elements(chance, p, "bernoulli_");
    bernoulli_stub(dst.device(), dst, chance, state_of(seed, offset));
  });
}

void philox_randint_(Tensor& self, int64_t low, int64_t high, int64_t seed, int64_t offset) {
  draw(self, "randint", [&](const Tensor& dst) {
    randint_stub(dst.device(), dst, low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low),
                 state_of(seed, offset));
  });
}

void philox_randperm_(Tensor& self, int64_t seed, int64_t offset) {
  draw(self, "randperm",
       [&](const Tensor& dst) { randperm_stub(dst.device(), dst, state_of(seed, offset)); });
}

// What takes the place from a generator. A call that fails takes nothing: it checks its arguments first, as
// what draws does.

Tensor& uniform_(Tensor& self, double from, double to, const Generator& generator) {
  check_draw(shape::philox_uniform_, self, from, to, 0, 0);
  take_for_parts(self, generator, [&](Place at) { self._philox_uniform_(from, to, at.seed, at.offset); });
  return self;
}

Tensor& normal_(Tensor& self, double mean, double std, const Generator& generator) {
  check_draw(shape::philox_normal_, self, mean, std, 0, 0);
  take_for_parts(self, generator, [&](Place at) { self._philox_normal_(mean, std, at.seed, at.offset); });
  return self;
}

Tensor& bernoulli__Tensor(Tensor& self, const Tensor& p, const Generator& generator) {
  check_draw(shape::philox_bernoulli__Tensor, self, p, 0, 0);
  take_stream(self, generator, self.numel(), 2,
              [&](Place at) { self._philox_bernoulli_(p, at.seed, at.offset); });
  return self;
}

Tensor& bernoulli_(Tensor& self, double p, const Generator& generator) {
  check_draw(shape::philox_bernoulli_, self, p, 0, 0);
  take_stream(self, generator, self.numel(), 2,
              [&](Place at) { self._philox_bernoulli_(p, at.seed, at.offset); });
  return self;
}

Tensor bernoulli(const Tensor& self, const Generator& generator) {
  Tensor result = tenon::empty_like(self, {}, MemoryFormat::Contiguous);
  check_draw(shape::philox_bernoulli__Tensor, result, self, 0, 0);
  take_stream(result, generator, self.numel(), 2,
              [&](Place at) { result._philox_bernoulli_(self, at.seed, at.offset); });
  return result;
}

Tensor bernoulli_p(const Tensor& self, double p, const Generator& generator) {
  Tensor result = tenon::empty_like(self, {}, MemoryFormat::Contiguous);
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

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  check_dropout(p);
  check_dropout_dtype(input);
  if (!train.value_or(true) || p == 0) return {input.clone(), tenon::ones_like(input, DType::Bool)};
  Tensor mask = tenon::empty_like(input, DType::Bool);
  mask.bernoulli_(1 - p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return {tenon::mul(tenon::mul(input, mask), Scalar(scale)), mask};
}

Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  check_dropout_dtype(grad_output);
  return tenon::mul(tenon::mul(grad_output, mask), Scalar(scale));
}

Tensor& exponential_(Tensor& self, double lambd, const Generator& generator) {
  TENON_CHECK(lambd > 0, Value, fmt::format("exponential_: lambd must be positive, got {}", lambd));
  TENON_CHECK(is_floating_point(self.dtype()) && has_arithmetic(self.dtype()), Type,
              fmt::format("exponential_: expected a floating-point tensor, got {}", name(self.dtype())));
  check_draw(shape::philox_uniform_, self, 0, 1, 0, 0);
  const bool half = self.dtype() != DType::Float32 && self.dtype() != DType::Float64;
  Tensor u = make_empty(self.sizes(), half ? DType::Float32 : self.dtype(), self.device());
  ops::uniform_(u, 0, 1, generator);
  // u = 0 would give 0, which the distribution has not, and which callers divide by.
  const double least = u.dtype() == DType::Float64 ? 0x1p-54 : 0x1p-25;
  return self.copy_(
      tenon::div(tenon::clamp_min(tenon::neg(tenon::log1p(tenon::neg(u))), Scalar(least)), Scalar(lambd)));
}

/// Reads deviations to refuse negative ones; those of a recorded program are computed first.
static void check_deviations(const Tensor& std) {
  if (std.is_complex() || std.is_meta() || std.numel() == 0) return;
  const double least = tenon::min(std).item().to_double();
  TENON_CHECK(
      least >= 0, Value,
      fmt::format("normal: expects all elements of std >= 0.0, but the least is {}; take std.abs()", least));
}

Tensor normal_Tensor_Tensor(const Tensor& mean, const Tensor& std, const Generator& generator) {
  Dims sizes = mean.sizes().to_dims();
  broadcast_to(sizes, std.sizes(), "normal");
  check_deviations(std);
  const DType dtype = promote_types(mean.dtype(), std.dtype());
  Tensor numbers = tenon::empty(sizes, TensorOptions().dtype(dtype).device(mean.device()));
  numbers.normal_(0, 1, generator);
  // The dtype of `mean`, as PyTorch has it; of integers, which it refuses, that of `std`.
  const bool own = !is_integral(mean.dtype(), true) && !is_complex(std.dtype());
  return tenon::add(tenon::mul(numbers, std), mean).to(own ? mean.dtype() : dtype);
}
Tensor normal_Tensor_float(const Tensor& mean, double std, const Generator& generator) {
  Tensor numbers = tenon::empty(mean.sizes(), TensorOptions().dtype(mean.dtype()).device(mean.device()));
  numbers.normal_(0, std, generator);
  return tenon::add(numbers, mean);
}
Tensor normal_float_Tensor(double mean, const Tensor& std, const Generator& generator) {
  check_deviations(std);
  Tensor numbers = tenon::empty(std.sizes(), TensorOptions().dtype(std.dtype()).device(std.device()));
  numbers.normal_(0, 1, generator);
  return tenon::add(tenon::mul(numbers, std), Scalar(mean));
}
Tensor normal_float_float(double mean, double std, IntArrayRef size, const Generator& generator,
                          OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  Tensor result = tenon::empty(size, options_of(dtype, layout, device, pin_memory));
  result.normal_(mean, std, generator);
  return result;
}

Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, OptDType dtype, OptLayout layout,
                        OptDevice device, OptBool pin_memory, std::optional<MemoryFormat> memory_format) {
  Tensor result = tenon::empty_like(self, options_of(dtype, layout, device, pin_memory), memory_format);
  check_draw(shape::philox_randint_, result, low, high, 0, 0);
  take_stream(result, {}, result.numel(), 2,
              [&](Place at) { result._philox_randint_(low, high, at.seed, at.offset); });
  return result;
}

Tensor& random__from(Tensor& self, int64_t from, std::optional<int64_t> to, const Generator& generator) {
  const int64_t high = to ? *to : largest_integer(self.dtype());
  check_draw(shape::philox_randint_, self, from, high, 0, 0);
  take_stream(self, generator, self.numel(), 2,
              [&](Place at) { self._philox_randint_(from, high, at.seed, at.offset); });
  return self;
}
Tensor& random_(Tensor& self, const Generator& generator) {
  const int64_t largest = largest_integer(self.dtype());
  return random__from(self, 0, largest == INT64_MAX ? largest : largest + 1, generator);
}

Tensor randn_generator(IntArrayRef size, const Generator& generator, OptDType dtype, OptLayout layout,
                       OptDevice device, OptBool pin_memory) {
  Tensor result = tenon::empty(size, options_of(dtype, layout, device, pin_memory));
  result.normal_(0, 1, generator);
  return result;
}
Tensor rand_generator(IntArrayRef size, const Generator& generator, OptDType dtype, OptLayout layout,
                      OptDevice device, OptBool pin_memory) {
  Tensor result = tenon::empty(size, options_of(dtype, layout, device, pin_memory));
  result.uniform_(0, 1, generator);
  return result;
}

Tensor rand_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                 std::optional<MemoryFormat> memory_format) {
  Tensor result = tenon::empty_like(self, options_of(dtype, layout, device, pin_memory), memory_format);
  return ops::uniform_(result, 0, 1, {});
}
Tensor randn_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  Tensor result = tenon::empty_like(self, options_of(dtype, layout, device, pin_memory), memory_format);
  return ops::normal_(result, 0, 1, {});
}

Tensor randint_low_generator(int64_t low, int64_t high, IntArrayRef size, const Generator& generator,
                             OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  const DType type = dtype.value_or(DType::Int64);
  check_draw(shape::philox_randint_, TensorHeader({}, {}, type, kCPU), low, high, 0, 0);
  Tensor result = tenon::empty(size, options_of(type, layout, device, pin_memory));
  take_stream(result, generator, result.numel(), 2,
              [&](Place at) { result._philox_randint_(low, high, at.seed, at.offset); });
  return result;
}

Tensor randperm_generator(int64_t n, const Generator& generator, OptDType dtype, OptLayout layout,
                          OptDevice device, OptBool pin_memory) {
  TENON_CHECK(n >= 0, Value, fmt::format("randperm: n must be non-negative, got {}", n));
  const DType type = dtype.value_or(DType::Int64);
  check_draw(shape::philox_randperm_, TensorHeader({n}, {1}, type, kCPU), 0, 0);
  Tensor result = tenon::empty({n}, options_of(type, layout, device, pin_memory));
  take_stream(result, generator, n, 2, [&](Place at) { result._philox_randperm_(at.seed, at.offset); });
  return result;
}

}  // namespace tenon::ops
