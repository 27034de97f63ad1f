// Graph: a program of tensor operators that is written down rather than run, with the names of the cuDNN
// frontend, and the plans that run it. It becomes the same intermediate representation as a recorded program
// (tenon/graph/ir/graph.h): the same regions, engines, bits and key.
//
//     builder::Graph g({.io = kFloat32});
//     auto& x = g.tensor({.name = "x", .dim = {64, 784}});
//     auto& w = g.tensor({.name = "w", .dim = {784, 512}});
//     auto& b = g.tensor({.name = "b", .dim = {512}});
//     auto& y = g.gelu(g.add(g.matmul(x, w), b));
//     g.reduction(y, "ADD").set_dim({64, 1}).set_output();
//     g.build();
//     g.execute({{x.uid(), x_data}, ...}, workspace);
//
// A graph that is made with the handle of a device has plans for it, which read and write that device's
// memory, on the handle's stream:
//
//     const builder::Handle handle{.device = stream.device, .stream = stream};
//     builder::Graph g({.io = kFloat32}, &handle);
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/builder/node.h"
#include "tenon/builder/tensor.h"
#include "tenon/core/allocator.h"
#include "tenon/core/stream.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/plan.h"

namespace tenon {
class Tensor;
}

namespace tenon::builder {

/// A device and its stream, on which graphs run.
struct Handle {
  Device device = kCPU;
  std::optional<Stream> stream = {};  ///< Not set: the calling thread's current one.

  Stream stream_now() const noexcept { return stream ? *stream : current_stream(device); }
};

/// Types that hold for all tensors and nodes that have none of their own. Not set: inputs have to say theirs,
/// results are typed as the operators do it, and nodes compute in their operands' type, or in the declared
/// type of a result that holds more.
struct GraphOptions {
  std::string name = {};
  std::optional<DType> io = {};            ///< Of tensors that are not virtual.
  std::optional<DType> intermediate = {};  ///< Of virtual ones.
  std::optional<DType> compute = {};       ///< Operands of another type are converted first.
};

/// How plans are proposed.
enum class HeuristicMode : uint8_t {
  A,         ///< Fused as by default, then every other way to fuse, then operator by operator.
  B,         ///< The ways to fuse in another order: while pointwise regions are formed first.
  Fallback,  ///< Operator by operator.
};
enum class BuildPolicy : uint8_t { HeuristicsChoice, All };

/// An engine for whole graphs, and what can be set of it.
struct Knob {
  std::string name;
  std::vector<int64_t> values;
  std::vector<std::string_view> words = {};  ///< Names of the values, in their order, where they have names.
};
using graph::Knobs;
/// "fused" and "operators".
std::span<const std::string_view> engine_names();
/// That may go by while a plan is tuned, in milliseconds, unless somebody says another number.
inline constexpr double kTuneMs = 200;
/// Throws Error{Value} for another name.
std::vector<Knob> knobs_of(std::string_view engine);
/// The value of a knob by its name: 1 of "position" and "b-A". Throws Error{Value} for a knob or name that
/// there is not.
int64_t knob_value(std::string_view engine, std::string_view knob, std::string_view word);

class Graph {
 public:
  /// For plans of the handle's device, as it is current where it has no index.
  explicit Graph(GraphOptions options = {}, const Handle* handle = nullptr);
  ~Graph();
  Graph(const Graph&) = delete;

  // Writing it down

  TensorAttributes& tensor(TensorDescription options);
  /// With the sizes, strides and dtype of a tensor of the graph's device, or of meta. In a graph of a device,
  /// a tensor of the host that has one element is a number that is passed by value.
  TensorAttributes& tensor_like(const tenon::Tensor& like, std::string name = {});
  /// With those of a tensor of a graph, which is a number if that is one. Throws Error{Value} if its sizes or
  /// its dtype follow from a node and its graph is not validated.
  TensorAttributes& tensor_like(const TensorAttributes& like, std::string name = {});
  /// A number that is part of the graph.
  TensorAttributes& tensor_scalar(const Scalar& value, std::optional<DType> data_type = {},
                                  std::string name = {});
  /// A node of any kind (node.h); its outputs. Inputs that are null are absent. Throws Error{Value} or
  /// Error{Type} for a kind, an input or an attribute that is not there, and for a tensor of another graph.
  std::vector<TensorAttributes*> node(std::string_view kind, std::span<TensorAttributes* const> inputs,
                                      Attributes attributes = {}, std::string name = {},
                                      std::optional<DType> compute_type = {});

  // The same with names. `mode`: "ADD", "AVG", "MAX", ...
  TensorAttributes& matmul(TensorAttributes& a, TensorAttributes& b) { return one("matmul", {&a, &b}); }
  TensorAttributes& add(TensorAttributes& a, TensorAttributes& b) { return one("add", {&a, &b}); }
  TensorAttributes& sub(TensorAttributes& a, TensorAttributes& b) { return one("sub", {&a, &b}); }
  TensorAttributes& mul(TensorAttributes& a, TensorAttributes& b) { return one("mul", {&a, &b}); }
  TensorAttributes& relu(TensorAttributes& x) { return one("relu", {&x}); }
  TensorAttributes& gelu(TensorAttributes& x) { return one("gelu", {&x}); }
  TensorAttributes& pointwise(std::string_view mode, std::initializer_list<TensorAttributes*> inputs,
                              Attributes attributes = {}) {
    return one(mode, inputs, std::move(attributes));
  }
  TensorAttributes& reduction(TensorAttributes& x, std::string mode, Attributes attributes = {}) {
    attributes.emplace("mode", std::move(mode));
    return one("reduction", {&x}, std::move(attributes));
  }
  TensorAttributes& softmax(TensorAttributes& x, int64_t axis = -1) {
    return one("softmax", {&x}, {{"axis", axis}});
  }
  TensorAttributes& rmsnorm(TensorAttributes& x, TensorAttributes& scale, TensorAttributes& epsilon) {
    return one("rmsnorm", {&x, &scale, nullptr, &epsilon});
  }
  TensorAttributes& conv_fprop(TensorAttributes& image, TensorAttributes& weight,
                               Attributes attributes = {}) {
    return one("conv_fprop", {&image, &weight}, std::move(attributes));
  }

  // From the first step to the last. Each throws Error{Runtime} if one before it is missing.

  /// Checks every tensor and node; sizes, strides, types and UIDs of all tensors are known afterwards. UIDs
  /// that were not set are 1, 2, 3 ... in the order in which tensors were made, without those that were.
  void validate();
  /// Makes the graph of operators. Nothing can be added or set afterwards.
  void build_operation_graph();
  void create_execution_plans(std::span<const HeuristicMode> modes);
  /// A plan of one engine, behind those that were created. Throws Error{Value} for a name that is none.
  void create_execution_plan(std::string_view engine, const Knobs& knobs = {});
  /// Throws Error{NotImplemented} with the sentence of each plan, if none can run the graph.
  void check_support();
  void build_plans(BuildPolicy policy = BuildPolicy::HeuristicsChoice);
  void build_plan_at_index(size_t index);
  /// All of it.
  void build(std::span<const HeuristicMode> modes = {});

  size_t execution_plan_count() const noexcept { return candidates_.size(); }
  /// "fused(position=0, rows=1, relaxed=0)".
  const std::string& plan_name_at_index(size_t index) const;
  /// Of engines ("operators", "composed") and of plans, by name or by a part of it that an engine's name is.
  void deselect_engines(std::span<const std::string> names);
  void deselect_workspace_greater_than(size_t nbytes);
  size_t workspace_size() const { return plan()->workspace_size(); }
  size_t workspace_size_at_index(size_t index) const;
  /// 32 digits: that of every graph, built or recorded, which computes the same.
  std::string key() const;
  /// The plan that runs: the first one that was built.
  const std::shared_ptr<const graph::Plan>& plan() const;
  const std::shared_ptr<const graph::Plan>& plan_at_index(size_t index) const;

  /// Times all plans that are built, and the best of them once more with its regions tuned (tenon/graph/
  /// tuner.h), on the pack's inputs and on outputs of its own: no output of the pack is written. Plans stand
  /// in the order of their times afterwards, and the first one runs. One that computes something else than
  /// the first of those with eager's bits is not taken, nor one that needs a larger workspace. What became of
  /// each, in the order in which they were timed. On a device times are those of whole runs, until the stream
  /// has passed them, and regions are not tuned.
  std::vector<graph::Trial> autotune(const std::unordered_map<uint64_t, Address>& variant_pack,
                                     std::span<std::byte> workspace = {}, double budget_ms = kTuneMs,
                                     const Handle* handle = nullptr);
  /// In bytes, of the plan that is built and needs most. `what`: who asks, for messages.
  size_t autotune_workspace_size(const char* what = "get_autotune_workspace_size") const;

  // Keeping it

  /// The plan that runs, with what is known of its tensors: a few kilobytes, no machine code.
  std::vector<std::byte> serialize() const;
  /// Of an empty graph, which is built then and has no nodes, or of one whose operations are built and are
  /// the same. Nothing is planned. Throws Error{Value} for bytes that were cut off, altered, written by
  /// another version or for another instruction set, or that are another graph's plan.
  void deserialize(std::span<const std::byte> bytes);

  // Running it, on the stream of the call's handle, or else of the graph's. Addresses of tensors and the
  // workspace are the device's; numbers that are passed by value lie in host memory.

  /// The UIDs that a run needs addresses for, in the order of `execute_with_ptrs`.
  std::span<const uint64_t> variant_pack_uids_sorted() const { return plan()->uids_sorted(); }
  void execute(const std::unordered_map<uint64_t, Address>& variant_pack, std::span<std::byte> workspace = {},
               const Handle* handle = nullptr) const;
  void execute_plan_at_index(const std::unordered_map<uint64_t, Address>& variant_pack,
                             std::span<std::byte> workspace, size_t index,
                             const Handle* handle = nullptr) const;
  /// The addresses in the order of the plan's UIDs. Throws Error{Value} for UIDs that are missing or unknown.
  std::vector<Address> sorted(const graph::Plan& plan,
                              const std::unordered_map<uint64_t, Address>& variant_pack) const;
  Device device() const noexcept { return handle_.device; }
  Stream stream(const Handle* handle = nullptr) const noexcept {
    return (handle ? *handle : handle_).stream_now();
  }
  /// Checks device, dtype, sizes and strides.
  void check_tensor(uint64_t uid, const tenon::Tensor& t) const;
  void execute_with_ptrs(std::span<const Address> sorted, std::span<std::byte> workspace = {},
                         const Handle* handle = nullptr) const;

  // What others read

  const std::vector<std::unique_ptr<TensorAttributes>>& tensors() const noexcept { return tensors_; }
  /// Null if there is none.
  TensorAttributes* find_tensor(uint64_t uid) const noexcept;
  const GraphOptions& options() const noexcept { return options_; }
  /// The operators, as text, once they are built.
  std::string to_string() const;

 private:
  friend class TensorAttributes;
  friend class Lowering;
  enum class Stage : uint8_t { Open, Validated, Operations, Plans, Supported, Built };
  /// A plan that may be built.
  struct Candidate {
    std::string name;
    std::string engine;
    graph::PlanOptions options;
    std::shared_ptr<const graph::Plan> plan = {};  ///< Null: not yet.
    std::string refused = {};                      ///< Why it is none.
  };
  struct Lowered;
  class Trials;

  TensorAttributes& one(std::string_view kind, std::initializer_list<TensorAttributes*> inputs,
                        Attributes attributes = {}) {
    return *node(kind, {inputs.begin(), inputs.size()}, std::move(attributes))[0];
  }
  TensorAttributes& new_tensor();
  void check_open(const char* what) const;
  void need(Stage stage, const char* what) const;
  std::vector<bool> used_tensors() const;
  void check_tensors() const;
  void pass_numbers_by_value();
  void give_uids();
  bool try_build(Candidate& candidate);

  GraphOptions options_;
  Handle handle_;
  Stage stage_ = Stage::Open;
  std::vector<std::unique_ptr<TensorAttributes>> tensors_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, TensorAttributes*> by_uid_;
  std::unique_ptr<Lowered> lowered_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> deselected_;
  size_t most_workspace_ = ~size_t{0};
  size_t chosen_ = ~size_t{0};
};

}  // namespace tenon::builder
