// The CPU's functions for the stubs of tenon/ops/device_stubs.h, which says what each does.
// Used by stubs.cc alone.
#pragma once

#include <span>

#include "tenon/core/tensor.h"
#include "tenon/ops/window/axis.h"

namespace tenon::ops {
struct IndexedCall;
struct ReduceCall;
}  // namespace tenon::ops

namespace tenon::cpu {

void copy(const Tensor& dst, const Tensor& src, bool non_blocking);
void fill(const Tensor& dst, const Scalar& value);
void arange(const Tensor& dst, const Scalar& start, const Scalar& step);
void linspace(const Tensor& dst, double start, double end);
bool equal(const Tensor& a, const Tensor& b);

Tensor nonzero(const Tensor& self);
Tensor masked_select(const Tensor& self, const Tensor& mask);
void indexed(const ops::IndexedCall& call);
void reduce(const ops::ReduceCall& call);

void axes_sum(const Tensor& self, std::span<const Axis> axes, bool accumulate, Tensor& out);
void axes_max(const Tensor& self, std::span<const Axis> axes, Tensor& values, Tensor& indices);
void axes_max_values(const Tensor& self, std::span<const Axis> axes, Tensor& out);
void axes_copy(const Tensor& self, std::span<const Axis> axes, const Scalar& otherwise, Tensor& out);

void uniform(const Tensor& dst, double from, double to, PhiloxState state);
void normal(const Tensor& dst, double mean, double std, PhiloxState state);
void randint(const Tensor& dst, int64_t low, uint64_t range, PhiloxState state);
void bernoulli(const Tensor& dst, const Tensor& p, PhiloxState state);
void randperm(const Tensor& dst, PhiloxState state);

}  // namespace tenon::cpu
