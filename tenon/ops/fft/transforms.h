// What PyTorch's names of Fourier transforms are made of. Called by the entries of fft.yaml.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// What a family of names computes: along one dimension, two or all of them.
struct FftFamily;
extern const FftFamily kFft, kIfft, kRfft, kIrfft, kHfft, kIhfft;

Tensor transformed_along(const FftFamily& family, const Tensor& self, std::optional<int64_t> n, int64_t dim,
                         std::optional<std::string_view> norm, const char* op);
Tensor transformed_along(const FftFamily& family, const Tensor& self, std::optional<IntArrayRef> s,
                         std::optional<IntArrayRef> dim, std::optional<std::string_view> norm,
                         const char* op);

/// Whole numbers from 0 up to `end`, and after them from `again` up to 0, over n * d.
Tensor frequencies(int64_t n, double d, int64_t end, int64_t again, std::optional<DType> dtype,
                   std::optional<Device> device, const char* op);
/// Frequency 0 moved to the middle of dimensions, or with `up` false back to their beginning.
Tensor frequencies_shifted(const Tensor& self, std::optional<IntArrayRef> dim, bool up, const char* op);

}  // namespace tenon::ops
