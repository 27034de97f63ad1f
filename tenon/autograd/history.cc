#include "tenon/autograd/history.h"

#include <fmt/core.h>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/strided.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/copy/functions.h"

namespace tenon::autograd {
namespace {

constexpr uint64_t bit(size_t i) noexcept { return uint64_t{1} << i; }

std::string_view short_name(const OperatorEntry& entry) {
  const size_t at = entry.name.rfind(':');
  return at == std::string_view::npos ? entry.name : entry.name.substr(at + 1);
}

// A view of a view may be written no more than that.
ViewCreation creation_of(const Tensor& t) {
  const AutogradMeta* meta = t.defined() ? meta_of(*t.impl()) : nullptr;
  if (!meta) return ViewCreation::Default;
  const bool leaf = meta->requires_grad && !meta->grad_fn;
  return leaf && t.is_view() ? ViewCreation::OfLeaf : meta->creation;
}

// Whether the gradient of `t` goes anywhere.
bool add_edge_of(Node& node, const Tensor& t) {
  // Most arguments have no history or a settled one.
  const AutogradMeta* meta = t.defined() ? meta_of(*t.impl()) : nullptr;
  if (!meta && !(t.defined() && t.is_view())) {
    node.add_edge({});
    return false;
  }
  if (meta && meta->grad_fn && !t.is_view()) {
    node.add_edge(meta->grad_fn);
    return true;
  }
  Edge edge = gradient_edge(t);
  const bool wanted = static_cast<bool>(edge);
  node.add_edge(std::move(edge));
  return wanted;
}

}  // namespace

bool HistoryWriter::argument_requires_grad(size_t i) const {
  if (call_.shape.tensors & bit(i)) {
    const Tensor& t = *call_.tensors[call_.shape.slot(i)];
    return t.defined() && requires_grad(*t.impl());
  }
  for (const Tensor& t : call_.list(i)) {
    if (t.defined() && requires_grad(*t.impl())) return true;
  }
  return false;
}

bool HistoryWriter::any_requires_grad() const {
  for (const ArgumentUse& use : info_.uses) {
    if (argument_requires_grad(use.argument)) return true;
  }
  return false;
}

bool HistoryWriter::decide() const {
  if (!thread_state.grad_enabled) return false;
  if (call_.shape.written == 0) [[likely]]
    return any_requires_grad();

  bool any = any_requires_grad();
  const uint64_t outs = call_.shape.written & info_.outs;
  for (uint64_t left = outs; left && !any; left &= left - 1) {
    any = argument_requires_grad(std::countr_zero(left));
  }
  TENON_CHECK(
      !any || !outs, Runtime,
      fmt::format(
          "{}(): functions with out=... arguments don't support automatic differentiation, but one of "
          "the arguments requires grad.",
          short_name(*info_.entry)));
  check_written(any);
  if (!writes_self()) return any;
  const Tensor& self = *call_.tensors[0];
  if (!self.defined()) return any;
  // Writing through a view writes its base, whose history this is.
  const TensorImpl* base = self.impl()->base().get();
  if (!any && !(base && requires_grad(*base))) return false;
  check_in_place(self);
  return any && is_differentiable(self.dtype());
}

// An argument that an operator updates besides its result (running statistics) has no formula: it must take
// no part.
void HistoryWriter::check_written(bool any) const {
  for (uint64_t left = written_in_place() & ~uint64_t{1}; left; left &= left - 1) {
    const size_t i = std::countr_zero(left);
    const Tensor& t = *call_.tensors[call_.shape.slot(i)];
    if (!t.defined()) continue;
    const TensorImpl* base = t.impl()->base().get();
    const bool takes_part = requires_grad(*t.impl()) || (base && requires_grad(*base));
    if (!any && !takes_part) continue;
    check_in_place(t);
    TENON_CHECK(
        !takes_part, Runtime,
        fmt::format("{}: argument `{}` is written in place and its derivative is not implemented, but "
                    "it requires grad; pass a detached tensor",
                    short_name(*info_.entry), OperatorHandle(*info_.entry).schema().arguments[i].name));
  }
}

void HistoryWriter::save_arguments(uint64_t saves, uint64_t metas) {
  const CallShape& shape = call_.shape;
  for (uint64_t left = saves; left; left &= left - 1) {
    const size_t i = std::countr_zero(left);
    if (shape.lists & bit(i)) {
      const TensorList& given = call_.list(i);
      std::vector<SavedTensor>& list = node_->saved_list(i).tensors;
      list.resize(given.size());
      for (size_t j = 0; j < list.size(); ++j) list[j].save_input(given[j]);
      continue;
    }
    const Tensor& t = *call_.tensors[shape.slot(i)];
    if (!t.defined()) continue;
    if (!(shape.written & bit(i))) {
      node_->saved_[shape.slot(i)].save_input(t);
      continue;
    }
    // The call is about to overwrite what its derivative needs.
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    Tensor old = alias_without_history(tenon::clone(t));
    if (Edge edge = gradient_edge(t)) set_history(old, std::move(edge));
    node_->saved_[shape.slot(i)].save_input(old);
  }
  for (uint64_t left = metas & shape.lists; left; left &= left - 1) {
    const size_t i = std::countr_zero(left);
    std::vector<ArgumentMeta>& list = node_->saved_list(i).metas;
    list.reserve(call_.list(i).size());
    for (const Tensor& t : call_.list(i)) list.push_back(t.defined() ? ArgumentMeta(t) : ArgumentMeta());
  }
  metas &= ~shape.lists;
  if (!metas) return;
  node_->metas_ = std::make_unique<ArgumentMeta[]>(shape.num_tensors());
  for (uint64_t left = metas; left; left &= left - 1) {
    const size_t slot = shape.slot(std::countr_zero(left));
    if (call_.tensors[slot]->defined()) node_->metas_[slot] = ArgumentMeta(*call_.tensors[slot]);
  }
}

void HistoryWriter::begin(IntrusivePtr<OpNode> node, void* frame) {
  node_ = std::move(node);
  node_->set_source(note_source(frame));
  if (writes_self()) version_before_ = call_.tensors[0]->_version();
  uint64_t saves = 0, metas = 0;
  node_->reserve_edges(info_.uses.size());
  for (const ArgumentUse& use : info_.uses) {
    const size_t i = use.argument;
    bool wanted = false;
    if (call_.shape.tensors & bit(i)) {
      wanted = add_edge_of(*node_, *call_.tensors[call_.shape.slot(i)]);
    } else {
      const TensorList& list = call_.list(i);
      for (const Tensor& t : list) wanted |= add_edge_of(*node_, t);
      node_->saved_list(i).length = static_cast<uint32_t>(list.size());
    }
    if (!wanted) continue;
    saves |= use.saves;
    metas |= use.metas;
    saves_results_ |= use.saves_results;
  }
  if (saves | metas) save_arguments(saves, metas);
}

void HistoryWriter::replace_self_history(const Tensor& self) {
  const IntrusivePtr<TensorImpl>& base = self.impl()->base();
  if (!base) return replace_history(self, {owner(), 0});
  const Tensor whole(base);
  replace_history(whole, {make_copy_slices_node(whole, self, owner()), 0});
}

void HistoryWriter::finish(std::span<Tensor* const> results, bool several) {
  const bool in_place = writes_self();
  for (uint32_t i = 0; i < results.size(); ++i) {
    Tensor& t = *results[i];
    if (!t.defined()) {
      node_->add_input(TensorMeta());
      continue;
    }
    node_->add_input(t);
    const uint64_t result = bit(std::min<uint32_t>(i, 63));
    const size_t place = call_.shape.num_tensors() + i;
    if (saves_results_ & result && place < node_->num_saved_) {
      const uint64_t version =
          in_place ? tenon::detail::version_after_call(t, version_before_) : t._version();
      node_->saved_[place].save_output(t, i, version);
    }
    if (!in_place && info_.differentiable_results & result && is_differentiable(t.dtype())) {
      for (size_t a = 0; a < call_.shape.num_tensors(); ++a) {
        // A kernel that had nothing to do gave its argument back, which has a history of its own.
        if (t.is_same(*call_.tensors[a])) t = make_view(t, t.sizes(), t.strides(), t.storage_offset());
      }
      // The last result takes the writer's own reference.
      const bool last = i + 1 == results.size();
      set_history(t, {last ? IntrusivePtr<Node>::adopt(node_.release()) : owner(), i});
      if (t.is_view()) [[unlikely]] {
        meta_of(*t.impl())->creation =
            info_.is_view && several ? ViewCreation::MultiOutput : creation_of(*call_.tensors[0]);
      }
    }
  }
  if (in_place) replace_self_history(*call_.tensors[0]);
}

void HistoryWriter::finish_unrecorded(std::span<Tensor* const> results, bool several) const {
  if (call_.shape.num_tensors() == 0) return;
  const Tensor& self = *call_.tensors[0];
  if (!self.defined()) return;
  const TensorImpl* base = self.impl()->base().get();
  ViewCreation creation = creation_of(self);
  if (!thread_state.grad_enabled) {
    if (!requires_grad(*self.impl()) && !(base && requires_grad(*base))) return;
    creation = thread_state.inference_mode ? ViewCreation::InferenceMode : ViewCreation::NoGrad;
  } else if (several && info_.is_view) {
    creation = ViewCreation::MultiOutput;
  }
  for (Tensor* t : results) {
    if (!t->defined()) continue;
    TensorImpl& impl = *t->impl();
    if (impl.is_inference() || t->is_same(self)) continue;
    const AutogradMeta* of_base = impl.base() ? meta_of(*impl.base()) : nullptr;
    const uint32_t history = of_base ? of_base->history : 0;
    if (creation == ViewCreation::Default && history == 0) continue;
    AutogradMeta& meta = ensure_meta(impl);
    meta.creation = creation;
    meta.base_history = history;
    // Without a base nothing but its own key brings a later write through it here, to be refused.
    if (!impl.base()) impl.set_keys(impl.own_keys() | kAutogradKeys);
  }
}

}  // namespace tenon::autograd
