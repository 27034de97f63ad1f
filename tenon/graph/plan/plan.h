// Plan: a graph that is ready to run: which steps, in which order, and how long memory is needed. Of a
// written graph, temporaries have places in a workspace that the caller owns; of a recorded program, each run
// makes them. Immutable, shared by threads; holds no addresses and no tensors' bytes. Run by instances
// (instance.h). Used by the recorder, by replays and by the graph builder.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/core/allocator.h"
#include "tenon/core/stream.h"
#include "tenon/graph/engine/engine.h"
#include "tenon/graph/engine/loop_step.h"
#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/plan/aliases.h"

namespace tenon::graph {

/// What a caller brings to a graph: by UID, or, of a recorded program, by the slots that are its storages.
struct Signature {
  struct Tensor {
    uint64_t uid;
    StorageId storage;
    int64_t offset;  ///< In bytes: of the element at index [0, ..., 0], whose address is passed.
  };
  /// A number whose value lies at an address of the host.
  struct Value {
    uint64_t uid;
    DType dtype;
    std::vector<uint32_t> numbers;  ///< Of the graph, that take it.
  };
  std::vector<Tensor> tensors;
  std::vector<Value> values;
  /// Those of the graph; what `values` has is set by each run.
  std::vector<Scalar> numbers;
  /// Storages whose memory is there: it is that of every run. A plan with such is not kept in the cache.
  std::vector<std::pair<StorageId, tenon::Storage>> constants;

  // Of a recorded program, in place of all that.
  bool by_slot = false;
  std::vector<bool> wanted;          ///< The storages that are kept after a run.
  std::vector<size_t> offset_shift;  ///< As Assembled has it.
};

struct PlanOptions {
  bool fuse = true;  ///< Else each call runs by itself, as in eager.
  MatcherPosition position = MatcherPosition::AfterFuser;
  bool rows = true;  ///< As in FusionOptions.
  EngineChoice engines = {};
  double tune_ms = 0;  ///< Of time that may be spent on measuring what runs each region; 0: models decide.
  bool dump = true;    ///< As in FusionOptions.
  bool single_calls = true;  ///< As in FusionOptions.
};

class ByteReader;
class ByteWriter;
class Instance;

class Plan {
 public:
  /// What workspaces, and addresses within them, are aligned to.
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kNowhere = ~size_t{0};

  struct Step {
    std::string name;
    std::string engine;  ///< Of a region around an anchor; else empty.
    // Both null for a call by itself. Else the step is a region; its calls run one by one where it cannot
    // run.
    std::unique_ptr<const LoopStep> loop;
    std::unique_ptr<const RegionProgram> region;
    uint32_t first_call = 0, num_calls = 0;  ///< Among `calls`.
    /// Of each output of a loop: the storage whose memory it takes over, of an input that is read element by
    /// element and never again; else kNone.
    std::vector<StorageId> takes_over;
    std::vector<StorageId> last_uses;  ///< Storages of a recorded program that nothing needs any more.
  };

  /// Takes a graph of calls. All its storages are on one device, where the plan runs: on the host in regions
  /// and calls, on a device in launches of expressions, if it takes them, and in calls. Throws
  /// Error{NotImplemented} with the sentences of engines, where none runs a part of it. A recorded program
  /// runs its calls one by one in that case.
  Plan(Graph graph, Signature signature, const PlanOptions& options);
  /// The same, but that the plan of an earlier process is taken if the cache has it; else the cache gets this
  /// one (store.cc).
  static std::shared_ptr<const Plan> find_or_make(Graph graph, Signature signature,
                                                  const PlanOptions& options);
  /// Reads what `write` has written: nothing is planned again. Throws Error{Value} for bytes that are no
  /// plan, Error{NotImplemented} for an engine that does not run its region here.
  static std::shared_ptr<const Plan> read(ByteReader& in);
  void write(ByteWriter& out) const;
  ~Plan();
  Plan(const Plan&) = delete;

  /// Runs on the addresses of all UIDs, in the order of `uids_sorted`: of tensors that of the element at
  /// index [0, ..., 0], of numbers that of the value, which lies in host memory. Addresses of tensors, and
  /// the workspace, are the plan's device's; what it queues there is work of `stream`, which must have passed
  /// it before the workspace is used otherwise. Throws Error{Value} for another number of addresses, for a
  /// null one, for an output that shares memory with another output, with the workspace or with an input that
  /// is read after the output is written, and for a workspace that is too small or not aligned, Error{Device}
  /// for a stream of another device; what a step throws leaves outputs with some of their bytes.
  ///
  /// Takes no lock. Allocates nothing once it has run before as often at the same time, but for what the
  /// steps allocate that `allocating_steps` lists, and for what a device does to queue work.
  void execute(std::span<const Address> sorted, std::span<std::byte> workspace, Stream stream = {kCPU}) const;

  /// One that was given back, or a new one.
  std::unique_ptr<Instance> take_instance() const;
  /// After a run that has ended: keeps it for the next one.
  void give_back(std::unique_ptr<Instance> instance) const noexcept;

  Device device() const noexcept { return device_; }
  const Signature& signature() const noexcept { return signature_; }
  std::span<const uint64_t> uids_sorted() const noexcept { return uids_; }
  size_t workspace_size() const noexcept { return workspace_size_; }
  /// Of the graph as it was given: the same for a recorded program of the same maths.
  const expr::Key& key() const noexcept { return report_.key; }
  const FusionReport& report() const noexcept { return report_; }
  /// The graph as it runs, regions and all.
  const Graph& graph() const noexcept { return graph_; }
  std::span<const Step> steps() const noexcept { return steps_; }  ///< One for each node.
  size_t num_steps() const noexcept { return steps_.size(); }
  /// In order, those of a region in its place.
  std::span<const Node* const> calls() const noexcept { return calls_; }
  bool is_loaded() const noexcept { return is_loaded_; }  ///< From the cache.
  /// Nanoseconds that joined calls save in a run, as they are fewer and move less, beyond what recording all
  /// calls costs: an estimate for the host. On devices, where each launch costs, more than 0 if any calls are
  /// joined.
  int64_t saves() const noexcept { return saves_; }
  /// Whether it computes all slots that are wanted now. Here, as each flush asks, and plan.cc is compiled for
  /// size.
  bool serves(const std::vector<bool>& wanted) const noexcept {
    if (wanted.size() != signature_.wanted.size()) return false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] && !signature_.wanted[i]) return false;
    }
    return true;
  }
  /// What may allocate when it runs: "aten::convolution: an operator by itself", "region_0_mm_add: composed".
  std::vector<std::string> allocating_steps() const;

 private:
  struct Fused {
    Graph graph;
    Signature signature;
    FusionReport report;
  };
  Plan(Fused fused, const EngineChoice& choice, bool is_loaded);
  static Fused read_fused(ByteReader& in);
  /// Throws Error{NotImplemented} unless all storages are on one.
  void find_device();
  void fuse(const PlanOptions& options);
  /// Makes the steps of the fused graph, and what they share.
  void finish(const EngineChoice& choice);
  void add_step(const Node& node, const EngineChoice& choice);
  void add_region(Step& step, const Node& node, const EngineChoice& choice) const;
  void find_lives();
  int64_t estimate_saving() const noexcept;
  void reuse_memory(Step& step);
  void find_alignments();
  void check_call(std::span<const Address> sorted, std::span<std::byte> workspace, Stream stream) const;

  Graph graph_;
  Signature signature_;
  Device device_;
  bool lasts_ = true;  // worth to be kept for other processes
  bool is_loaded_ = false;
  int64_t saves_ = 0;
  FusionReport report_;
  std::vector<Step> steps_;
  std::vector<const Node*> calls_;
  std::vector<uint64_t> uids_;
  std::vector<uint32_t> tensor_places_, value_places_;  // of the signature's rows, among the uids
  Aliases aliases_;
  std::vector<size_t> alignments_;  // of storages, in bytes: that of their elements; powers of two
  std::vector<size_t> offsets_;     // of storages, in the workspace; kNowhere for others
  size_t workspace_size_ = 0;
  // What runs have used before, to be used again.
  static constexpr size_t kSpares = 8;
  mutable std::array<std::atomic<Instance*>, kSpares> spares_{};
};

}  // namespace tenon::graph
