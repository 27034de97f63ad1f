// Kernels of openreg's own, as examples of the registration macros.
#include <cmath>

#include "backend.h"
#include "tenon/abi/kernel.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;

/// What the device sees of a float32 tensor, kept for a task that runs later.
struct Strided {
  explicit Strided(Backend& backend, const TenonTensorView& v)
      : data(backend.memory(v.device.index).seen_by_device(v.address)),
        sizes(v.sizes, v.sizes + v.ndim),
        strides(v.strides, v.strides + v.ndim) {}

  /// The i-th element in logical order.
  float& at(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) offset += i % sizes[d] * strides[d];
    return reinterpret_cast<float*>(data)[offset];
  }
  char* data;
  std::vector<int64_t> sizes, strides;
};

/// |x| of float32, forward alone: backward says that there is no derivative.
abi::Tensor custom_abs(abi::Call& call, const abi::Tensor& self) {
  const TenonTensorView x = self.view();
  if (x.dtype != TENON_DTYPE_FLOAT32) call.decline();
  abi::Tensor result = abi::empty_like(self);
  if (x.numel == 0) return result;
  auto& backend = call.self<Backend>();
  const Strided from(backend, x), to(backend, result.view());
  backend.queues.give(key_of(call.stream()), [from, to, n = x.numel] {
    for (int64_t i = 0; i < n; ++i) to.at(i) = std::fabs(from.at(i));
  });
  return result;
}

/// The stub of abs, abs_ and abs.out, for float32: any strides, and a plain loop where there are none to
/// mind.
void abs(abi::Call& call, const abi::Tensor& out, const abi::Tensor& self) {
  const TenonTensorView x = self.view(), y = out.view();
  if (x.dtype != TENON_DTYPE_FLOAT32 || y.dtype != x.dtype) call.decline();
  auto& backend = call.self<Backend>();
  const Strided from(backend, x), to(backend, y);
  const bool plain = (x.flags & y.flags & TENON_TENSOR_CONTIGUOUS) != 0;
  backend.queues.give(key_of(call.stream()), [from, to, plain, n = x.numel] {
    if (plain) {
      const auto* in = reinterpret_cast<const float*>(from.data);
      auto* result = reinterpret_cast<float*>(to.data);
      for (int64_t i = 0; i < n; ++i) result[i] = std::fabs(in[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) to.at(i) = std::fabs(from.at(i));
    }
  });
}

/// The stub of fill_, zeros, full and their kin, for float32; other dtypes are filled from the host.
void fill(abi::Call& call, const abi::Tensor& self, const TenonScalar& value) {
  const TenonTensorView x = self.view();
  if (x.dtype != TENON_DTYPE_FLOAT32 || value.kind == 3) call.decline();
  const double wanted = value.kind == 2 ? value.value.d : static_cast<double>(value.value.i);
  auto& backend = call.self<Backend>();
  const Strided to(backend, x);
  backend.queues.give(key_of(call.stream()), [to, n = x.numel, v = static_cast<float>(wanted)] {
    for (int64_t i = 0; i < n; ++i) to.at(i) = v;
  });
}

}  // namespace
}  // namespace openreg

TENON_LIBRARY(openreg, m) { m.def("custom_abs(Tensor self) -> Tensor"); }
TENON_LIBRARY_IMPL(openreg, PrivateUse1, m) { m.impl("custom_abs", &openreg::custom_abs); }
TENON_LIBRARY_IMPL(aten, PrivateUse1, m) { m.stub("fill", &openreg::fill); }
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &openreg::abs)
