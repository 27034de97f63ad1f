// Node and Edge: the graph that the forward pass records and the engine walks back.
// Used by recording, the engine, custom functions and bindings. Independent of operators.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tenon/autograd/inline_vector.h"
#include "tenon/autograd/tensor_meta.h"
#include "tenon/core/intrusive_ptr.h"
#include "tenon/core/source_mark.h"

namespace tenon {

class Node;

/// Where a gradient flows to: input `input_nr` of a node. Without a node, the gradient is not needed.
struct Edge {
  IntrusivePtr<Node> node;
  uint32_t input_nr = 0;

  Edge() noexcept = default;
  Edge(IntrusivePtr<Node> n, uint32_t nr) noexcept : node(std::move(n)), input_nr(nr) {}

  explicit operator bool() const noexcept { return static_cast<bool>(node); }
};

namespace autograd {

struct NodeHooks;
struct ForwardTrace;
class GraphTask;
class NodeLock;

/// One run of a node: it reads `grads`, one for each of its inputs, and fills `out`, one for each of its
/// edges. An undefined tensor is zero, in both. The node may move from `grads`.
struct NodeCall {
  std::span<Tensor> grads;
  std::span<Tensor> out;
  std::span<const Edge> edges;
  /// Bytes, one for each edge: zero where the engine will not use the result. Null: it uses all.
  const uint8_t* filter = nullptr;

  bool wanted(size_t i) const noexcept { return edges[i].node && (!filter || filter[i]); }
};

/// Visits the tensors that a node has saved, to show them to users.
struct SavedVisitor {
  virtual ~SavedVisitor() = default;
  /// `name` as in the operator's schema; "result" for its own.
  virtual void tensor(std::string_view name, const Tensor& value) = 0;
  virtual void list(std::string_view name, const std::vector<Tensor>& values) = 0;
};

/// Visits the nodes that a node keeps alive.
struct KeptVisitor {
  virtual ~KeptVisitor() = default;
  virtual void node(const Node* kept) noexcept = 0;
};

}  // namespace autograd

/// One step of the backward pass. Its inputs are the gradients of the results of one forward call; its edges
/// lead to the nodes that made the arguments of that call.
class Node : public RefCounted {
 public:
  Node() noexcept;
  virtual ~Node();
  /// Frees a graph of any depth without recursion.
  static void destroy(Node* node) noexcept;

  /// "MulBackward0".
  virtual std::string_view name() const noexcept = 0;
  virtual void apply(autograd::NodeCall& call) = 0;
  /// Frees the tensors that were saved for `apply`, which throws from then on if it needs them.
  virtual void release_variables() noexcept {}
  virtual void visit_saved(autograd::SavedVisitor&) const {}
  /// Visits the nodes that saved tensors keep alive (not those of the edges), once for each reference. For
  /// the garbage collector of a language binding.
  virtual void visit_kept(autograd::KeptVisitor&) const noexcept {}

  /// Later nodes have higher numbers, and run first. UINT64_MAX runs before everything.
  uint64_t sequence() const noexcept { return sequence_; }

  std::span<const Edge> next_edges() const noexcept { return edges_; }
  void reserve_edges(size_t n) { edges_.reserve(n); }
  void add_edge(Edge edge) { edges_.emplace_back(std::move(edge)); }

  size_t num_inputs() const noexcept { return inputs_.size(); }
  /// The shape, dtype and device that the gradient of input i has.
  const autograd::TensorMeta& input_meta(size_t i) const noexcept { return inputs_[i]; }
  /// For the node of a leaf, whose tensor may be given other elements.
  void set_input_meta(size_t i, autograd::TensorMeta meta) { inputs_[i] = std::move(meta); }
  /// Adds an input for a result of the forward call; returns its number.
  uint32_t add_input(autograd::TensorMeta meta) {
    inputs_.emplace_back(std::move(meta));
    return inputs_.size() - 1;
  }
  uint32_t add_input(const Tensor& result) {
    inputs_.emplace_back(result);
    return inputs_.size() - 1;
  }

  /// The node's hooks; null if none was ever registered.
  autograd::NodeHooks* hooks() const noexcept { return hooks_.load(std::memory_order_acquire); }
  autograd::NodeHooks& ensure_hooks();

  /// The line that made the forward call, if it was noted.
  SourceMark source() const noexcept { return source_; }
  void set_source(SourceMark source) noexcept { source_ = source; }
  /// The node that runs this one as a part of itself: the CopySlices of a write to a view. Null for others.
  Node* enclosing() const noexcept { return enclosing_; }
  void set_enclosing(Node* node) noexcept { enclosing_ = node; }
  /// What anomaly mode kept of the forward call; null outside it.
  const std::shared_ptr<const autograd::ForwardTrace>& trace() const noexcept { return trace_; }

  static void* operator new(size_t nbytes);
  static void operator delete(void* p, size_t nbytes) noexcept;

 protected:
  struct RunsFirst {};
  /// For the last nodes of a path, which run first because running them frees memory.
  explicit Node(RunsFirst) noexcept;

 private:
  friend class autograd::GraphTask;
  friend class autograd::NodeLock;

  /// The backward pass that is visiting this node (high half) and the node's number in it (low half); 0 for
  /// none. Also links the nodes that wait to be freed.
  std::atomic<uint64_t> visit_{0};
  uint64_t sequence_;
  autograd::InlineVector<Edge, 2> edges_;
  autograd::InlineVector<autograd::TensorMeta, 1> inputs_;
  std::atomic<autograd::NodeHooks*> hooks_{nullptr};
  std::shared_ptr<const autograd::ForwardTrace> trace_;
  SourceMark source_;
  Node* enclosing_ = nullptr;
  /// The thread that runs the node or frees what it saved.
  std::atomic<uint32_t> owner_{0};
};

namespace autograd {

/// Keeps other threads from running a node and from freeing what it saved. A thread may lock a node that it
/// has locked already.
class NodeLock {
 public:
  explicit NodeLock(Node& node) noexcept;
  ~NodeLock() {
    if (taken_) node_.owner_.store(0, std::memory_order_release);
  }
  NodeLock(const NodeLock&) = delete;

 private:
  Node& node_;
  bool taken_ = true;
};

}  // namespace autograd

}  // namespace tenon
