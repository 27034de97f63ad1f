// Plan: a graph that is ready to run at addresses: which steps, in which order, where what they make on the
// way lies in a workspace that the caller owns. Immutable, shared by threads; holds no addresses and no
// tensors' bytes. Used by the graph builder (tenon/builder).
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
#include "tenon/graph/engine/call_step.h"
#include "tenon/graph/engine/engine.h"
#include "tenon/graph/engine/loop_step.h"
#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/plan/aliases.h"

namespace tenon::graph {

/// What a caller brings to a graph, by UID.
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
};

struct PlanOptions {
  bool fuse = true;  ///< Else each call runs by itself, as in eager.
  Position position = Position::AfterFuser;
  bool rows = true;  ///< As in FusionOptions.
  EngineChoice engines = {};
  double tune_ms = 0;  ///< Of time that may be spent on measuring what runs each region; 0: models decide.
  bool dump = true;    ///< As in FusionOptions.
};

class ByteReader;
class ByteWriter;

class Plan {
 public:
  /// What workspaces, and addresses within them, are aligned to.
  static constexpr size_t kAlignment = 64;

  /// Takes a graph of calls. All its storages are on one device, where the plan runs: on the host in regions
  /// and calls, on a device in launches of expressions, if it takes them, and in calls. Throws
  /// Error{NotImplemented} with the sentences of engines, where none runs a part of it.
  Plan(Graph graph, Signature signature, const PlanOptions& options);
  /// The same, but that the plan of an earlier process is taken if the cache has it; else the cache gets this
  /// one.
  static std::shared_ptr<const Plan> make(const Graph& graph, const Signature& signature,
                                          const PlanOptions& options);
  /// Under which the plan is kept.
  static expr::Key cache_key(const Graph& graph, const Signature& signature, const PlanOptions& options);
  /// Has the plan written into the cache, in place of the one that is there.
  static void keep(std::shared_ptr<const Plan> plan, const expr::Key& cache_key);
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

  Device device() const noexcept { return device_; }
  std::span<const uint64_t> uids_sorted() const noexcept { return uids_; }
  size_t workspace_size() const noexcept { return workspace_size_; }
  /// Of the graph as it was given: the same for a recorded program of the same maths.
  const expr::Key& key() const noexcept { return report_.key; }
  const FusionReport& report() const noexcept { return report_; }
  /// The graph as it runs, regions and all.
  const Graph& graph() const noexcept { return graph_; }
  size_t num_steps() const noexcept { return steps_.size(); }
  /// What may allocate when it runs: "aten::convolution: an operator by itself", "region_0_mm_add: composed".
  std::vector<std::string> allocating_steps() const;

 private:
  struct Step {
    std::string name;
    std::string engine;  ///< Of a region around an anchor; else empty.
    std::unique_ptr<const LoopStep> loop;
    std::unique_ptr<const RegionProgram> region;
    std::unique_ptr<const CallStep> call;
    // Of regions and calls: tensors of an instance.
    Range uses, defs;
  };
  /// A tensor that a region or a call sees.
  struct Shell {
    StorageId storage;  ///< kNone: undefined.
    GeometryId geometry;
  };
  struct Instance;
  static constexpr size_t kNowhere = ~size_t{0};

  Plan(Graph fused, Signature signature, const expr::Key& key);
  /// Throws Error{NotImplemented} unless all storages are on one.
  void find_device();
  void add_step(const Node& node, const Engine* engine);
  /// Makes the steps of the fused graph, and what they share.
  void finish(const EngineChoice& choice);
  void place_temporaries();
  void find_alignments();
  std::unique_ptr<Instance> take_instance() const;
  void give_back(std::unique_ptr<Instance> instance) const noexcept;
  void check_call(std::span<const Address> sorted, std::span<std::byte> workspace, Stream stream) const;
  void run(const Step& step, Instance& instance) const;

  Graph graph_;
  Signature signature_;
  Device device_;
  bool lasts_ = true;  // worth to be kept for other processes
  FusionReport report_;
  std::vector<Step> steps_;
  std::vector<Shell> shells_;
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
