#include "tenon/ops/indexing/tensor_index.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/functions.h"

namespace tenon {
namespace {

using Kind = TensorIndex::Kind;

/// How many dimensions of self an entry indexes.
int64_t consumes(const TensorIndex& i) {
  switch (i.kind) {
    case Kind::Integer:
    case Kind::Slice:
      return 1;
    case Kind::Tensor:
      return i.tensor.dtype() == DType::Bool || i.tensor.dtype() == DType::UInt8 ? i.tensor.dim() : 1;
    default:
      return 0;
  }
}

/// What is left once integers, slices, None and Ellipsis are applied: a view, and the index tensors on its
/// dimensions.
struct Resolved {
  Tensor view;
  std::vector<Tensor> tensors;
  bool advanced = false;
};

Resolved resolve(const Tensor& self, std::span<const TensorIndex> indices) {
  int64_t named = 0, ellipses = 0;
  for (const TensorIndex& i : indices) {
    named += consumes(i);
    ellipses += i.kind == Kind::Ellipsis;
  }
  TENON_CHECK(named <= self.dim(), Index,
              fmt::format("index: too many indices for tensor of dimension {}, got {}", self.dim(), named));
  TENON_CHECK(ellipses <= 1, Index,
              fmt::format("index: an index can only have a single ellipsis, got {}", ellipses));

  Resolved r{self, {}, false};
  int64_t dim = 0, of_self = 0;
  for (const TensorIndex& i : indices) {
    switch (i.kind) {
      case Kind::Integer: {
        const int64_t size = r.view.sizes()[static_cast<size_t>(dim)];
        TENON_CHECK(
            i.integer >= -size && i.integer < size, Index,
            fmt::format("index {} is out of bounds for dimension {} with size {}", i.integer, of_self, size));
        r.view = r.view.select(dim, i.integer);
        ++of_self;
        break;
      }
      case Kind::Slice:
        // x[:] is all of x.
        if (i.slice.start || i.slice.stop || i.slice.step != 1) {
          r.view = r.view.slice(dim, i.slice.start, i.slice.stop, i.slice.step);
        }
        ++dim;
        ++of_self;
        break;
      case Kind::None:
        r.view = r.view.unsqueeze(dim++);
        break;
      case Kind::Boolean:
        r.view = r.view.unsqueeze(dim);
        if (i.integer == 0) r.view = r.view.slice(dim, 0, 0, 1);
        ++dim;
        break;
      case Kind::Ellipsis:
        dim += self.dim() - named;
        of_self += self.dim() - named;
        break;
      case Kind::Tensor: {
        TENON_CHECK(i.tensor.defined(), Type, "index: an index tensor is undefined");
        const int64_t taken = consumes(i);
        // By dimension of the view; a mask is at the first of those that it covers.
        r.tensors.resize(static_cast<size_t>(dim));
        r.tensors.push_back(i.tensor);
        if (taken == 0)
          r.view = r.view.unsqueeze(dim);
        else
          r.tensors.resize(static_cast<size_t>(dim + taken));
        dim += std::max<int64_t>(taken, 1);
        of_self += taken;
        r.advanced = true;
        break;
      }
    }
  }
  return r;
}

/// The operator's list: a mask of k dimensions is one entry that takes k of them.
std::vector<Tensor> operator_list(const Resolved& r) {
  std::vector<Tensor> list;
  for (size_t d = 0; d < r.tensors.size();) {
    const Tensor& t = r.tensors[d];
    list.push_back(t);
    const bool mask = t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::UInt8);
    d += mask ? static_cast<size_t>(std::max<int64_t>(t.dim(), 1)) : 1;
  }
  return list;
}

}  // namespace

Tensor get_item(const Tensor& self, std::span<const TensorIndex> indices) {
  const Resolved r = resolve(self, indices);
  if (r.advanced) return tenon::index(r.view, operator_list(r));
  // x[...] is another tensor over the same elements, as in Python.
  return r.view.is_same(self) ? tenon::alias(self) : r.view;
}

Tensor without_leading_ones(Tensor value, const Tensor& self, TensorList indices) {
  // A mask indexes as many dimensions as it has itself.
  int64_t taken = 0, given = 0;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    const bool mask = t.dtype() == DType::Bool || t.dtype() == DType::UInt8;
    taken += mask ? t.dim() : 1;
    given = std::max<int64_t>(given, mask ? 1 : t.dim());
  }
  const int64_t ndim = self.dim() - taken + given;
  while (value.dim() > ndim && value.size(0) == 1) value = value.select(0, 0);
  return value;
}

void assign_selected(Tensor& self, TensorList indices, const Tensor& value) {
  const Tensor source = without_leading_ones(value, self, indices);
  size_t named = 0, before = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    if (named++ == 0) before = i;
  }
  // What shares memory with `self` is read before anything is written only on the other way.
  const auto pointwise = [&](const Tensor& mask) {
    const int64_t after = self.dim() - static_cast<int64_t>(before) - mask.dim();
    return mask.dtype() == DType::Bool && mask.dim() > 0 && after >= source.dim() &&
           mask.device() == self.device() && source.storage() != self.storage() &&
           mask.storage() != self.storage() &&
           mask.sizes() == IntArrayRef(self.sizes().data() + before, static_cast<size_t>(mask.dim()));
  };
  if (named != 1 || !pointwise(indices[before])) {
    self.index_put_(indices, source);
    return;
  }
  Tensor mask = indices[before];
  while (mask.dim() + static_cast<int64_t>(before) < self.dim()) mask = mask.unsqueeze(-1);
  self._masked_write_(mask, source);
}

void set_item(const Tensor& self, std::span<const TensorIndex> indices, const Tensor& value) {
  const Resolved r = resolve(self, indices);
  if (!r.advanced) {
    r.view.copy_(without_leading_ones(value, r.view));
    return;
  }
  const auto list = operator_list(r);
  const Tensor converted = value.to(r.view.device(), r.view.dtype());
  assign_selected(const_cast<Tensor&>(r.view), list, converted);
}

void set_item(const Tensor& self, std::span<const TensorIndex> indices, const Scalar& value) {
  const Resolved r = resolve(self, indices);
  if (!r.advanced) {
    r.view.fill_(value);
    return;
  }
  const Tensor number = tenon::full({}, value, TensorOptions(r.view.dtype()).device(r.view.device()));
  assign_selected(const_cast<Tensor&>(r.view), operator_list(r), number);
}

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return get_item(*this, {indices.begin(), indices.size()});
}

Tensor Tensor::operator[](int64_t i) const {
  TENON_CHECK(dim() > 0, Index, "index: invalid index of a 0-dim tensor; use item() for its number");
  TENON_CHECK(i >= -sizes()[0] && i < sizes()[0], Index,
              fmt::format("index {} is out of bounds for dimension 0 with size {}", i, sizes()[0]));
  return select(0, i);
}

void Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value) {
  set_item(*this, {indices.begin(), indices.size()}, value);
}

}  // namespace tenon
