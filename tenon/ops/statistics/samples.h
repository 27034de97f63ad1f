// What PyTorch's overloads of gradient and quantile are made of. Called by the entries of statistics.yaml.
#pragma once

#include <vector>

#include "tenon/core/scalar.h"
#include "tenon/core/tensor.h"

namespace tenon::ops {

/// The distances of samples: one number, or the coordinates of each.
struct Spacing {
  Scalar step = 1;
  Tensor coordinates;
};
std::vector<Spacing> steps_of(std::span<const Scalar> steps);
std::vector<Spacing> coordinates_of(TensorList coordinates);
Dims dims_or_all(const Tensor& self, std::optional<int64_t> dim);

/// Slopes along `dims`, each with its own spacing, or all with the only one.
std::vector<Tensor> slopes(const Tensor& self, IntArrayRef dims, std::span<const Spacing> spacing,
                           int64_t edge_order);
/// The same where spacings are a list: one for each of the dimensions.
std::vector<Tensor> slopes_of_list(const Tensor& self, IntArrayRef dims, const std::vector<Spacing>& spacing,
                                   int64_t edge_order);

Tensor quantile_of(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool ignores_nan, const char* op);

}  // namespace tenon::ops
