#include "tenon/nn/init.h"

#include <fmt/format.h>

#include <cmath>

#include "tenon/core/thread_state.h"

namespace tenon::nn::init {
namespace {

struct Fans {
  double in, out;
};

/// [out, in, kernel...]: how many inputs and outputs meet in one value.
Fans fans(const Tensor& t) {
  TENON_CHECK(t.dim() >= 2, Value, fmt::format("init: fans need at least 2 dimensions, got {}", summary(t)));
  int64_t field = 1;
  for (int64_t d = 2; d < t.dim(); ++d) field *= t.size(d);
  return {static_cast<double>(t.size(1) * field), static_cast<double>(t.size(0) * field)};
}

}  // namespace

Tensor uniform_(Tensor t, double low, double high) {
  const NoGradGuard no_grad;
  return t.uniform_(low, high);
}

Tensor normal_(Tensor t, double mean, double std) {
  const NoGradGuard no_grad;
  return t.normal_(mean, std);
}

Tensor constant_(Tensor t, double value) {
  const NoGradGuard no_grad;
  return t.fill_(value);
}

Tensor kaiming_uniform_(Tensor t, double a) {
  if (t.numel() == 0) return t;
  const double gain = std::sqrt(2.0 / (1 + a * a));
  const double deviation = gain / std::sqrt(fans(t).in);
  const double bound = std::sqrt(3.0) * deviation;
  return uniform_(std::move(t), -bound, bound);
}

Tensor xavier_uniform_(Tensor t, double gain) {
  const Fans f = fans(t);
  const double deviation = gain * std::sqrt(2.0 / (f.in + f.out));
  const double bound = std::sqrt(3.0) * deviation;
  return uniform_(std::move(t), -bound, bound);
}

}  // namespace tenon::nn::init
