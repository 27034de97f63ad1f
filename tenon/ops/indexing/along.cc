// gather and scatter: along one dimension at the positions that an index tensor holds, at the place's own
// coordinates along the others. And what goes slice by slice: index_select, index_add.
#include <limits>

#include "tenon/generated/indexing/bodies.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/indexing/indexed.h"

namespace tenon::ops {
namespace {

Dims vector_sizes(const Tensor& t) { return t.dim() == 0 ? Dims{1} : t.sizes().to_dims(); }

/// Elements of `src`, which may be larger than the loop; a 0-dim tensor is repeated.
IndexedSide first_elements(const Tensor& src, IntArrayRef sizes) {
  if (src.dim() == 0) return every_element(src, sizes);
  return {src, src.strides().to_dims(), {}};
}

void read_along(const char* op, const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  const Dims sizes = vector_sizes(index);
  const bool fresh = is_fresh(out);
  run_indexed({.op = op,
               .argument = "index",
               .sizes = sizes,
               .to = every_element(out, sizes),
               .from = along(self, wrap_dim(dim, self.dim(), op), index),
               .fresh = fresh});
}

void write_along(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 Combine combine, bool fresh = false) {
  const Dims sizes = vector_sizes(index);
  run_indexed({.op = op,
               .argument = "index",
               .sizes = sizes,
               .to = along(self, wrap_dim(dim, self.dim(), op), index),
               .from = first_elements(src, sizes),
               .combine = combine,
               .fresh = fresh});
}

void write_slices(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  Combine combine, const Scalar& alpha = 1, bool wraps = false) {
  const int64_t d = wrap_dim(dim, self.dim(), op);
  const Dims sizes = sliced_sizes(self.sizes(), d, index.numel());
  run_indexed({.op = op,
               .argument = "index",
               .sizes = sizes,
               .to = slices(self, d, index),
               .from = every_element(source, sizes),
               .combine = combine,
               .alpha = alpha,
               .wraps = wraps});
}

/// A number as a tensor of the dtype of `like`.
Tensor number_tensor(const char* op, const Scalar& value, const Tensor& like) {
  Tensor number = make_empty({}, like.dtype(), like.device());
  fill_elements(number, value, op);
  return number;
}

/// What leaves every element as it is.
Scalar neutral(Combine combine, DType dtype) {
  if (combine == Combine::Mul) return 1;
  if (combine == Combine::Add) return 0;
  const bool max = combine == Combine::Max;
  if (!is_integral(dtype, true))
    return max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (dtype == DType::Bool) return max ? 0 : 1;
  const int bits = static_cast<int>(8 * item_size(dtype));
  if (!is_signed(dtype)) return max ? Scalar(0) : Scalar(~uint64_t{0} >> (64 - bits));
  const int64_t low = std::numeric_limits<int64_t>::min() >> (64 - bits);
  return max ? low : ~low;
}

Combine combine_of(std::string_view reduce) {
  return reduce == "prod"   ? Combine::Mul
         : reduce == "amax" ? Combine::Max
         : reduce == "amin" ? Combine::Min
                            : Combine::Add;
}

/// Divides `self` by how many elements each place got.
void divide_by_counts(const Tensor& self, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor counts = make_empty(self.sizes(), DType::Int64, self.device());
  const Tensor one = number_tensor("scatter_reduce", 1, counts);
  fill_elements(counts, include_self ? 1 : 0, "scatter_reduce");
  write_along("scatter_reduce", counts, dim, index, one, Combine::Add);
  const Tensor divisors = as_dtype(counts, self.dtype());
  run_indexed({.op = "scatter_reduce",
               .argument = "index",
               .sizes = self.sizes().to_dims(),
               .to = every_element(self, self.sizes()),
               .from = every_element(divisors, self.sizes()),
               .combine = Combine::Div});
}

}  // namespace

void gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad, Tensor& out) {
  read_along("gather", self, dim, index, out);
}

void gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index, Tensor& out) {
  const bool fresh = is_fresh(out);
  combine_in_compute_dtype(out, grad, "gather_backward", [&](Tensor& to, const Tensor& from) {
    write_along("gather_backward", to, dim, index, from, Combine::Add, fresh);
  });
}

void index_select(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  const Dims sizes = sliced_sizes(self.sizes(), d, index.numel());
  const bool fresh = is_fresh(out);
  run_indexed({.op = "index_select",
               .argument = "index",
               .sizes = sizes,
               .to = every_element(out, sizes),
               .from = slices(self, d, index),
               .fresh = fresh});
}

void index_select_backward(const Tensor& grad, IntArrayRef self_sizes, int64_t dim, const Tensor& index,
                           Tensor& out) {
  combine_in_compute_dtype(out, grad, "index_select_backward", [&](Tensor& to, const Tensor& from) {
    write_slices("index_select_backward", to, dim, index, from, Combine::Add);
  });
}

void index_add(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  combine_in_compute_dtype(self, source, "index_add", [&](Tensor& to, const Tensor& from) {
    write_slices("index_add", to, dim, index, from, Combine::Add, alpha);
  });
}

void index_copy(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  write_slices("index_copy", self, dim, index, source, Combine::Set);
}

void index_fill(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  write_slices("index_fill", self, dim, index, number_tensor("index_fill", value, self), Combine::Set, 1,
               true);
}

void index_fill(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  write_slices("index_fill", self, dim, index, as_dtype(value, self.dtype()), Combine::Set, 1, true);
}

void scatter_src(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  write_along("scatter", self, dim, index, src, Combine::Set);
}

void scatter_value(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  write_along("scatter", self, dim, index, number_tensor("scatter", value, self), Combine::Set);
}

void scatter_add(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  combine_in_compute_dtype(self, src, "scatter_add", [&](Tensor& to, const Tensor& from) {
    write_along("scatter_add", to, dim, index, from, Combine::Add);
  });
}

void scatter_reduce(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                    std::string_view reduce, bool include_self) {
  const Combine combine = combine_of(reduce);
  // Before `self` becomes what leaves every element as it is.
  const Tensor source = src.storage() == self.storage() ? contiguous_copy(src) : src;
  combine_in_compute_dtype(self, source, "scatter_reduce", [&](Tensor& to, const Tensor& from) {
    if (!include_self) {
      const Tensor start = number_tensor("scatter_reduce", neutral(combine, to.dtype()), to);
      write_along("scatter_reduce", to, dim, index, start, Combine::Set);
    }
    write_along("scatter_reduce", to, dim, index, from, combine);
    if (reduce == "mean") divide_by_counts(to, dim, index, include_self);
  });
}

}  // namespace tenon::ops
