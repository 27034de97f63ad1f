// Initialisation of parameters. Each function fills a tensor in place, outside autograd, and returns it. Used
// by layers. The Python package has the same formulas, so that a seed gives the same model in both languages.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::nn::init {

Tensor uniform_(Tensor t, double low = 0, double high = 1);
Tensor normal_(Tensor t, double mean = 0, double std = 1);
Tensor constant_(Tensor t, double value);
/// He et al. (2015), arXiv:1502.01852: uniform within gain * sqrt(3 / fan_in), gain = sqrt(2 / (1 + a^2)).
Tensor kaiming_uniform_(Tensor t, double a = 0);
/// Glorot and Bengio (2010): uniform within gain * sqrt(6 / (fan_in + fan_out)).
Tensor xavier_uniform_(Tensor t, double gain = 1);

}  // namespace tenon::nn::init
