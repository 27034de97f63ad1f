// Layers without parameters: activations and Flatten.
#pragma once

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/nn/module.h"

namespace tenon::nn {

/// max(x, 0)
struct ReLU final : Module {
  Tensor forward(const Tensor& input) override { return relu(input); }
};
struct Sigmoid final : Module {
  Tensor forward(const Tensor& input) override { return sigmoid(input); }
};
struct Tanh final : Module {
  Tensor forward(const Tensor& input) override { return tanh(input); }
};
/// x * sigmoid(x)
struct SiLU final : Module {
  Tensor forward(const Tensor& input) override { return silu(input); }
};

/// Merges dimensions start_dim to end_dim into one.
class Flatten final : public Module {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& input) override { return flatten(input, start_dim_, end_dim_); }
  std::string extra_repr() const override {
    return "start_dim=" + std::to_string(start_dim_) + ", end_dim=" + std::to_string(end_dim_);
  }

 private:
  int64_t start_dim_, end_dim_;
};

}  // namespace tenon::nn
