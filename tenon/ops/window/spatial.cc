#include "tenon/ops/window/spatial.h"

#include <fmt/core.h>

#include "tenon/ops/forms/memory_format.h"

namespace tenon::ops {

std::string with_rank(const char* name, size_t rank) { return fmt::format("{}{}d", name, rank); }

Dims per_axis(IntArrayRef values, size_t rank, const char* op, const char* argument) {
  if (values.size() == rank) return values.to_dims();
  TENON_CHECK(
      values.size() == 1, Value,
      fmt::format("{}: `{}` must be one int or a list of {}, got {}", op, argument, rank, to_string(values)));
  return Dims(rank, values[0]);
}

void check_spatial(IntArrayRef sizes, size_t rank, const char* op, bool batched, bool no_channels) {
  const bool has_batch = sizes.size() == rank + 2;
  TENON_CHECK(has_batch || (!batched && sizes.size() == rank + 1), Shape,
              batched ? fmt::format("{}: `self` must have {} dimensions [N, C, ..], got {}", op, rank + 2,
                                    to_string(sizes))
                      : fmt::format("{}: `self` must have {} dimensions [C, ..] or {} [N, C, ..], got {}", op,
                                    rank + 1, rank + 2, to_string(sizes)));
  for (size_t d = no_channels ? sizes.size() - rank : has_batch ? 1 : 0; d < sizes.size(); ++d) {
    TENON_CHECK(sizes[d] != 0, Shape,
                fmt::format("{}: `self` may have no batch{}, but no other size of 0, got {}", op,
                            no_channels ? " or channels" : "", to_string(sizes)));
  }
}

Dims with_spatial(IntArrayRef sizes, IntArrayRef last) {
  Dims result(sizes.data(), sizes.size() - last.size());
  for (const int64_t n : last) result.push_back(n);
  return result;
}

void set_spatial(OutputSpecs& out, size_t i, HeaderRef like, IntArrayRef sizes, DType dtype) {
  if (like.dim() == static_cast<int64_t>(sizes.size()) &&
      shape::lies_channels_last(like.sizes(), like.strides())) {
    out.set_strided(i, sizes, shape::channels_last_strides(sizes), dtype);
  } else {
    out.set(i, sizes, dtype);
  }
}

void check_gradient_sizes(HeaderRef grad, IntArrayRef expected, const char* op) {
  TENON_CHECK(grad.sizes() == expected, Shape,
              fmt::format("{}: the gradient has shape {}, expected {}", op, to_string(grad.sizes()),
                          to_string(expected)));
}

void check_gradient_of(HeaderRef grad, HeaderRef self, const char* op) {
  TENON_CHECK(grad.dtype() == self.dtype(), Type,
              fmt::format("{}: expected a gradient of {} as `self`, got {}", op, name(self.dtype()),
                          name(grad.dtype())));
  TENON_CHECK(grad.device() == self.device(), Device,
              fmt::format("{}: expected the gradient on {} as `self`, got {}", op, to_string(self.device()),
                          to_string(grad.device())));
}

void check_inexact(DType dtype, bool complex, const char* op) {
  TENON_CHECK(
      has_arithmetic(dtype) && (is_floating_point(dtype) || (complex && is_complex(dtype))), NotImplemented,
      fmt::format("{}: not implemented for {}; convert `self` to a floating point dtype", op, name(dtype)));
}

}  // namespace tenon::ops
