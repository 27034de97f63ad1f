// What joins and splits tensors by rank: atleast_nd, hstack and its kin, tensor_split and its kin, meshgrid.
#include <fmt/core.h>

#include <vector>

#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/view/check_defined.h"
#include "tenon/ops/view/split.h"

namespace tenon::ops {
namespace {

template <class F>
std::vector<Tensor> each(TensorList tensors, const char* op, F&& f) {
  check_defined(tensors, op);
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

std::vector<Tensor> some(TensorList tensors, const char* op) {
  TENON_CHECK(!tensors.empty(), Value, fmt::format("{}: expected a non-empty list of tensors", op));
  check_defined(tensors, op);
  return {tensors.begin(), tensors.end()};
}

int64_t check_rank(const Tensor& self, int64_t least, const char* op) {
  TENON_CHECK(self.dim() >= least, Shape,
              fmt::format("{}: expects a tensor of at least {} dimension{}, got {}", op, least,
                          least == 1 ? "" : "s", self.dim()));
  return self.dim();
}

/// `sections` equal parts.
std::vector<Tensor> equal_parts(const Tensor& self, int64_t sections, int64_t dim, const char* op) {
  TENON_CHECK(sections > 0, Value, fmt::format("{}: sections must be positive, got {}", op, sections));
  TENON_CHECK(self.size(dim) % sections == 0, Value,
              fmt::format("{}: dimension {} of size {} cannot be divided into {} equal parts", op, dim,
                          self.size(dim), sections));
  return tenon::tensor_split(self, sections, dim);
}

}  // namespace

Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }

Tensor atleast_2d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape({1, 1});
  return self.dim() == 1 ? self.unsqueeze(0) : self;
}

Tensor atleast_3d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape({1, 1, 1});
  if (self.dim() == 1) return self.unsqueeze(0).unsqueeze(-1);
  return self.dim() == 2 ? self.unsqueeze(-1) : self;
}

std::vector<Tensor> atleast_1d_Sequence(TensorList tensors) {
  return each(tensors, "atleast_1d", atleast_1d);
}
std::vector<Tensor> atleast_2d_Sequence(TensorList tensors) {
  return each(tensors, "atleast_2d", atleast_2d);
}
std::vector<Tensor> atleast_3d_Sequence(TensorList tensors) {
  return each(tensors, "atleast_3d", atleast_3d);
}

Tensor hstack(TensorList tensors) {
  const std::vector<Tensor> wide = each(some(tensors, "hstack"), "hstack", atleast_1d);
  return tenon::cat(wide, wide[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(TensorList tensors) {
  return tenon::cat(each(some(tensors, "vstack"), "vstack", atleast_2d), 0);
}
Tensor dstack(TensorList tensors) {
  return tenon::cat(each(some(tensors, "dstack"), "dstack", atleast_3d), 2);
}

Tensor column_stack(TensorList tensors) {
  return tenon::cat(each(some(tensors, "column_stack"), "column_stack",
                         [](const Tensor& t) {
                           return t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t;
                         }),
                    1);
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  check_defined(tensors, "broadcast_tensors");
  Dims shape;
  for (const Tensor& t : tensors) broadcast_to(shape, t.sizes(), "broadcast_tensors");
  return each(tensors, "broadcast_tensors", [&](const Tensor& t) { return t.expand(shape); });
}

std::vector<Tensor> meshgrid_indexing(TensorList tensors, std::string_view indexing) {
  TENON_CHECK(indexing == "ij" || indexing == "xy", Value,
              fmt::format("meshgrid: indexing must be 'xy' or 'ij', got '{}'", indexing));
  std::vector<Tensor> grids = some(tensors, "meshgrid");
  for (const Tensor& t : grids) {
    TENON_CHECK(
        t.dim() <= 1, Shape,
        fmt::format("meshgrid: expected vectors or 0-dim tensors, got shape {}", to_string(t.sizes())));
    TENON_CHECK(t.dtype() == grids[0].dtype() && t.device() == grids[0].device(), Type,
                fmt::format("meshgrid: all tensors must have one dtype and device, got {} on {} and {} on {}",
                            name(grids[0].dtype()), to_string(grids[0].device()), name(t.dtype()),
                            to_string(t.device())));
  }
  const bool swapped = indexing == "xy" && grids.size() >= 2;
  if (swapped) std::swap(grids[0], grids[1]);
  Dims shape;
  for (const Tensor& t : grids) shape.push_back(t.numel());
  for (size_t i = 0; i < grids.size(); ++i) {
    Dims line(grids.size(), 1);
    line[i] = grids[i].numel();
    grids[i] = grids[i].reshape(line).expand(shape);
  }
  if (swapped) std::swap(grids[0], grids[1]);
  return grids;
}

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  check_rank(self, 1, "tensor_split");
  const int64_t d = wrap_dim(dim, self.dim(), "tensor_split");
  TENON_CHECK(sections > 0, Value, fmt::format("tensor_split: sections must be positive, got {}", sections));
  check_view_count(sections, "tensor_split");
  const int64_t each_size = self.size(d) / sections, longer = self.size(d) % sections;
  std::vector<Tensor> out;
  for (int64_t i = 0, start = 0; i < sections; ++i) {
    const int64_t length = each_size + (i < longer);
    out.push_back(self.slice(d, start, start + length, 1));
    start += length;
  }
  return out;
}

std::vector<Tensor> tensor_split_indices(const Tensor& self, IntArrayRef indices, int64_t dim) {
  check_rank(self, 1, "tensor_split");
  const int64_t d = wrap_dim(dim, self.dim(), "tensor_split");
  std::vector<Tensor> out;
  int64_t start = 0;
  for (const int64_t index : indices) {
    out.push_back(self.slice(d, start, index, 1));
    start = index;
  }
  out.push_back(self.slice(d, start, self.size(d), 1));
  return out;
}

std::vector<Tensor> tensor_split_tensor(const Tensor& self, const Tensor& tensor_indices_or_sections,
                                        int64_t dim) {
  const Tensor& given = tensor_indices_or_sections;
  TENON_CHECK(!given.is_meta(), NotImplemented,
              "tensor_split: where to split depends on the data, which a meta tensor lacks");
  TENON_CHECK(given.dtype() == DType::Int64 && given.dim() <= 1, Type,
              fmt::format("tensor_split: expected an int64 tensor of at most one dimension, got {} {}",
                          name(given.dtype()), to_string(given.sizes())));
  const Tensor flat = as_contiguous(on_device(given, kCPU));
  const auto* values = static_cast<const int64_t*>(flat.data_ptr());
  if (given.dim() == 0) return ops::tensor_split(self, values[0], dim);
  return ops::tensor_split_indices(self, IntArrayRef(values, at(given.numel())), dim);
}

std::vector<Tensor> hsplit(const Tensor& self, int64_t sections) {
  return equal_parts(self, sections, check_rank(self, 1, "hsplit") == 1 ? 0 : 1, "hsplit");
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections) {
  check_rank(self, 2, "vsplit");
  return equal_parts(self, sections, 0, "vsplit");
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections) {
  check_rank(self, 3, "dsplit");
  return equal_parts(self, sections, 2, "dsplit");
}
std::vector<Tensor> hsplit_array(const Tensor& self, IntArrayRef indices) {
  return tenon::tensor_split(self, indices, check_rank(self, 1, "hsplit") == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit_array(const Tensor& self, IntArrayRef indices) {
  check_rank(self, 2, "vsplit");
  return tenon::tensor_split(self, indices, 0);
}
std::vector<Tensor> dsplit_array(const Tensor& self, IntArrayRef indices) {
  check_rank(self, 3, "dsplit");
  return tenon::tensor_split(self, indices, 2);
}

}  // namespace tenon::ops
