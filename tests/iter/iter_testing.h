// What the tests of this room share: tensors with any geometry and their elements one by one, in plain loops
// that use nothing of the iterator.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tenon/core/dispatch_dtype.h"
#include "tenon/iter/pointwise.h"
#include "tests/ops/testing.h"

namespace tenon::testing {

/// Element `index` of a host tensor as a double (exact for all but int64 beyond 2^53).
inline double get(const Tensor& t, const std::vector<int64_t>& index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
  const char* p = static_cast<const char*>(t.data_ptr()) + at * static_cast<int64_t>(t.itemsize());
  return TENON_DISPATCH_REAL_TYPES(t.dtype(), "get", [&]() -> double {
    scalar_t v;
    std::memcpy(&v, p, sizeof v);
    return static_cast<double>(v);
  });
}

inline void set(const Tensor& t, const std::vector<int64_t>& index, double value) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
  char* p = static_cast<char*>(t.data_ptr()) + at * static_cast<int64_t>(t.itemsize());
  TENON_DISPATCH_REAL_TYPES(t.dtype(), "set", [&] {
    const auto v = static_cast<scalar_t>(value);
    std::memcpy(p, &v, sizeof v);
  });
}

/// Calls f(index) for every index of a shape, the last dimension fastest.
template <class F>
void for_each_index(IntArrayRef sizes, F&& f) {
  std::vector<int64_t> index(sizes.size(), 0);
  for (const int64_t s : sizes) {
    if (s == 0) return;
  }
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// The index of an operand of `sizes` for element `index` of a broadcast result.
inline std::vector<int64_t> broadcast_index(IntArrayRef sizes, const std::vector<int64_t>& index) {
  std::vector<int64_t> own(sizes.size());
  const size_t lead = index.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) own[d] = sizes[d] == 1 ? 0 : index[d + lead];
  return own;
}

inline Tensor tensor_of(const std::vector<double>& v, IntArrayRef sizes, DType dtype = DType::Float32) {
  Tensor t = make_empty(sizes, dtype);
  size_t next = 0;
  for_each_index(sizes, [&](const auto& index) { set(t, index, v[next++]); });
  return t;
}
inline Tensor vector_of(const std::vector<double>& v, DType dtype = DType::Float32) {
  return tensor_of(v, {static_cast<int64_t>(v.size())}, dtype);
}
inline Tensor transposed(const Tensor& t) {
  Dims sizes = t.sizes().to_dims(), strides = t.strides().to_dims();
  std::swap(sizes[0], sizes[1]);
  std::swap(strides[0], strides[1]);
  return make_view(t, sizes, strides, t.storage_offset());
}
inline Tensor flipped(const Tensor& t, size_t dim) {
  Dims strides = t.strides().to_dims();
  const int64_t offset = t.storage_offset() + (t.sizes()[dim] - 1) * strides[dim];
  strides[dim] = -strides[dim];
  return make_view(t, t.sizes(), strides, offset);
}

/// A tensor of a random arrangement: permuted, with gaps, backwards, expanded (unless it is to be written),
/// offset. Elements are small integers, so that sums and products are exact in every dtype.
inline Tensor random_tensor(std::mt19937& rng, IntArrayRef sizes, DType dtype, bool may_repeat = true) {
  const auto pick = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  std::vector<size_t> order(sizes.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (pick(2))
    std::shuffle(order.begin(), order.end(), rng);
  else
    std::reverse(order.begin(), order.end());
  Dims strides(sizes.size());
  int64_t next = 1, low = 0;
  for (const size_t d : order) {
    const int64_t size = std::max<int64_t>(sizes[d], 1);
    int64_t step = next * (1 + (pick(4) == 0));
    next = step * size;
    if (may_repeat && pick(8) == 0) step = 0;
    if (pick(4) == 0) step = -step;
    strides[d] = step;
    if (step < 0) low += step * (size - 1);
  }
  const int64_t offset = pick(5);
  Tensor storage = make_empty({next + offset}, dtype);
  for (int64_t i = 0; i < storage.numel(); ++i) {
    const bool is_unsigned = dtype == DType::UInt8;
    set(storage, {i}, dtype == DType::Bool ? pick(2) : pick(9) - (is_unsigned ? 0 : 4));
  }
  return make_view(storage, sizes, strides, offset - low);
}

/// Text of an Error of that kind, or a failure.
template <class F>
std::string error_of(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline constexpr const char* kSelfOther[] = {"self", "other"};
inline constexpr const char* kSelf[] = {"self"};
inline constexpr const char* kAlpha[] = {"alpha"};
inline constexpr const char* kOther[] = {"other"};
inline constexpr const char* kThree[] = {"self", "tensor1", "tensor2"};
inline constexpr const char* kValue[] = {"value"};

/// add(self, other, alpha) as a generated operator would be, without compiled kernels.
inline const PointwiseInfo kAdd{
    .name = "add", .text = "self + alpha * other", .tensor_names = kSelfOther, .scalar_names = kAlpha};
/// The same sum in an order that the build prints no kernel for.
inline const PointwiseInfo kAddInterpreted{
    .name = "add", .text = "alpha * other + self", .tensor_names = kSelfOther, .scalar_names = kAlpha};
inline const PointwiseInfo kMul{
    .name = "mul", .text = "self * other", .tensor_names = kSelfOther, .scalar_names = {}};
/// As addcmul, for which the build prints kernels.
inline const PointwiseInfo kAddProduct{.name = "addcmul",
                                       .text = "self + value * tensor1 * tensor2",
                                       .tensor_names = kThree,
                                       .scalar_names = kValue};
inline const PointwiseInfo kMulScalar{.name = "mul",
                                      .text = "self * other",
                                      .tensor_names = kSelf,
                                      .scalar_names = kOther,
                                      .promoting_scalars = 1};
inline const PointwiseInfo kLess{.name = "lt",
                                 .text = "self < other",
                                 .tensor_names = kSelfOther,
                                 .scalar_names = {},
                                 .result = ResultRule::Bool};
inline const PointwiseInfo kDiv{.name = "div",
                                .text = "self / other",
                                .tensor_names = kSelfOther,
                                .scalar_names = {},
                                .compute = ComputeRule::Float};

inline Tensor call(const PointwiseInfo& info, std::vector<const Tensor*> tensors,
                   std::vector<Scalar> scalars = {}) {
  std::vector<const Scalar*> pointers;
  for (const Scalar& s : scalars) pointers.push_back(&s);
  return pointwise(info, tensors, pointers);
}
inline Tensor add(const Tensor& a, const Tensor& b, Scalar alpha = 1) {
  return call(kAdd, {&a, &b}, {alpha});
}
inline void call_out(const PointwiseInfo& info, std::vector<const Tensor*> tensors,
                     std::vector<Scalar> scalars, Tensor& out, bool in_place) {
  std::vector<const Scalar*> pointers;
  for (const Scalar& s : scalars) pointers.push_back(&s);
  pointwise_out(info, tensors, pointers, out, in_place);
}

}  // namespace tenon::testing
