// Layers that normalise: rows of elements, or the channels of images.
#pragma once

#include <optional>

#include "tenon/nn/module.h"

namespace tenon::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  DType dtype = default_dtype();
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over the trailing dimensions `normalized_shape`. Ba et
/// al. (2016), arXiv:1607.06450.
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(Dims normalized_shape, LayerNormOptions options = {});
  explicit LayerNorm(int64_t size, LayerNormOptions options = {}) : LayerNorm(Dims{size}, options) {}

  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Tensor weight;  ///< normalized_shape, or undefined
  Tensor bias;    ///< normalized_shape, or undefined

 private:
  Dims normalized_shape_;
  double eps_;
};

struct BatchNorm2dOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< Without: the running statistics are plain means of all batches.
  bool affine = true;
  bool track_running_stats = true;
  DType dtype = default_dtype();
};

/// Normalises each channel of input [N, C, H, W]: while training by the batch, whose statistics are added to
/// the running ones, else by those. Ioffe and Szegedy (2015), arXiv:1502.03167.
class BatchNorm2d final : public Module {
 public:
  explicit BatchNorm2d(int64_t num_features, BatchNorm2dOptions options = {});

  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Tensor weight, bias;               ///< [num_features], or undefined
  Tensor running_mean, running_var;  ///< [num_features], or undefined
  Tensor num_batches_tracked;        ///< int64, or undefined

 private:
  int64_t num_features_;
  double eps_;
  std::optional<double> momentum_;
};

}  // namespace tenon::nn
