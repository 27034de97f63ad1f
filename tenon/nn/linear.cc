#include "tenon/nn/linear.h"

#include <fmt/format.h>

#include <cmath>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/nn/init.h"

namespace tenon::nn {

Linear::Linear(int64_t in_features, int64_t out_features, LinearOptions options) {
  TENON_CHECK(in_features >= 0 && out_features >= 0, Value,
              fmt::format("Linear: features must not be negative, got {} and {}", in_features, out_features));
  weight = register_parameter("weight", empty({out_features, in_features}, options.dtype));
  if (options.bias) bias = register_parameter("bias", empty({out_features}, options.dtype));
  reset_parameters();
}

void Linear::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const auto fan_in = static_cast<double>(weight.size(1));
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  init::uniform_(bias, -bound, bound);
}

std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", weight.size(1), weight.size(0),
                     bias.defined() ? "True" : "False");
}

Tensor Linear::forward(const Tensor& input) { return linear(input, weight, bias); }

}  // namespace tenon::nn
