// GraphTask: one backward pass: the nodes that it reaches, how many gradients each still waits for, and the
// gradients that have arrived. The calling thread runs it, or a DevicePass does. Internal to the engine.
#pragma once

#include <unordered_map>
#include <vector>

#include "tenon/autograd/engine.h"
#include "tenon/autograd/hooks.h"
#include "tenon/core/small_alloc.h"

namespace tenon::autograd {

class DevicePass;

namespace detail {
/// How many passes were started on this thread, each from within another; those of the thread that started
/// the pass which this worker runs count too.
extern thread_local constinit int pass_depth TENON_FAST_TLS;
}  // namespace detail

/// Room for the results of a node; each thread that runs nodes has its own.
struct Scratch {
  std::vector<Tensor> out;
  std::vector<uint8_t> filter;
};

class GraphTask {
 public:
  GraphTask(std::span<const Edge> roots, std::span<const Edge> captures, const BackwardOptions& options);
  ~GraphTask();
  GraphTask(const GraphTask&) = delete;

  /// Whether it reaches nodes of devices with streams: a DevicePass runs those.
  bool on_devices() const noexcept { return on_devices_; }
  /// Adds a gradient to those that have arrived at the edge's node.
  void deliver(const Edge& edge, Tensor grad);
  void run();
  std::vector<Tensor> take_captured() noexcept { return std::move(captured_); }

 private:
  friend class DevicePass;

  struct Step {
    Node* node;
    uint32_t waiting = 0;     // edges of the graph that have not delivered yet
    uint32_t first_grad = 0;  // in grads_; one for each input
    bool needed = true;       // leads to something that was asked for
    bool runs = true;
    bool ready = false;
  };
  struct CapturedInput {
    uint32_t step;
    uint32_t input_nr;
    uint32_t place;  // in captured_
  };
  /// An entry of the heap of ready nodes; the latest node runs first.
  struct Ready {
    uint64_t sequence;
    uint32_t step;
    bool operator<(const Ready& o) const noexcept { return sequence < o.sequence; }
  };

  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t find(const Node& node) const noexcept;
  uint32_t visit(Node& node);
  void discover(std::span<const Edge> roots);
  void mark_needed(std::span<const Edge> captures);
  void run_step(uint32_t index, Scratch& scratch);
  void run_node(Step& step, NodeCall& call);
  void apply_watched(Node& node, NodeCall& call);
  void run_tensor_hooks(Step& step);
  void run_pre_hooks(Step& step, std::span<Tensor> grads);
  void run_post_hooks(Step& step, std::span<Tensor> out, const std::vector<Tensor>& grads);
  void keep_captured(uint32_t index);
  void pass_on(Step& step, std::span<Tensor> out);
  void deliver(uint32_t index, uint32_t input_nr, Tensor grad);
  void add_to_slot(uint32_t index, uint32_t input_nr, Tensor grad);
  void make_ready(uint32_t index);

  BackwardOptions options_;
  uint32_t id_;
  bool on_devices_ = false;
  DevicePass* devices_ = nullptr;  // what runs this task, if that is not the calling thread alone
  std::vector<Step> steps_;
  std::vector<uint32_t> finished_;  // depth-first post-order: every node after all that it leads to
  std::vector<Tensor> grads_;
  std::vector<Ready> queue_;
  std::vector<CapturedInput> captures_;
  std::vector<Tensor> captured_;
  Scratch scratch_;
  /// Nodes that another pass was visiting when this one reached them.
  std::unordered_map<const Node*, uint32_t> contended_;
};

}  // namespace tenon::autograd
