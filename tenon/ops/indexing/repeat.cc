// repeat_interleave: slices as many times as numbers say.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/indexing/bodies.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {

Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  TENON_CHECK(repeats.dim() == 1, Shape,
              fmt::format("repeat_interleave: expected `repeats` of 1 dimension, got shape {}",
                          to_string(repeats.sizes())));
  TENON_CHECK(
      repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32, Type,
      fmt::format("repeat_interleave: expected `repeats` of int32 or int64, got {}", name(repeats.dtype())));
  if (repeats.is_meta()) {
    TENON_CHECK(output_size, NotImplemented,
                "repeat_interleave: the size of the result depends on the data, which a meta tensor lacks; "
                "give output_size");
    return make_empty({*output_size}, repeats.dtype(), repeats.device());
  }
  const Tensor counts = as_contiguous(as_dtype(on_device(repeats, kCPU), DType::Int64));
  const auto* n = static_cast<const int64_t*>(counts.data_ptr());
  int64_t total = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    TENON_CHECK(n[i] >= 0, Value,
                fmt::format("repeat_interleave: `repeats` must not be negative, got {} at {}", n[i], i));
    TENON_CHECK(!__builtin_add_overflow(total, n[i], &total), Shape,
                "repeat_interleave: the result has more elements than int64 can count");
  }
  TENON_CHECK(!output_size || *output_size == total, Value,
              fmt::format("repeat_interleave: output_size is {}, and `repeats` add up to {}",
                          output_size.value_or(0), total));
  const Tensor places = make_empty({total}, DType::Int64, kCPU);
  auto* out = static_cast<int64_t*>(places.data_ptr());
  for (int64_t i = 0; i < repeats.numel(); ++i) out = std::fill_n(out, n[i], i);
  return on_device(as_dtype(places, repeats.dtype()), repeats.device());
}

Tensor repeat_interleave_self_Tensor(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                                     std::optional<int64_t> output_size) {
  const Tensor source = dim ? self : self.reshape({-1});
  TENON_CHECK(source.dim() > 0, Shape, "repeat_interleave: a 0-dim tensor has no dimensions");
  const int64_t d = wrap_dim(dim.value_or(0), source.dim(), "repeat_interleave");
  const int64_t size = source.size(d);
  TENON_CHECK(repeats.dim() == 0 || (repeats.dim() == 1 && (repeats.numel() == 1 || repeats.numel() == size)),
              Shape,
              fmt::format("repeat_interleave: expected `repeats` of 1 or {} elements, got shape {}", size,
                          to_string(repeats.sizes())));
  const Tensor counts = repeats.reshape({repeats.numel()}).expand({size});
  return tenon::index_select(source, d, tenon::repeat_interleave(counts, output_size));
}

}  // namespace tenon::ops
