#include <fmt/core.h>

#include "tenon/autograd/derivative.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::autograd {

OpNode::~OpNode() = default;

std::string OpNode::saved_name(size_t slot) const {
  const size_t arguments = shape_->num_tensors();
  if (slot >= arguments)
    return num_saved_ - arguments == 1 ? "its result" : fmt::format("its result {}", slot - arguments);
  uint64_t left = shape_->tensors;
  for (size_t i = 0; i < slot; ++i) left &= left - 1;
  return fmt::format("`{}`", OperatorHandle(*info_->entry).schema().arguments[std::countr_zero(left)].name);
}

namespace {

std::string_view operator_name(const OpNode& node) {
  const std::string_view name = node.info().entry->name;
  const size_t at = name.rfind(':');
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

bool usable(const SavedTensor& t) { return !t.released() && !t.changed(); }

}  // namespace

Tensor OpNode::tensor(size_t i) const {
  const size_t slot = shape_->slot(i);
  const SavedTensor& saved = saved_[slot];
  if (!usable(saved)) [[unlikely]]
    saved.throw_unusable(*this, operator_name(*this), saved_name(slot));
  return saved.get(*this);
}

Tensor OpNode::result(size_t i) const {
  const size_t slot = shape_->num_tensors() + i;
  const SavedTensor& saved = saved_[slot];
  if (!usable(saved)) [[unlikely]]
    saved.throw_unusable(*this, operator_name(*this), saved_name(slot));
  return saved.get(*this);
}

std::vector<Tensor> OpNode::unpack_list(const SavedList& list, size_t i) const {
  std::vector<Tensor> out;
  out.reserve(list.tensors.size());
  for (const SavedTensor& saved : list.tensors) {
    if (!usable(saved)) [[unlikely]] {
      saved.throw_unusable(*this, operator_name(*this),
                           fmt::format("`{}`", OperatorHandle(*info_->entry).schema().arguments[i].name));
    }
    out.push_back(saved.get(*this));
  }
  return out;
}

void OpNode::apply(NodeCall& call) {
  const uint64_t filled = info_->differentiable_results & ~info_->undefined_grads;
  bool any = false, all = true;
  for (size_t i = 0; i < call.grads.size(); ++i) {
    const bool defined = call.grads[i].defined();
    any |= defined;
    all &= defined || !(filled >> std::min<size_t>(i, 63) & 1);
  }
  if (!any || !info_->backward) return;
  if (!all) {
    for (size_t i = 0; i < call.grads.size(); ++i) {
      if (call.grads[i].defined() || !(filled >> std::min<size_t>(i, 63) & 1)) continue;
      const TensorMeta& meta = input_meta(i);
      if (is_floating_point(meta.dtype()) || is_complex(meta.dtype()))
        call.grads[i] = tenon::zeros(meta.sizes(), meta.options());
    }
  }
  Gradients out(*this, call);
  info_->backward(*this, call.grads, out);
}

void OpNode::release_variables() noexcept {
  for (uint32_t i = 0; i < num_saved_; ++i) saved_[i].release();
  for (uint64_t left = shape_->lists; left; left &= left - 1) {
    for (SavedTensor& saved : saved_list(std::countr_zero(left)).tensors) saved.release();
  }
}

void OpNode::visit_kept(KeptVisitor& visitor) const noexcept {
  for (uint32_t i = 0; i < num_saved_; ++i) saved_[i].visit_kept(visitor);
  for (uint64_t left = shape_->lists; left; left &= left - 1) {
    for (const SavedTensor& saved : saved_list(std::countr_zero(left)).tensors) saved.visit_kept(visitor);
  }
}

void OpNode::visit_saved(SavedVisitor& visitor) const {
  const size_t arguments = shape_->num_tensors();
  for (size_t slot = 0; slot < num_saved_; ++slot) {
    const SavedTensor& saved = saved_[slot];
    if (!saved.saved() && !saved.released()) continue;
    if (!usable(saved)) saved.throw_unusable(*this, operator_name(*this), saved_name(slot));
    if (slot >= arguments) {
      visitor.tensor(num_saved_ - arguments == 1 ? "result" : fmt::format("result{}", slot - arguments),
                     saved.get(*this));
    } else {
      std::string name = saved_name(slot);
      visitor.tensor(std::string_view(name).substr(1, name.size() - 2), saved.get(*this));
    }
  }
  for (uint64_t left = shape_->lists; left; left &= left - 1) {
    const size_t i = std::countr_zero(left);
    const std::vector<SavedTensor>& list = saved_list(i).tensors;
    if (list.empty()) continue;
    visitor.list(OperatorHandle(*info_->entry).schema().arguments[i].name, unpack_list(saved_list(i), i));
  }
}

// Of an argument that has no formula.
static constexpr size_t kNoEdge = SIZE_MAX;

size_t Gradients::edges_of(size_t argument) const noexcept {
  return node_.shape().lists >> argument & 1 ? node_.saved_list(argument).length : 1;
}

size_t Gradients::edge_of(size_t argument) const noexcept {
  size_t edge = 0;
  for (const ArgumentUse& use : node_.info().uses) {
    if (use.argument == argument) return edge;
    edge += edges_of(use.argument);
  }
  return kNoEdge;
}

bool Gradients::wanted(size_t argument) const noexcept {
  const size_t first = edge_of(argument);
  if (first == kNoEdge) return false;
  for (size_t i = first; i < first + edges_of(argument); ++i) {
    if (call_.wanted(i)) return true;
  }
  return false;
}

void Gradients::set(size_t argument, Tensor grad) { call_.out[edge_of(argument)] = std::move(grad); }

void Gradients::set(size_t argument, std::vector<Tensor> grads) {
  const size_t first = edge_of(argument);
  for (size_t i = 0; i < grads.size(); ++i) call_.out[first + i] = std::move(grads[i]);
}

}  // namespace tenon::autograd
