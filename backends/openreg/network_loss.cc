#include <array>

#include "network.h"
#include "strided.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;
using abi::Tensor;

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

void register_loss(abi::Library& m) {
  m.stub("nll_loss_forward", &nll_loss_forward);
  m.stub("nll_loss_backward", &nll_loss_backward);
  m.stub("uniform", &uniform);
}

}  // namespace openreg
