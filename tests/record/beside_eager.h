// What the tests of this room share: the reference is always the same lines, eager.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"
#include "tenon/tenon.h"

namespace tenon::testing {

/// Everything is recorded, however small.
inline constexpr record::ScopeOptions kAll{.threshold = 0};

using Tensors = std::vector<Tensor>;

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.sizes().to_dims() != b.sizes().to_dims() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

/// All that a program can see of tensors: headers, versions, bytes of memory, elements.
inline void expect_same(const Tensors& got, const Tensors& wanted, const char* how) {
  ASSERT_EQ(got.size(), wanted.size()) << how;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].defined(), wanted[i].defined()) << how << ", tensor " << i;
    if (!got[i].defined() || !wanted[i].defined()) continue;
    EXPECT_TRUE(same_bits(got[i], wanted[i])) << how << ", tensor " << i;
    EXPECT_EQ(got[i].strides(), wanted[i].strides()) << how << ", tensor " << i;
    EXPECT_EQ(got[i].storage_offset(), wanted[i].storage_offset()) << how << ", tensor " << i;
    EXPECT_EQ(got[i].storage().nbytes(), wanted[i].storage().nbytes()) << how << ", tensor " << i;
    EXPECT_EQ(got[i]._version(), wanted[i]._version()) << how << ", tensor " << i;
  }
}

/// Runs `program(compile)`, which makes all that it needs and returns tensors, with and without compiling;
/// `compile` takes a function. What is compiled runs with everything recorded, and as users do.
template <class F>
void alike(F program) {
  manual_seed(0);
  const Tensors wanted = program([](auto f) { return f; });
  manual_seed(0);
  expect_same(program([](auto f) { return compile(f, kAll); }), wanted, "everything recorded");
  manual_seed(0);
  expect_same(program([](auto f) { return compile(f); }), wanted, "by default");
}

inline uint64_t planned() { return record::Recorder::current().counts().planned; }

/// 0, 1, ... / 4 - 1.
inline Tensor ramp(IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return (arange(n).to(kFloat32) / 4 - 1).reshape(sizes);
}

/// The text of what `f()` throws; empty if it throws nothing.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace tenon::testing
