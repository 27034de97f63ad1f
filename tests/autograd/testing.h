// What the tests of this room share: small tensors from numbers and back, and derivatives by finite
// differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tenon/autograd/autograd.h"

namespace tenon::testing {

inline Tensor make(IntArrayRef sizes, const std::vector<double>& values, DType dtype = kFloat64) {
  Tensor t = make_empty(sizes, kFloat64);
  EXPECT_EQ(static_cast<size_t>(t.numel()), values.size());
  std::copy(values.begin(), values.end(), t.data_ptr<double>());
  return dtype == kFloat64 ? t : t.to(dtype);
}
inline Tensor leaf(IntArrayRef sizes, const std::vector<double>& values, DType dtype = kFloat64) {
  Tensor t = make(sizes, values, dtype);
  return t.requires_grad_();
}

/// The elements in logical order.
inline std::vector<double> values(const Tensor& t) {
  if (!t.defined()) return {};
  const NoGradGuard no_grad;
  const Tensor c = t.detach().to(kFloat64).contiguous();
  const double* p = c.data_ptr<double>();
  return {p, p + c.numel()};
}

inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A random tensor whose layout is one of: contiguous, transposed, expanded, negative strides, sliced.
inline Tensor random_like(const Tensor& t, int layout, std::mt19937_64& rng) {
  std::normal_distribution<double> normal;
  const auto fill = [&](IntArrayRef sizes) {
    Tensor r = make_empty(sizes, kFloat64);
    for (int64_t i = 0; i < r.numel(); ++i) r.data_ptr<double>()[i] = normal(rng);
    return r;
  };
  Dims sizes = t.sizes().to_dims();
  const int64_t last = t.dim() - 1;
  if (layout == 0 || last < 0) return fill(sizes);
  if (layout == 1) {
    std::reverse(sizes.begin(), sizes.end());
    Dims order(sizes.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = last - static_cast<int64_t>(d);
    return fill(sizes).permute(order);
  }
  if (layout == 2) {
    sizes[0] = 1;
    return fill(sizes).expand(t.sizes());
  }
  if (layout == 3) return fill(sizes).flip({last});
  sizes[last] *= 2;
  return fill(sizes).slice(last, 0, std::nullopt, 2);
}
inline constexpr int kLayouts = 5;

/// Compares `f`'s gradients with central differences in float64, for incoming gradients of every layout.
/// `inputs` are leaves; those that do not require grad are constants.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs, double tolerance = 1e-6) {
  std::mt19937_64 rng(7);
  for (int layout = 0; layout < kLayouts; ++layout) {
    std::vector<Tensor> outputs = f(inputs), directions, wanted;
    std::vector<bool> differentiable;
    for (const Tensor& t : outputs) differentiable.push_back(t.defined() && t.requires_grad());
    std::erase_if(outputs, [](const Tensor& t) { return !t.defined() || !t.requires_grad(); });
    ASSERT_FALSE(outputs.empty());
    for (const Tensor& out : outputs) directions.push_back(random_like(out, layout, rng));
    for (const Tensor& in : inputs) {
      if (in.requires_grad()) wanted.push_back(in);
    }
    const std::vector<Tensor> grads = autograd::grad(outputs, wanted, directions, {}, false, true);
    const auto project = [&] {
      const NoGradGuard no_grad;
      std::vector<Tensor> at = f(inputs);
      double total = 0;
      size_t used = 0;
      for (size_t o = 0; o < at.size(); ++o) {
        if (!differentiable[o]) continue;
        const std::vector<double> a = values(at[o]), b = values(directions[used++]);
        for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
      }
      return total;
    };
    constexpr double kStep = 1e-5;
    for (size_t k = 0; k < wanted.size(); ++k) {
      const std::vector<double> analytic =
          grads[k].defined() ? values(grads[k])
                             : std::vector<double>(static_cast<size_t>(wanted[k].numel()), 0.0);
      if (grads[k].defined()) {
        EXPECT_EQ(grads[k].sizes(), wanted[k].sizes());
      }
      double* x = wanted[k].data_ptr<double>();
      for (int64_t i = 0; i < wanted[k].numel(); ++i) {
        const double old = x[i];
        x[i] = old + kStep;
        const double above = project();
        x[i] = old - kStep;
        const double below = project();
        x[i] = old;
        const double numeric = (above - below) / (2 * kStep);
        EXPECT_NEAR(analytic[i], numeric, tolerance * std::max(1.0, std::abs(numeric)))
            << "input " << k << " element " << i << " gradient layout " << layout;
      }
    }
  }
}

/// The same for the gradients of `f` themselves, by its inputs and by the incoming gradient.
inline void check_second_gradients(const Function& f, const std::vector<Tensor>& inputs,
                                   double tolerance = 1e-5) {
  std::mt19937_64 rng(11);
  std::vector<Tensor> all = inputs;
  std::vector<Tensor> outputs = f(inputs);
  size_t count = 0;
  for (const Tensor& out : outputs) {
    if (!out.defined() || !out.requires_grad()) continue;
    Tensor direction = random_like(out, 0, rng);
    all.push_back(direction.requires_grad_());
    ++count;
  }
  const size_t n = inputs.size();
  check_gradients(
      [&](const std::vector<Tensor>& at) {
        const AutoGradMode record(true);  // the numeric side asks for values without history of its own
        const std::vector<Tensor> in(at.begin(), at.begin() + static_cast<int64_t>(n));
        std::vector<Tensor> out = f(in), wanted;
        std::erase_if(out, [](const Tensor& t) { return !t.defined() || !t.requires_grad(); });
        for (const Tensor& t : in) {
          if (t.requires_grad()) wanted.push_back(t);
        }
        const std::vector<Tensor> directions(at.begin() + static_cast<int64_t>(n), at.end());
        return autograd::grad(out, wanted, directions, true, true, true);
      },
      all, tolerance);
  EXPECT_GT(count, 0u);
}

}  // namespace tenon::testing
