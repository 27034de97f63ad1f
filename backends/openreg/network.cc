// Kernels for what trains a small classifier in float32, with the CPU's bits: products, sums, softmax, and in
// network_loss.cc the loss and uniform numbers. With them no call of such a training step falls back, so that
// it can be captured. Option kernels=network; without it these operators run on host copies.
#include "network.h"

#include <cmath>

#include "strided.h"
#include "tenon/abi/operator.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;
using abi::Tensor;

Tensor minus(const Tensor& a, const Tensor& b) {
  return abi::call_operator("aten::sub.Tensor", a, b, abi::scalar(1));
}

/// The product of a block of at most 256 of k after another, each a chain of fused multiply-adds.
float product(const Strided<float>& a, const Strided<float>& b, int64_t i, int64_t j) {
  const int64_t n = a.sizes[1];
  float total = 0;
  for (int64_t first = 0; first < n; first += 256) {
    float s = 0;
    for (int64_t k = first; k < std::min(n, first + 256); ++k) s = std::fma(a.at(i, k), b.at(k, j), s);
    total = first == 0 ? s : total + s;
  }
  return total;
}

void mm(abi::Call& call, const Tensor& self, const Tensor& mat2, const Tensor& out) {
  const TenonTensorView a = self.view(), b = mat2.view(), c = out.view();
  if (!is_matrix(a) || !is_matrix(b) || !is_matrix(c)) call.decline();
  auto& backend = call.self<Backend>();
  const Strided<float> x(backend, a), y(backend, b), z(backend, c);
  backend.queues.give(key_of(call.stream()), [x, y, z] {
    for (int64_t i = 0; i < z.sizes[0]; ++i) {
      for (int64_t j = 0; j < z.sizes[1]; ++j) z.at(i, j) = product(x, y, i, j);
    }
  });
}

void addmm(abi::Call& call, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
           const TenonScalar& beta, const TenonScalar& alpha, const Tensor& out) {
  const TenonTensorView a = mat1.view(), b = mat2.view(), c = out.view(), s = self.view();
  const bool ones = beta.kind == 1 && beta.value.i == 1 && alpha.kind == 1 && alpha.value.i == 1;
  if (!is_matrix(a) || !is_matrix(b) || !is_matrix(c) || !ones || s.dtype != TENON_DTYPE_FLOAT32 ||
      s.ndim != 1 || s.sizes[0] != c.sizes[1])
    call.decline();
  auto& backend = call.self<Backend>();
  const Strided<float> x(backend, a), y(backend, b), z(backend, c), bias(backend, s);
  backend.queues.give(key_of(call.stream()), [x, y, z, bias] {
    for (int64_t i = 0; i < z.sizes[0]; ++i) {
      for (int64_t j = 0; j < z.sizes[1]; ++j) z.at(i, j) = product(x, y, i, j) + bias.at(j);
    }
  });
}

/// A column of one number for each row of a matrix: f(row, columns).
template <class F>
Tensor of_rows(abi::Call& call, const Tensor& self, F f) {
  const TenonTensorView v = self.view();
  const Tensor result = abi::empty({v.sizes[0], 1}, TENON_DTYPE_FLOAT32, v.device);
  auto& backend = call.self<Backend>();
  const Strided<float> x(backend, v), to(backend, result.view());
  backend.queues.give(key_of(call.stream()), [x, to, f] {
    for (int64_t i = 0; i < x.sizes[0]; ++i)
      to.at(i, 0) = f(x.sizes[1], [&](int64_t j) { return x.at(i, j); });
  });
  return result;
}
Tensor sum_of_rows(abi::Call& call, const Tensor& self) {
  return of_rows(call, self, [](int64_t n, auto&& element) { return sum_of(n, element); });
}

/// Results are contiguous, as the CPU's are; those of pointwise operators have the strides of what they are
/// given.
void check_rows(abi::Call& call, const Tensor& self, int64_t dim) {
  const TenonTensorView v = self.view();
  if (!is_matrix(v) || !(v.flags & TENON_TENSOR_CONTIGUOUS) || (dim != 1 && dim != -1) || v.sizes[1] < 1 ||
      v.sizes[1] > kChunk)
    call.decline();
}

Tensor log_softmax(abi::Call& c, const Tensor& self, int64_t dim, bool) {
  check_rows(c, self, dim);
  const Tensor most = of_rows(c, self, [](int64_t n, auto&& element) {
    float m = element(0);
    for (int64_t i = 1; i < n; ++i) m = std::isnan(m) || m >= element(i) ? m : element(i);
    return m;
  });
  const Tensor z = minus(self, most);
  return minus(z, abi::call_operator("aten::log", sum_of_rows(c, abi::call_operator("aten::exp", z))));
}

Tensor log_softmax_backward(abi::Call& c, const Tensor& grad, const Tensor& output, int64_t dim,
                            TenonDType dtype) {
  check_rows(c, grad, dim);
  if (dtype != TENON_DTYPE_FLOAT32 || !is_matrix(output.view())) c.decline();
  const Tensor softmax = abi::call_operator("aten::exp", output);
  return minus(grad, abi::call_operator("aten::mul.Tensor", softmax, sum_of_rows(c, grad)));
}

Tensor sum(abi::Call& call, const Tensor& self, const std::optional<abi::IntList>& dim, bool keepdim,
           const std::optional<TenonDType>& dtype) {
  const TenonTensorView v = self.view();
  if (!is_matrix(v) || !dim || dim->size != 1 || (*dim)[0] != 0 || v.sizes[0] > kChunk ||
      dtype.value_or(v.dtype) != v.dtype)
    call.decline();
  auto& backend = call.self<Backend>();
  const std::vector<int64_t> sizes =
      keepdim ? std::vector<int64_t>{1, v.sizes[1]} : std::vector<int64_t>{v.sizes[1]};
  const Tensor result = abi::empty(sizes, v.dtype, v.device);
  const Strided<float> x(backend, v), to(backend, result.view());
  backend.queues.give(key_of(call.stream()), [x, to] {
    for (int64_t j = 0; j < x.sizes[1]; ++j)
      to.at(j) = sum_of(x.sizes[0], [&](int64_t i) { return x.at(i, j); });
  });
  return result;
}

}  // namespace

void register_network(abi::Library& m) {
  m.stub("mm", &mm);
  m.stub("addmm", &addmm);
  m.impl("_log_softmax", &log_softmax);
  m.impl("_log_softmax_backward_data", &log_softmax_backward);
  m.impl("sum.dim_IntList", &sum);
  register_loss(m);
}

}  // namespace openreg
