#include "tenon/ops/fft/arguments.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"

namespace tenon::ops {

FftNorm fft_norm(std::optional<std::string_view> norm, bool forward, const char* op) {
  if (!norm || *norm == "backward") return forward ? FftNorm::None : FftNorm::ByNumber;
  if (*norm == "forward") return forward ? FftNorm::ByNumber : FftNorm::None;
  TENON_CHECK(
      *norm == "ortho", Runtime,
      fmt::format("{}: expected `norm` \"forward\", \"backward\" or \"ortho\", got \"{}\"", op, *norm));
  return FftNorm::ByRoot;
}

Tensor fft_operand(const Tensor& self, bool complex, const char* op) {
  const DType dtype = self.dtype();
  TENON_CHECK(!is_quantized(dtype), NotImplemented,
              fmt::format("{}: not implemented for `self` of {}; dequantize it first", op, name(dtype)));
  DType parts = is_integral(dtype, true) ? default_dtype() : real_dtype(dtype);
  if (parts != DType::Float64) parts = DType::Float32;
  const DType wanted = complex || is_complex(dtype) ? complex_dtype(parts) : parts;
  return wanted == dtype ? self : self.to(wanted);
}

void check_real(const Tensor& self, const char* op) {
  TENON_CHECK(!self.is_complex(), Type,
              fmt::format("{}: expected a real `self`, got {}; take its real part, or use the transform of "
                          "complex numbers",
                          op, name(self.dtype())));
}

namespace {

int64_t checked_size(int64_t n, int64_t dim, const Tensor& self, bool given, const char* argument,
                     const char* op) {
  if (n >= 1) return n;
  if (given)
    throw_error(ErrorKind::Runtime,
                fmt::format("{}: expected at least 1 element in the transform of dimension {} of "
                            "`self`, got {} from `{}`",
                            op, dim, n, argument));
  throw_error(
      ErrorKind::Runtime,
      fmt::format(
          "{}: dimension {} of `self` {} has {} elements, too few for a transform of at least 1; give "
          "its length as `{}`",
          op, dim, to_string(self.sizes()), self.sizes()[static_cast<size_t>(dim)], argument));
}

int64_t wrapped(int64_t dim, const Tensor& self, const char* op) {
  TENON_CHECK(self.dim() > 0, Index, fmt::format("{}: `dim` is {}, but `self` has no dimensions", op, dim));
  return wrap_dim(dim, self.dim(), op);
}

}  // namespace

FftSizes fft_sizes(const Tensor& self, std::optional<int64_t> n, int64_t dim, bool half, const char* op) {
  const int64_t d = wrapped(dim, self, op), size = self.sizes()[static_cast<size_t>(d)];
  return {{d}, {checked_size(n.value_or(half ? 2 * (size - 1) : size), d, self, n.has_value(), "n", op)}};
}

FftSizes fft_sizes(const Tensor& self, std::optional<IntArrayRef> s, std::optional<IntArrayRef> dim,
                   bool half, bool some, const char* op) {
  FftSizes found;
  if (dim) {
    for (const int64_t d : *dim) found.dims.push_back(wrapped(d, self, op));
    Dims sorted = found.dims;
    std::sort(sorted.begin(), sorted.end());
    TENON_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), Runtime,
                fmt::format("{}: expected dimensions that differ in `dim`, got {}", op, to_string(*dim)));
    TENON_CHECK(!s || s->size() == dim->size(), Runtime,
                fmt::format("{}: expected as many sizes in `s` as dimensions in `dim` {}, got {}", op,
                            to_string(*dim), s ? to_string(*s) : ""));
  } else {
    const int64_t count = s ? static_cast<int64_t>(s->size()) : self.dim();
    TENON_CHECK(count <= self.dim(), Runtime,
                fmt::format("{}: expected at most {} sizes in `s`, one for each dimension of `self`, got {}",
                            op, self.dim(), s ? to_string(*s) : ""));
    for (int64_t d = self.dim() - count; d < self.dim(); ++d) found.dims.push_back(d);
  }
  TENON_CHECK(!some || !found.dims.empty(), Runtime,
              fmt::format("{}: expected at least one dimension to transform in `dim`, got none", op));
  for (size_t i = 0; i < found.dims.size(); ++i) {
    const int64_t d = found.dims[i], size = self.sizes()[static_cast<size_t>(d)];
    const bool given = s && (*s)[i] != -1, halved = half && i + 1 == found.dims.size();
    found.sizes.push_back(checked_size(given    ? (*s)[i]
                                       : halved ? 2 * (size - 1)
                                                : size,
                                       d, self, given, "s", op));
  }
  return found;
}

Tensor fft_resized(const Tensor& self, IntArrayRef dims, IntArrayRef sizes) {
  Tensor x = self;
  Dims pad;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = dims[i], size = self.sizes()[static_cast<size_t>(d)], n = sizes[i];
    if (n < size) x = tenon::narrow(x, d, 0, n);
    if (n <= size) continue;
    if (pad.empty()) pad = Dims(static_cast<size_t>(2 * self.dim()), 0);
    pad[static_cast<size_t>(2 * (self.dim() - 1 - d) + 1)] = n - size;
  }
  return pad.empty() ? x : tenon::constant_pad_nd(x, pad);
}

}  // namespace tenon::ops
