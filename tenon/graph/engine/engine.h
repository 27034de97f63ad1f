// Engines: what runs regions. Each says of a region that it takes it, or why not, in a sentence that a user
// can act on, what it costs there, and makes a program of it. A backend lists its engines in a table; plans
// ask them through EngineChooser.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/scalar.h"
#include "tenon/core/tensor.h"
#include "tenon/graph/fuse/pipeline.h"

namespace tenon::graph {

/// A region that is ready to run: holds no addresses and no numbers, and nothing of the graph. Immutable and
/// safe to run from many threads at once.
class RegionProgram {
 public:
  virtual ~RegionProgram() = default;

  struct Arguments {
    std::span<const Tensor> uses, defs;  ///< Those of the region's node.
    std::span<const Scalar> numbers;     ///< Those of the graph.
  };
  /// Throws what its members would throw. `clobbered_inputs`: set to true once the run has
  /// overwritten an input of its members.
  virtual void run(const Arguments& arguments, bool& clobbered_inputs) const = 0;
};

/// Modelled nanoseconds of a region by an engine, and of its members one by one.
struct RegionCost {
  double together = 0, apart = 0;
};

struct Engine {
  std::string_view name;
  /// Why it does not run a region; empty if it does.
  std::string (*check_support)(const Graph& graph, const Node& region);
  /// Both null for engines of loops over elements, which tenon::FusedLoop runs.
  RegionCost (*cost)(const Graph& graph, const Node& region) = nullptr;
  std::unique_ptr<const RegionProgram> (*build)(const Graph& graph, const Node& region) = nullptr;
  /// Whether its bits are eager's. Others take part where a program allows them; in strict mode their
  /// programs run Tenon's own kernels.
  bool is_exact = true;
  /// Of a vendor's library, which it loads: its version; null for engines of our own.
  std::string (*version)() = nullptr;
  /// Values of its knobs that are worth a try for a region that it takes, besides those that it chooses
  /// itself.
  std::vector<Knobs> (*variants)(const Graph& graph, const Node& region) = nullptr;
};

/// The host's, best first; defined by its backend. The last one takes every loop over elements. For loops the
/// table says only what may run; LoopStep chooses.
inline constexpr size_t kNumHostEngines = 4;
extern const std::array<Engine, kNumHostEngines> kHostEngines;

/// By name; null if there is none.
const Engine* find_engine(std::string_view name);

/// Which engines take part.
struct EngineChoice {
  bool relaxed = false;                    ///< Also those whose bits may differ from eager's.
  std::vector<std::string> excluded = {};  ///< By name: these do not.
};
/// Why an engine does not run a region; empty if it does.
std::string refusal(const Engine& engine, const Graph& graph, const Node& region, const EngineChoice& choice);
/// Of the engines that take a region the one whose model has the least time, the first of several; null if
/// none does.
const Engine* engine_for(const Graph& graph, const Node& region, const EngineChoice& choice = {});
/// What runs a region around an anchor: the engine that it names, or else the one above. Throws
/// Error{NotImplemented} with the engines' sentences, where none does.
const Engine& engine_of(const Graph& graph, const Node& region, const EngineChoice& choice = {});
/// Why each engine does not run a region: "composed: ...; jit: ...".
std::string refusals(const Graph& graph, const Node& region, const EngineChoice& choice = {});

/// Keeps regions around anchors that an engine takes, where its model says that this is faster than the
/// members apart.
class EngineChooser : public Chooser {
 public:
  explicit EngineChooser(EngineChoice choice = {}) : choice_(std::move(choice)) {}
  std::string refuse(const Graph& graph, const Node& region) override;
  void describe(const Graph& graph, const Node& region, FusionReport::Fusion& fusion) override;
  /// Whether another process would choose the same, as far as it is known.
  virtual bool is_lasting() const noexcept { return true; }

 protected:
  const EngineChoice& choice() const noexcept { return choice_; }

 private:
  const EngineChoice choice_;
};

}  // namespace tenon::graph
