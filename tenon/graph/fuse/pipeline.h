// The pipeline: the passes that a graph goes through before it is planned, in an order that is checked, with
// a report of what was fused. One matcher of products and convolutions is in one of four positions
// (TENON_FUSION), so that the regions of the four can be compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/expr/key.h"
#include "tenon/graph/fuse/passes.h"
#include "tenon/graph/fuse/race.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/lowering.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {

/// When the matcher runs, next to the pointwise fuser.
enum class MatcherPosition : uint8_t {
  AfterFuser,   ///< "a", the default: it takes regions that the pointwise fuser has formed, whole.
  BeforeFuser,  ///< "b-A": a pass of its own, call by call; the fuser gets what is left.
  InFuser,      ///< "b-B": the fuser takes products and convolutions as it goes.
  Alone,        ///< "c": nothing else is fused.
};
inline constexpr MatcherPosition kMatcherPositions[] = {MatcherPosition::AfterFuser,
                                                        MatcherPosition::BeforeFuser,
                                                        MatcherPosition::InFuser, MatcherPosition::Alone};
/// "a", "b-A", "b-B", "c".
std::string_view name(MatcherPosition position) noexcept;
std::optional<MatcherPosition> parse_position(std::string_view text) noexcept;
/// That of TENON_FUSION. Says on the diagnostic sink, once, that another text means nothing.
MatcherPosition configured_position();

/// What a pass does.
enum class PassKind : uint8_t { Clean, Fuse, Match, FuseAndMatch, Form, Choose };
std::string_view name(PassKind kind) noexcept;
/// The passes of a position, in order.
std::span<const PassKind> passes_of(MatcherPosition position) noexcept;
/// Why passes cannot run in this order; empty if they can. What is dead goes first; each rewriter is there
/// once and before regions are formed; the chooser comes last, since what it has chosen an engine for must
/// not be rewritten.
std::string why_not(std::span<const PassKind> passes);

/// What became of a graph.
struct FusionReport {
  struct Fusion {
    std::string name;
    RegionKind kind = RegionKind::Flat;
    std::vector<OperatorHandle> operators;  ///< Of its members, in order.
    std::vector<NodeId> members;            ///< Of the graph without its dead calls.
    int64_t bytes = 0;                      ///< That it reads and writes.
    int64_t bytes_apart = 0;                ///< That its members did.
    std::string engine;  ///< That runs it, as its chooser says; of a loop in a plan, what its LoopStep has.
    Knobs knobs = {};    ///< Of the engine, that are not as it chooses them.
    std::vector<std::string> refused;  ///< "engine: why it does not run the region".
    std::vector<Trial> trials = {};    ///< What was timed for it.
  };
  struct Left {
    OperatorHandle op;
    SourceMark line;
    std::string reason;
    uint32_t call = kNone;  ///< As Node has it.
  };
  MatcherPosition position = MatcherPosition::AfterFuser;
  expr::Key key;  ///< Of the graph without its dead calls, as it was given.
  std::vector<Fusion> fusions;
  std::vector<Left> left;  ///< Calls that could have been in a region, and why they are not.
  size_t steps = 0;        ///< Nodes, once fused.
  int64_t bytes = 0;       ///< That all nodes read and write.
};

/// Chooses how regions run, or that their calls do so one by one. The pipeline asks it last.
class Chooser {
 public:
  virtual ~Chooser() = default;
  /// Why a region is not kept, of engines that decline it or of what they cost; empty if it is. The node is
  /// not in the graph, whose tables it uses.
  virtual std::string refuse(const Graph& graph, const Node& region) = 0;
  /// The same of loops, each with its engine.
  virtual std::string refuse_loop(const Graph&, const Node&) { return {}; }
  /// Which engine runs a region of any kind, and why others do not.
  virtual void describe(const Graph&, const Node&, FusionReport::Fusion&) {}
};

struct FusionOptions {
  MatcherPosition position = configured_position();
  Lowering* lowering = nullptr;  ///< Null: OperatorLowering.
  /// Null: regions around anchors are kept as they are formed.
  Chooser* chooser = nullptr;
  /// Reductions and norms over rows join regions, too.
  bool rows = false;
  bool dump = true;      ///< Stages are written where TENON_DUMP_GRAPH asks for them.
  bool relaxed = false;  ///< Values are not rounded to half types but where they are stored.
  /// Calls that are loops become regions by themselves, too: what runs them needs no tensors.
  bool single_calls = false;
};

/// What the regions of a fused graph are and move; not what runs them, nor what was left.
void describe(const Graph& graph, FusionReport& report);

/// Runs the passes over the graph. Throws Error{Internal} if it broke a rule (in builds with assertions).
FusionReport fuse(Graph& graph, const FusionOptions& options = {});

/// As text: each fusion with its calls and the bytes that it saves, and what was left.
std::string to_string(const FusionReport& report);

/// How long a graph takes, measured on memory of its own.
struct Timing {
  double planned = 0, run = 0;  ///< Nanoseconds: of making the plan once, and of the fastest of a few runs.
  std::string problem;          ///< Why there are none; else empty.
};

/// The same graph in all four positions, before a chooser decides about what they form, and which of them
/// form something else than the default does. Times are those with the engines that the chooser takes.
struct Comparison {
  struct Difference {
    MatcherPosition position;
    int64_t bytes;  ///< That are moved more than in the default position: a regression where it is above 0.
    std::string text;
  };
  std::vector<FusionReport> reports;  ///< By kMatcherPositions.
  std::vector<std::string> keys;      ///< Of the graphs, as 32 digits.
  std::vector<Timing> times;
  std::vector<Difference> differences;
};
Comparison compare_positions(const Graph& graph, const FusionOptions& options = {});
std::string to_string(const Comparison& comparison);

}  // namespace tenon::graph
