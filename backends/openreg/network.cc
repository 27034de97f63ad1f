// Kernels for what trains a small classifier in float32, with the CPU's bits: products, sums, softmax, the
// loss, uniform numbers. With them no call of such a training step falls back, so that it can be captured.
// Option kernels=network; without it these operators run on host copies.
#include "network.h"

#include <array>
#include <cmath>

#include "strided.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;
using abi::Tensor;

constexpr int64_t kChunk = 1024;

/// The sum of up to kChunk numbers by the tree that Tenon's reductions have: sixteen lanes, folded in halves.
template <class F>
float sum_of(int64_t n, F&& element) {
  std::array<float, 16> lanes{};
  for (int64_t i = 0; i < n; ++i) lanes[static_cast<size_t>(i % 16)] += element(i);
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

bool is_matrix(const TenonTensorView& v) { return v.dtype == TENON_DTYPE_FLOAT32 && v.ndim == 2; }

/// Calls an operator of one tensor, or of two.
Tensor call(const char* name, const Tensor& a, const Tensor& b = {}) {
  const TenonOperator* op = nullptr;
  abi::check(abi::host().op_find(name, &op));
  TenonScalar one{};
  one.kind = 1;
  one.value.i = 1;
  TenonCell args[3] = {}, result{};
  args[0].p = a.get();
  args[1].p = b.get();
  args[2].p = &one;
  const uint8_t tags[] = {TENON_CELL_TENSOR, TENON_CELL_TENSOR, TENON_CELL_SCALAR};
  uint8_t tag = 0;
  const std::string_view text = name;
  const uint32_t count = !b.defined() ? 1 : text == "aten::sub.Tensor" ? 3 : 2;
  abi::check(abi::host().op_call(op, args, tags, count, &result, &tag, 1));
  return Tensor::adopt(static_cast<TenonTensor*>(result.p));
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

void check_rows(abi::Call& call, const Tensor& self, int64_t dim) {
  const TenonTensorView v = self.view();
  if (!is_matrix(v) || (dim != 1 && dim != -1) || v.sizes[1] < 1 || v.sizes[1] > kChunk) call.decline();
}

Tensor log_softmax(abi::Call& c, const Tensor& self, int64_t dim, bool) {
  check_rows(c, self, dim);
  const Tensor most = of_rows(c, self, [](int64_t n, auto&& element) {
    float m = element(0);
    for (int64_t i = 1; i < n; ++i) m = std::isnan(m) || m >= element(i) ? m : element(i);
    return m;
  });
  const Tensor z = call("aten::sub.Tensor", self, most);
  return call("aten::sub.Tensor", z, call("aten::log", sum_of_rows(c, call("aten::exp", z))));
}

Tensor log_softmax_backward(abi::Call& c, const Tensor& grad, const Tensor& output, int64_t dim,
                            TenonDType dtype) {
  check_rows(c, grad, dim);
  if (dtype != TENON_DTYPE_FLOAT32 || !is_matrix(output.view())) c.decline();
  return call("aten::sub.Tensor", grad,
              call("aten::mul.Tensor", call("aten::exp", output), sum_of_rows(c, grad)));
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

/// Whether a loss is the mean over rows without weights. Targets are on the device, so nothing checks them
/// before the kernel runs: a row whose target is no class makes the loss NaN.
bool is_plain_loss(const TenonTensorView& self, const TenonTensorView& target, const Tensor& weight,
                   int64_t reduction, int64_t ignored) {
  return is_matrix(self) && target.dtype == TENON_DTYPE_INT64 && target.ndim == 1 && !weight.defined() &&
         reduction == 1 && ignored < 0 && self.sizes[0] <= kChunk && self.sizes[0] > 0;
}

void nll_loss_forward(abi::Call& call, const Tensor& self, const Tensor& target, const Tensor& weight,
                      int64_t reduction, int64_t ignored, const Tensor& output, const Tensor& total_weight) {
  if (!is_plain_loss(self.view(), target.view(), weight, reduction, ignored)) call.decline();
  auto& backend = call.self<Backend>();
  const Strided<float> x(backend, self.view()), to(backend, output.view()),
      total(backend, total_weight.view());
  const Strided<int64_t> classes(backend, target.view());
  backend.queues.give(key_of(call.stream()), [x, to, total, classes] {
    const int64_t n = x.sizes[0];
    total.at(0) = static_cast<float>(n);
    to.at(0) = sum_of(n,
                      [&](int64_t i) {
                        const int64_t c = classes.at(i);
                        return c < 0 || c >= x.sizes[1] ? std::nanf("") : -1.0f * x.at(i, c);
                      }) /
               total.at(0);
  });
}

void nll_loss_backward(abi::Call& call, const Tensor& grad, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignored, const Tensor& total_weight,
                       const Tensor& out) {
  if (!is_plain_loss(self.view(), target.view(), weight, reduction, ignored)) call.decline();
  auto& backend = call.self<Backend>();
  const Strided<float> g(backend, grad.view()), to(backend, out.view()), total(backend, total_weight.view());
  const Strided<int64_t> classes(backend, target.view());
  backend.queues.give(key_of(call.stream()), [g, to, total, classes] {
    for (int64_t i = 0; i < to.sizes[0]; ++i) {
      for (int64_t c = 0; c < to.sizes[1]; ++c)
        to.at(i, c) = c == classes.at(i) ? -1.0f * g.at(0) / total.at(0) : 0.0f;
    }
  });
}

/// Block `index` of the stream of `seed`: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t index) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t key[] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

/// Four numbers of a block of the stream; in captured work the position comes from the device's memory.
void uniform(abi::Call& call, const Tensor& self, double from, double to,
             const abi::IntList& place_in_stream) {
  const TenonTensorView v = self.view();
  if (v.dtype != TENON_DTYPE_FLOAT32 || place_in_stream.size < 3) call.decline();
  auto& backend = call.self<Backend>();
  const Strided<float> x(backend, v);
  const auto at = static_cast<uint64_t>(place_in_stream[2]);
  const auto* place =
      at == 0 ? nullptr
              : reinterpret_cast<const uint64_t*>(backend.memory(v.device.index).seen_by_device(at));
  backend.queues.give(
      key_of(call.stream()), [=, n = v.numel, seed = static_cast<uint64_t>(place_in_stream[0]),
                              offset = static_cast<uint64_t>(place_in_stream[1])] {
        const uint64_t key = place ? place[0] : seed, first = place ? place[1] + offset : offset;
        for (int64_t i = 0; i < n; ++i) {
          const uint32_t word = philox(key, first + static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
          const double u = static_cast<float>(word >> 8) * 0x1p-24f;
          const auto r = static_cast<float>(from + u * (to - from));
          x.at(i) = r < to || from == to ? r : static_cast<float>(from);
        }
      });
}

}  // namespace

void register_network(abi::Library& m) {
  m.stub("mm", &mm);
  m.stub("addmm", &addmm);
  m.stub("nll_loss_forward", &nll_loss_forward);
  m.stub("nll_loss_backward", &nll_loss_backward);
  m.stub("uniform", &uniform);
  m.impl("_log_softmax", &log_softmax);
  m.impl("_log_softmax_backward_data", &log_softmax_backward);
  m.impl("sum.dim_IntList", &sum);
}

}  // namespace openreg
