// Tensors of every stride for operator tests, and element access that uses no operator.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tenon/core/half.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/indexing/tensor_index.h"
#include "tenon/ops/tensor_operators.h"
#include "tenon/record/compile.h"

namespace tenon::testing {

/// Expects `expression` to throw Error of a kind, with a text in its message.
template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  try {
    f();
    record::flush();  // where tests are recorded, errors of values come now
    ADD_FAILURE() << "expected an error with: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

/// The element at a position, by pointer arithmetic.
inline double element(const Tensor& t, std::span<const int64_t> at) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += at[d] * t.strides()[d];
  const void* base = t.data_ptr();
  switch (t.dtype()) {
    case DType::Bool:
      return static_cast<const bool*>(base)[offset];
    case DType::UInt8:
      return static_cast<const uint8_t*>(base)[offset];
    case DType::Int8:
      return static_cast<const int8_t*>(base)[offset];
    case DType::Int16:
      return static_cast<const int16_t*>(base)[offset];
    case DType::Int32:
      return static_cast<const int32_t*>(base)[offset];
    case DType::Int64:
      return static_cast<double>(static_cast<const int64_t*>(base)[offset]);
    case DType::Float16:
      return static_cast<float>(static_cast<const Half*>(base)[offset]);
    case DType::BFloat16:
      return static_cast<float>(static_cast<const BFloat16*>(base)[offset]);
    case DType::Float32:
      return static_cast<const float*>(base)[offset];
    default:
      return static_cast<const double*>(base)[offset];
  }
}

/// Calls f(position) for every element in logical order.
template <class F>
void for_each_position(IntArrayRef sizes, F&& f) {
  for (const int64_t s : sizes) {
    if (s == 0) return;
  }
  std::vector<int64_t> at(sizes.size(), 0);
  for (;;) {
    f(std::span<const int64_t>(at));
    size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// All elements in logical order.
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> all;
  for_each_position(t.sizes(), [&](std::span<const int64_t> at) { all.push_back(element(t, at)); });
  return all;
}

inline void expect_values(const Tensor& t, const std::vector<double>& want, double tolerance = 0) {
  const std::vector<double> got = values(t);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i;
    else if (tolerance == 0)
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << "element " << i;
  }
}

inline void expect_sizes(const Tensor& t, std::vector<int64_t> sizes) {
  EXPECT_EQ(std::vector<int64_t>(t.sizes().begin(), t.sizes().end()), sizes);
}
inline void expect_strides(const Tensor& t, std::vector<int64_t> strides) {
  EXPECT_EQ(std::vector<int64_t>(t.strides().begin(), t.strides().end()), strides);
}

/// Numbers in [-2, 2], or small integers, written by hand into fresh memory.
inline Tensor random_tensor(IntArrayRef sizes, DType dtype, uint32_t seed) {
  Tensor t = make_empty(sizes, dtype);
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> real(-2, 2);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double v = is_floating_point(dtype) ? real(engine) : std::floor(real(engine) * 3);
    switch (dtype) {
      case DType::Bool:
        static_cast<bool*>(t.data_ptr())[i] = v > 0;
        break;
      case DType::UInt8:
        static_cast<uint8_t*>(t.data_ptr())[i] = static_cast<uint8_t>(std::abs(v));
        break;
      case DType::Int8:
        static_cast<int8_t*>(t.data_ptr())[i] = static_cast<int8_t>(v);
        break;
      case DType::Int16:
        static_cast<int16_t*>(t.data_ptr())[i] = static_cast<int16_t>(v);
        break;
      case DType::Int32:
        static_cast<int32_t*>(t.data_ptr())[i] = static_cast<int32_t>(v);
        break;
      case DType::Int64:
        static_cast<int64_t*>(t.data_ptr())[i] = static_cast<int64_t>(v);
        break;
      case DType::Float16:
        static_cast<Half*>(t.data_ptr())[i] = Half(static_cast<float>(v));
        break;
      case DType::BFloat16:
        static_cast<BFloat16*>(t.data_ptr())[i] = BFloat16(static_cast<float>(v));
        break;
      case DType::Float32:
        static_cast<float*>(t.data_ptr())[i] = static_cast<float>(v);
        break;
      default:
        static_cast<double*>(t.data_ptr())[i] = v;
        break;
    }
  }
  return t;
}

/// The same shape in many geometries: contiguous, transposed, reversed, every other element behind an offset,
/// expanded.
inline std::vector<Tensor> every_stride(IntArrayRef sizes, DType dtype, uint32_t seed = 1) {
  std::vector<Tensor> all{random_tensor(sizes, dtype, seed)};
  if (sizes.empty()) return all;
  const size_t ndim = sizes.size();
  Dims reversed(ndim);
  for (size_t d = 0; d < ndim; ++d) reversed[d] = sizes[ndim - 1 - d];
  const Tensor t = random_tensor(reversed, dtype, seed + 1);
  Dims strides(ndim);
  for (size_t d = 0; d < ndim; ++d) strides[d] = t.strides()[ndim - 1 - d];
  all.push_back(make_view(t, sizes, strides, 0));

  const Tensor r = random_tensor(sizes, dtype, seed + 2);
  int64_t offset = 0;
  for (size_t d = 0; d < ndim; ++d) {
    strides[d] = -r.strides()[d];
    if (sizes[d] > 0) offset += (sizes[d] - 1) * r.strides()[d];
  }
  all.push_back(make_view(r, sizes, strides, offset));

  Dims twice = sizes.to_dims();
  for (int64_t& s : twice) s = 2 * s + 1;
  const Tensor wide = random_tensor(twice, dtype, seed + 3);
  offset = 0;
  for (size_t d = 0; d < ndim; ++d) {
    strides[d] = 2 * wide.strides()[d];
    offset += wide.strides()[d];
  }
  all.push_back(make_view(wide, sizes, strides, offset));

  Dims narrow = sizes.to_dims();
  narrow[0] = 1;
  const Tensor n = random_tensor(narrow, dtype, seed + 4);
  strides = n.strides().to_dims();
  strides[0] = 0;
  all.push_back(make_view(n, sizes, strides, 0));
  return all;
}

}  // namespace tenon::testing
