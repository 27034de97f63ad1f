#include "tenon/core/tensor_header.h"

#include <fmt/core.h>

#include "tenon/core/error.h"
#include "tenon/core/tensor.h"

namespace tenon {

void TensorHeader::reserve_heap(size_t ndim) {
  TENON_CHECK(ndim <= 255, Shape, fmt::format("a tensor has at most 255 dimensions, got {}", ndim));
  int64_t* dims = ndim > kInlineDims ? new int64_t[2 * ndim] : nullptr;
  delete[] std::exchange(heap_dims_, dims);
}

void TensorHeader::replace_geometry(IntArrayRef sizes, IntArrayRef strides) {
  Dims kept_sizes, kept_strides;
  if (heap_dims_) [[unlikely]] {
    kept_sizes = sizes.to_dims();
    kept_strides = strides.to_dims();
    sizes = kept_sizes;
    strides = kept_strides;
  }
  reserve_dims(sizes.size());
  int64_t* size = dims();
  int64_t* stride = size + capacity();
  // Upwards, because the sources may be later elements of these very lists.
  for (size_t d = 0; d < sizes.size(); ++d) {
    size[d] = sizes[d];
    stride[d] = strides[d];
  }
  refresh();
}

void HeaderRef::throw_undefined() { detail::throw_undefined_tensor(); }

}  // namespace tenon
