// Kernels of openreg's own, as examples of the registration macros.
#include <cmath>

#include "strided.h"
#include "tenon/abi/kernel.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;

/// |x| without a sign bit, as numbers of type T are in memory.
template <class T>
abi::Tensor without_sign(abi::Call& call, const abi::Tensor& self, T sign) {
  abi::Tensor result = abi::empty_like(self);
  const int64_t n = self.view().numel;
  if (n == 0) return result;
  auto& backend = call.self<Backend>();
  const Strided<T> from(backend, self.view()), to(backend, result.view());
  backend.queues.give(key_of(call.stream()), [from, to, n, sign] {
    for (int64_t i = 0; i < n; ++i) to.at(i) = static_cast<T>(from.at(i) & ~sign);
  });
  return result;
}

/// |x| of float32 and of float8, in which no other device computes; forward alone: backward says that there
/// is no derivative.
abi::Tensor custom_abs(abi::Call& call, const abi::Tensor& self) {
  switch (self.view().dtype) {
    case TENON_DTYPE_FLOAT32:
      return without_sign<uint32_t>(call, self, 0x80000000u);
    case TENON_DTYPE_FLOAT8_E4M3FN:
    case TENON_DTYPE_FLOAT8_E5M2:
      return without_sign<uint8_t>(call, self, 0x80);
    default:
      call.decline();
  }
}

/// The stub of abs, abs_ and abs.out, for float32: any strides, and a plain loop where there are none to
/// mind.
void abs(abi::Call& call, const abi::Tensor& out, const abi::Tensor& self) {
  const TenonTensorView x = self.view(), y = out.view();
  if (x.dtype != TENON_DTYPE_FLOAT32 || y.dtype != x.dtype) call.decline();
  auto& backend = call.self<Backend>();
  const Strided<float> from(backend, x), to(backend, y);
  const bool plain = (x.flags & y.flags & TENON_TENSOR_CONTIGUOUS) != 0;
  backend.queues.give(key_of(call.stream()), [from, to, plain, n = x.numel] {
    if (plain) {
      for (int64_t i = 0; i < n; ++i) to.data[i] = std::fabs(from.data[i]);
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
  const Strided<float> to(backend, x);
  backend.queues.give(key_of(call.stream()), [to, n = x.numel, v = static_cast<float>(wanted)] {
    for (int64_t i = 0; i < n; ++i) to.at(i) = v;
  });
}

/// The sum of float32 numbers, on the host, under a guard: for what a device cannot do by itself. A NaN is an
/// error.
double sum_on_host(abi::Call& call, const abi::Tensor& self) {
  const TenonTensorView x = self.view();
  if (x.dtype != TENON_DTYPE_FLOAT32 || !(x.flags & TENON_TENSOR_CONTIGUOUS)) call.decline();
  const MemoryGuard guard(call.self<Backend>(), call.stream(), x.address, static_cast<uint64_t>(x.numel) * 4);
  double sum = 0;
  for (int64_t i = 0; i < x.numel; ++i) {
    const float element = reinterpret_cast<const float*>(x.address)[i];
    if (std::isnan(element)) throw abi::Error(TENON_ERROR_VALUE, "element " + std::to_string(i) + " is NaN");
    sum += element;
  }
  return sum;
}

/// How often the host has waited for the devices of this openreg, for tests of what must not wait.
int64_t waits(abi::Call& call, const abi::Tensor&) {
  return static_cast<int64_t>(call.self<Backend>().queues.waits());
}

/// How many expressions they were given, for tests of what runs as one.
int64_t launches(abi::Call& call, const abi::Tensor&) {
  return static_cast<int64_t>(call.self<Backend>().launches.load(std::memory_order_relaxed));
}

}  // namespace
}  // namespace openreg

TENON_LIBRARY(openreg, m) {
  m.def("custom_abs(Tensor self) -> Tensor", {TENON_TAG_POINTWISE});
  m.def("sum_on_host(Tensor self) -> float");
  m.def("waits(Tensor self) -> int");
  m.def("launches(Tensor self) -> int");
}
TENON_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("custom_abs", &openreg::custom_abs);
  m.impl("sum_on_host", &openreg::sum_on_host);
  m.impl("waits", &openreg::waits);
  m.impl("launches", &openreg::launches);
}
TENON_LIBRARY_IMPL(aten, PrivateUse1, m) { m.stub("fill", &openreg::fill); }
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &openreg::abs)
