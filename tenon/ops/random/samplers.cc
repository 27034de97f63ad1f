// Draws from distributions that are sampled by rejection, and by functions of uniform and normal numbers.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "tenon/core/capture.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/random/bodies.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/random/shapes.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {
namespace {

void check_floating(HeaderRef self, const char* op, const char* argument) {
  TENON_CHECK(
      is_floating_point(self.dtype()) && has_arithmetic(self.dtype()), Type,
      fmt::format("{}: expected `{}` of a floating-point dtype, got {}", op, argument, name(self.dtype())));
}

/// The place in the stream for one block of each of `n` elements. The counter of further blocks of an element
/// differs in its third word.
PhiloxState take_blocks(const Tensor& self, const Generator& generator) {
  const Generator& from = generator.defined() ? generator : default_generator();
  return take_philox(from, self.device(), static_cast<uint64_t>(self.numel()));
}

/// Numbers to compute with, of the dtype that uniform numbers for `self` have.
Tensor like_for_draws(const Tensor& self) {
  const bool half = self.dtype() != DType::Float32 && self.dtype() != DType::Float64;
  return make_empty(self.sizes(), half ? DType::Float32 : self.dtype(), self.device());
}

/// Uniform on (0, 1): the middle of the steps of uniform_.
Tensor open_uniform(const Tensor& self, const Generator& generator) {
  Tensor u = like_for_draws(self);
  ops::uniform_(u, 0, 1, generator);
  return tenon::add(u, Scalar(u.dtype() == DType::Float64 ? 0x1p-54 : 0x1p-25));
}

}  // namespace

namespace shape {

void philox_standard_gamma(OutputSpecs& out, HeaderRef self, int64_t, int64_t) {
  check_floating(self, "_standard_gamma", "self");
  out.set(0, self.sizes(), self.dtype());
}

void philox_poisson(OutputSpecs& out, HeaderRef self, int64_t, int64_t) {
  check_floating(self, "poisson", "self");
  out.set(0, self.sizes(), self.dtype());
}

void philox_binomial(OutputSpecs& out, HeaderRef count, HeaderRef prob, int64_t, int64_t) {
  check_floating(count, "binomial", "count");
  check_floating(prob, "binomial", "prob");
  TENON_CHECK(count.dtype() == prob.dtype(), Type,
              fmt::format("binomial: expected `count` and `prob` of one dtype, got {} and {}",
                          name(count.dtype()), name(prob.dtype())));
  out.set(0, count.sizes(), count.dtype());
}

void standard_gamma_grad(OutputSpecs& out, HeaderRef self, HeaderRef output) {
  check_floating(self, "_standard_gamma_grad", "self");
  TENON_CHECK(
      self.dtype() == output.dtype() && self.sizes() == output.sizes(), Type,
      fmt::format("_standard_gamma_grad: expected `output` of dtype {} and shape {} as `self`, got {} "
                  "and {}",
                  name(self.dtype()), to_string(self.sizes()), name(output.dtype()),
                  to_string(output.sizes())));
  out.set(0, self.sizes(), self.dtype());
}

}  // namespace shape

Tensor _standard_gamma(const Tensor& self, const Generator& generator) {
  check_floating(self, "_standard_gamma", "self");
  const PhiloxState at = self.is_meta() ? PhiloxState{} : take_blocks(self, generator);
  return tenon::_philox_standard_gamma(self, static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset));
}

Tensor poisson(const Tensor& self, const Generator& generator) {
  check_floating(self, "poisson", "self");
  const PhiloxState at = self.is_meta() ? PhiloxState{} : take_blocks(self, generator);
  return tenon::_philox_poisson(self, static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset));
}

Tensor binomial(const Tensor& count, const Tensor& prob, const Generator& generator) {
  check_floating(count, "binomial", "count");
  check_floating(prob, "binomial", "prob");
  Dims sizes = count.sizes().to_dims();
  broadcast_to(sizes, prob.sizes(), "binomial");
  const Tensor trials = count.expand(sizes), chance = prob.expand(sizes);
  const PhiloxState at = trials.is_meta() ? PhiloxState{} : take_blocks(trials, generator);
  return tenon::_philox_binomial(trials, chance, static_cast<int64_t>(at.seed),
                                 static_cast<int64_t>(at.offset));
}

Tensor _standard_gamma_second_gradient(const Tensor&) {
  throw_error(ErrorKind::NotImplemented,
              "_standard_gamma_grad: draws of gamma distributions, and igamma, have no second derivative by "
              "the shape; "
              "call backward without create_graph");
}

namespace {
double smallest_normal(DType dtype) {
  return dtype == DType::Float64 ? 0x1p-1022 : dtype == DType::Float16 ? 0x1p-14 : 0x1p-126;
}
}  // namespace

Tensor _sample_dirichlet(const Tensor& self, const Generator& generator) {
  check_floating(self, "_sample_dirichlet", "self");
  TENON_CHECK(self.dim() > 0, Shape, "_sample_dirichlet: expected one dimension or more of `self`, got none");
  // float64 has room for the draws of small concentrations, which are far below 1.
  const Tensor draws = tenon::_standard_gamma(self.to(DType::Float64), generator);
  const int64_t last[] = {-1};
  // A draw of 0 would have no logarithm.
  const Tensor parts = tenon::div(draws, tenon::sum(draws, IntArrayRef(last), true)).to(self.dtype());
  return tenon::clamp_min(parts, Scalar(smallest_normal(self.dtype())));
}

Tensor& cauchy_(Tensor& self, double median, double sigma, const Generator& generator) {
  check_floating(self, "cauchy_", "self");
  TENON_CHECK(sigma > 0, Value, fmt::format("cauchy_: sigma has to be above 0, got {}", sigma));
  const Tensor turn =
      tenon::mul(tenon::sub(open_uniform(self, generator), Scalar(0.5)), Scalar(std::numbers::pi));
  return self.copy_(tenon::add(tenon::mul(tenon::tan(turn), Scalar(sigma)), Scalar(median)));
}

Tensor& geometric_(Tensor& self, double p, const Generator& generator) {
  TENON_CHECK(p > 0 && p < 1, Value, fmt::format("geometric_: p has to be between 0 and 1, got {}", p));
  TENON_CHECK(
      !self.is_complex() && self.dtype() != DType::Bool, Type,
      fmt::format("geometric_: expected a tensor of integers or real numbers, got {}", name(self.dtype())));
  Tensor u = make_empty(self.sizes(), DType::Float64, self.device());
  ops::uniform_(u, 0, 1, generator);
  const Tensor trials = tenon::div(tenon::log(tenon::add(u, Scalar(0x1p-54))), Scalar(std::log1p(-p)));
  return self.copy_(tenon::clamp_min(tenon::ceil(trials), Scalar(1.0)));
}

Tensor& log_normal_(Tensor& self, double mean, double std, const Generator& generator) {
  check_floating(self, "log_normal_", "self");
  TENON_CHECK(std > 0, Value, fmt::format("log_normal_: std has to be above 0, got {}", std));
  Tensor numbers = like_for_draws(self);
  ops::normal_(numbers, mean, std, generator);
  return self.copy_(tenon::exp(numbers));
}

}  // namespace tenon::ops
