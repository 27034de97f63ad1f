#include "python/src/autograd/garbage_collection.h"

#include <array>
#include <vector>

#include "python/src/autograd/function_object.h"
#include "python/src/autograd/hooks.h"
#include "python/src/interpreter/polymorphic.h"
#include "tenon/autograd/autograd.h"

namespace tenon::python {

namespace {

/// The nodes that only the references given to `add` keep alive, directly or through each other, up to a
/// limit that keeps a collection quick. Memory is fixed, because a collector's visit must not fail. One walk
/// at a time: the interpreter lock guards them.
class SoleNodes final : autograd::KeptVisitor {
 public:
  SoleNodes() noexcept { ++g_walk; }

  /// Counts one reference to a node, which is a sole one when all there are have been counted.
  void add(const Node* node) noexcept {
    if (!node || size_ == nodes_.size()) return;
    const uint32_t uses = node->use_count();
    if (uses != 1 && !(count(node) == uses)) return;
    nodes_[size_++] = const_cast<Node*>(node);
  }
  void add(const Tensor& t) noexcept {
    const TensorImpl* impl = t.impl();
    while (impl && impl->use_count() == 1) {
      const autograd::KeptNodes kept = autograd::nodes_kept_by(*impl);
      add(kept.grad_fn);
      add(kept.accumulator);
      impl = impl->base().get();
    }
  }
  void follow() noexcept {
    for (size_t i = 0; i < size_; ++i) {
      for (const Edge& edge : nodes_[i]->next_edges()) add(edge.node.get());
      nodes_[i]->visit_kept(*this);
    }
  }
  std::span<Node* const> nodes() const noexcept { return {nodes_.data(), size_}; }

 private:
  void node(const Node* kept) noexcept override { add(kept); }

  /// References to a node so far; 0 once too many nodes wait for further ones.
  uint32_t count(const Node* node) noexcept {
    size_t place = reinterpret_cast<uintptr_t>(node) / 64;
    for (size_t tries = 0; tries < 16; ++tries, ++place) {
      Waiting& w = g_waiting[place % g_waiting.size()];
      if (w.walk != g_walk) w = {node, 0, g_walk};
      if (w.node == node) return ++w.seen;
    }
    return 0;
  }

  struct Waiting {
    const Node* node;
    uint32_t seen;
    uint64_t walk;
  };
  static inline std::array<Waiting, 1024> g_waiting{};
  static inline uint64_t g_walk = 0;

  std::array<Node*, 256> nodes_;
  size_t size_ = 0;
};

template <class Start>
SoleNodes sole_nodes(const Start& start) noexcept {
  SoleNodes out;
  out.add(start);
  out.follow();
  return out;
}

int visit_hooks(autograd::NodeHooks& hooks, visitproc visit, void* arg) {
  const std::lock_guard lock(hooks.mutex);
  for (const auto& hook : hooks.inputs) Py_VISIT(function_of(hook.call));
  for (const auto& hook : hooks.before) Py_VISIT(function_of(hook.call));
  for (const auto& hook : hooks.after) Py_VISIT(function_of(hook.call));
  for (const auto& hook : hooks.leaf) Py_VISIT(function_of(hook.call));
  return 0;
}

int visit_nodes(const SoleNodes& sole, visitproc visit, void* arg) {
  for (const Node* node : sole.nodes()) {
    if (autograd::NodeHooks* hooks = node->hooks()) {
      if (const int stop = visit_hooks(*hooks, visit, arg)) return stop;
    }
    Py_VISIT(function_of_node(*node));
    if (const auto* with_context = as<ContextNode>(*node)) Py_VISIT(with_context->context());
  }
  return 0;
}

void clear_nodes(const SoleNodes& sole) {
  // What a hook's end runs may free nodes.
  std::vector<IntrusivePtr<Node>> nodes;
  for (Node* node : sole.nodes()) nodes.push_back(IntrusivePtr<Node>::share(node));
  for (const IntrusivePtr<Node>& node : nodes) {
    if (autograd::NodeHooks* hooks = node->hooks()) hooks->clear();
  }
}

/// While C++ also holds the tensor, it keeps the attributes and the history alive: they are no garbage,
/// whatever Python can reach.
bool is_sole_owner(const TensorObject& o) noexcept { return !o.owner && o.value.use_count() <= 1; }

}  // namespace

int traverse_tensor(PyObject* o, visitproc visit, void* arg) {
  const auto& self = *reinterpret_cast<TensorObject*>(o);
  if (!is_sole_owner(self)) return 0;
  Py_VISIT(self.dict);
  return visit_nodes(sole_nodes(self.value), visit, arg);
}

int clear_tensor(PyObject* o) {
  auto& self = *reinterpret_cast<TensorObject*>(o);
  if (!is_sole_owner(self)) return 0;
  Py_CLEAR(self.dict);
  clear_nodes(sole_nodes(self.value));
  return 0;
}

int visit_graph(const IntrusivePtr<Node>& node, visitproc visit, void* arg) noexcept {
  return visit_nodes(sole_nodes(node.get()), visit, arg);
}
void clear_graph(const IntrusivePtr<Node>& node) noexcept { clear_nodes(sole_nodes(node.get())); }

}  // namespace tenon::python
