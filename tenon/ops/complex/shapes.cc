// Shapes of complex tensors made of their parts.
#include <fmt/core.h>

#include "tenon/generated/complex/shapes.h"
#include "tenon/iter/result_shape.h"

namespace tenon::ops::shape {

void complex(OutputSpecs& out, HeaderRef real, HeaderRef imag) {
  TENON_CHECK(real.dtype() == DType::Float32 || real.dtype() == DType::Float64, NotImplemented,
              fmt::format("complex: expected `real` of float32 or float64, got {}", name(real.dtype())));
  TENON_CHECK(
      real.dtype() == imag.dtype(), Type,
      fmt::format("complex: `imag` is {}, expected {} as `real`", name(imag.dtype()), name(real.dtype())));
  const Dims sizes = broadcast_shapes(real.sizes(), imag.sizes(), "complex");
  // As pointwise operators do: in the order of the first operand, where that is not broadcast.
  if (IntArrayRef(sizes) == real.sizes())
    out.set_like(0, real, complex_dtype(real.dtype()));
  else
    out.set(0, sizes, complex_dtype(real.dtype()));
}

}  // namespace tenon::ops::shape
