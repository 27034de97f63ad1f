// The part of a tensor's text that describes its history.
#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"
#include "tenon/ops/print.h"

namespace tenon {

std::string history_note(const Tensor& t) {
  if (const auto node = t.grad_fn()) return "grad_fn=<" + std::string(node->name()) + ">";
  return t.requires_grad() ? "requires_grad=True" : "";
}

}  // namespace tenon
