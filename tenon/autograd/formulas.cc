#include "tenon/autograd/formulas.h"

#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::autograd::formulas {

Tensor conversion_gradient(const Tensor& grad, const TensorOptions& options) {
  return tenon::_to_copy(is_complex(options.dtype_opt.value_or(grad.dtype())) ? grad : tenon::real(grad),
                         options);
}

std::vector<Tensor> cat_gradients(const Tensor& grad, std::span<const ArgumentMeta> tensors, int64_t dim) {
  std::vector<Tensor> gradients;
  gradients.reserve(tensors.size());
  const int64_t d = wrap_dim(dim, grad.dim(), "cat");
  int64_t start = 0;
  for (const ArgumentMeta& t : tensors) {
    if (t.dim() == 1 && t.numel() == 0) {  // it may have stood among tensors of any shape
      gradients.push_back(tenon::zeros({0}, grad.options()));
      continue;
    }
    const int64_t length = t.size(d);
    gradients.push_back(grad.narrow(d, start, length));
    start += length;
  }
  return gradients;
}

}  // namespace tenon::autograd::formulas
