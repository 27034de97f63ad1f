// Elements in another order or place, and tables made of vectors.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "tenon/core/parallel.h"
#include "tenon/generated/arrange/bodies.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

void check_rank(const Tensor& self, int64_t least, const char* op) {
  TENON_CHECK(self.dim() >= least, Shape,
              fmt::format("{}: expected at least {} dimension{}, got shape {}", op, least,
                          least > 1 ? "s" : "", to_string(self.sizes())));
}

/// How many combinations there are; a large number is a double's.
double count_of(int64_t n, int64_t r, bool with_replacement) {
  const auto items = static_cast<double>(n) + (with_replacement ? static_cast<double>(r) - 1 : 0);
  const double chosen = std::min(static_cast<double>(r), items - static_cast<double>(r));
  double count = 1;
  // Each product is divided without a rest, and exact where it is below 2^53.
  for (double i = 1; i <= chosen && count < 1e300; ++i) count = count * (items - chosen + i) / i;
  return count;
}

/// Writes the positions of `count` combinations of `r` among `n`, in order, one after another.
void combine(int64_t n, int64_t r, bool with_replacement, int64_t count, int64_t* out) {
  std::vector<int64_t> current;
  for (int64_t i = 0; i < r; ++i) current.push_back(with_replacement ? 0 : i);
  for (; count > 0; --count) {
    if (count % 1024 == 0) check_stop();
    out = std::copy(current.begin(), current.end(), out);
    int64_t i = r - 1;
    while (i >= 0 && current[at(i)] == (with_replacement ? n - 1 : n - r + i)) --i;
    if (i < 0) return;
    ++current[at(i)];
    for (int64_t k = i + 1; k < r; ++k) current[at(k)] = current[at(k - 1)] + (with_replacement ? 0 : 1);
  }
}

}  // namespace

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  Tensor out = self.clone(MemoryFormat::Preserve);
  Tensor place = out.as_strided(size, stride, storage_offset);
  TENON_CHECK(place.sizes() == src.sizes(), Shape,
              fmt::format("as_strided_scatter: expected `src` of shape {}, got {}", to_string(place.sizes()),
                          to_string(src.sizes())));
  place.copy_(src);
  return out;
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  TENON_CHECK(self.dim() == 1, Shape,
              fmt::format("combinations: expected a vector, got shape {}", to_string(self.sizes())));
  TENON_CHECK(r >= 0, Value, fmt::format("combinations: r must not be negative, got {}", r));
  if (r == 0) return tenon::empty({0}, self.options());
  const int64_t n = self.size(0);
  const double elements =
      n > 0 && (with_replacement || r <= n) ? count_of(n, r, with_replacement) * static_cast<double>(r) : 0;
  TENON_CHECK(elements < 0x1p36, Value,
              fmt::format("combinations: {:.3g} elements are too many, of {} among {}", elements, r, n));
  const auto count = static_cast<int64_t>(elements);
  const Tensor host = make_empty({count}, DType::Int64);
  if (count > 0) combine(n, r, with_replacement, count / r, static_cast<int64_t*>(host.data_ptr()));
  return tenon::_unsafe_view(self.index_select(0, host.to(self.device())), {count / r, r});
}

Tensor fliplr(const Tensor& self) {
  check_rank(self, 2, "fliplr");
  return self.flip({1});
}
Tensor flipud(const Tensor& self) {
  check_rank(self, 1, "flipud");
  return self.flip({0});
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  TENON_CHECK(self.size(-1) == other.size(-1), Shape,
              fmt::format("inner: the last dimensions of {} and {} differ", to_string(self.sizes()),
                          to_string(other.sizes())));
  return tenon::tensordot(self, other, {-1}, {-1});
}

Tensor kron(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  const int64_t rank = std::max(self.dim(), other.dim());
  Dims first, second, whole;
  for (int64_t d = 0; d < rank; ++d) {
    const auto size = [&](const Tensor& t) {
      return d < rank - t.dim() ? 1 : t.sizes()[at(d - rank + t.dim())];
    };
    const int64_t a = size(self), b = size(other);
    first.push_back(a);
    first.push_back(1);
    second.push_back(1);
    second.push_back(b);
    whole.push_back(a * b);
  }
  return tenon::_unsafe_view((self.reshape(first) * other.reshape(second)).contiguous(), whole);
}

Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  check_rank(self, 2, "rot90");
  TENON_CHECK(dims.size() == 2, Value,
              fmt::format("rot90: expected two dimensions to rotate, got {}", to_string(dims)));
  const Dims turned = wrap_dims(dims, self.dim(), "rot90");
  const int64_t a = turned[0], b = turned[1];
  switch (((k % 4) + 4) % 4) {
    case 1:
      return self.flip({b}).transpose(a, b).contiguous();
    case 2:
      return self.flip({a, b});
    case 3:
      return self.flip({a}).transpose(a, b).contiguous();
    default:
      return self.clone(MemoryFormat::Contiguous);
  }
}

Tensor trace(const Tensor& self) {
  TENON_CHECK(self.dim() == 2, Shape,
              fmt::format("trace: expected a matrix, got shape {}", to_string(self.sizes())));
  return tenon::sum(self.diagonal());
}

Tensor& fill_diagonal_(Tensor& self, const Scalar& fill_value, bool wrap) {
  check_rank(self, 2, "fill_diagonal_");
  const int64_t height = self.size(0), width = self.size(1);
  if (self.dim() > 2) {
    TENON_CHECK(
        std::all_of(self.sizes().begin(), self.sizes().end(), [&](int64_t s) { return s == height; }), Shape,
        fmt::format("fill_diagonal_: all dimensions must be of one size, got {}", to_string(self.sizes())));
    Tensor diagonal = self;
    while (diagonal.dim() > 1) diagonal = diagonal.diagonal(0, 0, 1);
    diagonal.fill_(fill_value);
    return self;
  }
  for (int64_t first = 0; first < height; first += width + 1) {
    self.narrow(0, first, std::min(width, height - first)).diagonal().fill_(fill_value);
    if (!wrap) break;
  }
  return self;
}

}  // namespace tenon::ops
