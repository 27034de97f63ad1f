// CachedPlan: a graph that is written down once for each kind of arguments, and runs on arguments of that
// kind from then on. For authors of operators, who write no keys: what a plan depends on is read from the
// arguments. Knows nothing of operators' names and registrations.
//
//     static builder::CachedPlan plan("rmsnorm", [](builder::Graph& g, const builder::PlanInputs& in) {
//       return builder::PlanResults{&g.rmsnorm(in.tensor(0), in.tensor(1), in.tensor(2))};
//     });
//     Tensor rmsnorm(const Tensor& x, const Tensor& weight, double eps) { return plan({x, weight, eps})[0]; }
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/builder/graph.h"
#include "tenon/core/tensor.h"

namespace tenon::builder {

/// An argument of a call. Tensors and floating-point numbers are inputs of the graph: a plan holds for all
/// tensors of the same dtype, sizes, strides and device, and for all numbers. Everything else is part of what
/// the graph is. Borrows tensors, texts and lists for the call.
class PlanArgument {
 public:
  enum class Kind : uint8_t { Absent, Tensor, Number, Int, Bool, Text, Ints, Type };

  PlanArgument() = default;
  PlanArgument(std::nullopt_t) {}
  /// Undefined: absent.
  PlanArgument(const tenon::Tensor& t) : kind_(t.defined() ? Kind::Tensor : Kind::Absent), pointer_(&t) {}
  PlanArgument(const std::optional<tenon::Tensor>& t) {
    if (t) *this = PlanArgument(*t);
  }
  PlanArgument(double number) : kind_(Kind::Number), number_(number) {}
  PlanArgument(int64_t value) : kind_(Kind::Int), integer_(value) {}
  PlanArgument(int value) : PlanArgument(int64_t{value}) {}
  PlanArgument(bool value) : kind_(Kind::Bool), integer_(value) {}
  PlanArgument(std::string_view text) : kind_(Kind::Text), size_(text.size()), pointer_(text.data()) {}
  PlanArgument(const char* text) : PlanArgument(std::string_view(text)) {}
  PlanArgument(IntArrayRef values) : kind_(Kind::Ints), size_(values.size()), pointer_(values.data()) {}
  PlanArgument(DType type) : kind_(Kind::Type), integer_(static_cast<int64_t>(type)) {}

  Kind kind() const noexcept { return kind_; }
  const tenon::Tensor& tensor() const noexcept { return *static_cast<const tenon::Tensor*>(pointer_); }
  const double& number() const noexcept { return number_; }
  int64_t integer() const noexcept { return integer_; }
  std::string_view text() const noexcept { return {static_cast<const char*>(pointer_), size_}; }
  IntArrayRef ints() const noexcept { return {static_cast<const int64_t*>(pointer_), size_}; }

 private:
  Kind kind_ = Kind::Absent;
  size_t size_ = 0;
  union {
    const void* pointer_ = nullptr;
    double number_;
    int64_t integer_;
  };
};

/// The arguments while the graph is written down: inputs stand for tensors and numbers.
class PlanInputs {
 public:
  PlanInputs(const std::shared_ptr<Graph>& graph, std::span<const PlanArgument> arguments,
             std::span<TensorAttributes* const> tensors)
      : graph_(graph), arguments_(arguments), tensors_(tensors) {}

  size_t size() const noexcept { return arguments_.size(); }
  bool has(size_t i) const { return at(i).kind() != PlanArgument::Kind::Absent; }
  /// A tensor or a number. Throws Error{Type} for anything else.
  TensorAttributes& tensor(size_t i) const;
  /// Null where the argument is absent.
  TensorAttributes* tensor_or_null(size_t i) const { return has(i) ? &tensor(i) : nullptr; }
  bool flag(size_t i) const { return of(i, PlanArgument::Kind::Bool).integer() != 0; }
  int64_t integer(size_t i) const { return of(i, PlanArgument::Kind::Int).integer(); }
  std::string_view text(size_t i) const { return of(i, PlanArgument::Kind::Text).text(); }
  IntArrayRef ints(size_t i) const { return of(i, PlanArgument::Kind::Ints).ints(); }
  DType type(size_t i) const { return static_cast<DType>(of(i, PlanArgument::Kind::Type).integer()); }

  /// Null for arguments that are no inputs.
  std::span<TensorAttributes* const> tensors() const noexcept { return tensors_; }
  const std::shared_ptr<Graph>& graph() const noexcept { return graph_; }

 private:
  const PlanArgument& at(size_t i) const;
  const PlanArgument& of(size_t i, PlanArgument::Kind kind) const;

  const std::shared_ptr<Graph>& graph_;
  std::span<const PlanArgument> arguments_;
  std::span<TensorAttributes* const> tensors_;
};

using PlanResults = std::vector<TensorAttributes*>;

/// A plan for one kind of arguments. Immutable, shared by threads. On meta tensors it has no plan and only
/// makes results.
class PlanBinding {
 public:
  size_t num_results() const noexcept { return results_.size(); }
  /// Runs on arguments of the kind for which it was made, in a workspace that the call allocates. A result
  /// that is undefined becomes a new tensor; one that is defined is written, after it was checked. Throws
  /// Error{Shape}, Error{Type} or Error{Device} for a result of another kind.
  void run(std::span<const PlanArgument> arguments, std::span<tenon::Tensor> results) const;
  /// All of `run` but the run itself, of results that are undefined: makes them, and collects the addresses
  /// unless `only_results`. For reports of what a call costs.
  void prepare(std::span<const PlanArgument> arguments, std::span<tenon::Tensor> results,
               bool only_results) const;
  const std::shared_ptr<Graph>& graph() const noexcept { return graph_; }
  /// Bytes that a run reads and writes; 0 on meta tensors.
  int64_t traffic() const noexcept { return plan_ ? plan_->report().bytes : 0; }

 private:
  friend class CachedPlan;
  /// Where an address comes from: an argument, or a result behind all of them.
  using Place = uint32_t;
  struct Result {
    Dims sizes, strides;
    DType dtype;
    bool contiguous;
  };
  using Addresses = SmallVector<Address, 16>;
  tenon::Tensor make(const Result& result) const;
  void make_results(std::span<tenon::Tensor> results) const;
  /// Of the plan's UIDs, sorted.
  void collect(std::span<const PlanArgument> arguments, std::span<const tenon::Tensor> results,
               Addresses& addresses) const;
  bool fits(const Result& result, const tenon::Tensor& out, std::span<const PlanArgument> arguments) const;

  std::string name_;
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<const graph::Plan> plan_;
  Device device_;
  size_t workspace_size_ = 0;
  std::vector<Place> places_;  // of the plan's UIDs, sorted
  std::vector<Result> results_;
};

class CachedPlan {
 public:
  using Build = std::function<PlanResults(Graph&, const PlanInputs&)>;
  static constexpr size_t kCapacity = 256;

  /// `build` writes the graph down and returns its results. Argument i has UID i + 1, result i the UIDs
  /// behind all arguments', in order. At most `capacity` plans are kept, those that were used last.
  CachedPlan(std::string name, Build build, size_t capacity = kCapacity, GraphOptions options = {});

  /// The plan for arguments of this kind, built if there is none. Thread-safe; threads that miss at once
  /// build side by side, and one of their plans is kept. Throws what building throws, and Error{Runtime} for
  /// arguments that record history: a plan has no derivative. `writes_out`: results are written to tensors of
  /// the caller's, which messages say.
  std::shared_ptr<const PlanBinding> find(std::span<const PlanArgument> arguments, bool writes_out = false);
  /// Runs it; new tensors.
  std::vector<tenon::Tensor> operator()(std::initializer_list<PlanArgument> arguments);

  struct Counts {
    uint64_t hits = 0, misses = 0;
    size_t capacity = 0, size = 0;
  };
  Counts counts() const;
  /// Forgets all plans, and what was counted.
  void clear();
  const std::string& name() const noexcept { return name_; }

 private:
  using Key = std::vector<uint64_t>;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::span<const uint64_t> key) const noexcept;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::span<const uint64_t> a, std::span<const uint64_t> b) const noexcept;
  };
  struct Entry {
    std::shared_ptr<const PlanBinding> plan;
    uint64_t used = 0;
  };
  std::shared_ptr<const PlanBinding> make(std::span<const PlanArgument> arguments, Device device) const;

  std::string name_;
  Build build_;
  GraphOptions options_;
  mutable std::mutex mutex_;
  using Plans = std::unordered_map<Key, Entry, Hash, Equal>;
  Plans plans_;
  Plans::value_type* latest_ = nullptr;  // compared first: calls mostly repeat
  Counts counts_;
};

}  // namespace tenon::builder
