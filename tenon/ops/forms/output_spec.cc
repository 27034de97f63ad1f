#include "tenon/ops/forms/output_spec.h"

#include "tenon/core/tensor.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"

namespace tenon {

namespace {

/// A tensor like `shape`, which has no bytes, in pinned memory.
Tensor pinned(const Tensor& shape, Elements elements) {
  Tensor made(TensorImpl::make(Storage::allocate_pinned(shape.storage().nbytes()), shape.dtype(),
                               shape.sizes(), shape.strides(), shape.storage_offset()));
  if (elements == Elements::Zero) ops::zero_elements(made);
  return made;
}

}  // namespace

void OutputSpecs::set_otherwise(size_t i, IntArrayRef sizes, DType dtype, Elements elements) {
  if (pinned_) {
    pinned_[i] = pinned(make_empty(sizes, dtype, kMeta), elements);
  } else if (outputs_) {
    outputs_[i] = ops::make_zeros(sizes, dtype, device_);
  } else {
    specs_[i].sizes = sizes.to_dims();
    specs_[i].dtype = dtype;
    specs_[i].elements = elements;
    specs_[i].set = true;
  }
}

void OutputSpecs::set_strided(size_t i, IntArrayRef sizes, IntArrayRef strides, DType dtype,
                              Elements elements) {
  if (pinned_) {
    pinned_[i] = pinned(make_empty_strided(sizes, strides, dtype, kMeta), elements);
  } else if (outputs_) {
    outputs_[i] = make_empty_strided(sizes, strides, dtype, device_);
    if (elements == Elements::Zero) ops::zero_elements(outputs_[i]);
  } else {
    set(i, sizes, dtype, elements);
    specs_[i].strides = strides.to_dims();
    specs_[i].contiguous = false;
  }
}

void OutputSpecs::set_like(size_t i, HeaderRef source, DType dtype, Elements elements) {
  if (source.is_contiguous())
    set(i, source.sizes(), dtype, elements);
  else
    set_strided(i, source.sizes(), preserved_strides(source.sizes(), source.strides()), dtype, elements);
}

}  // namespace tenon
