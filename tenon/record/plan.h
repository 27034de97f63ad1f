// Plan: how a recorded segment is computed: calls and regions in order, where their operands lie, and when
// memory is given back. Found again whenever the same calls were recorded and no more is wanted of them.
// Holds no addresses and no numbers; immutable once made. Run by instances (instance.h). Used by the
// recorder, which keeps plans at trie nodes, and by replays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tenon/graph/engine/engine.h"
#include "tenon/graph/engine/loop_step.h"
#include "tenon/record/segment.h"

namespace tenon::record {

class Instance;
struct Fused;

/// What a plan is made for: of a recorded segment, calls that no region is formed of run as operators, which
/// is what they are in the program; of one that is replayed they are loops, where they can, as a loop needs
/// no tensors.
enum class PlanFor : uint8_t { Segment, Replay };

class Plan {
 public:
  /// The plan of a segment: that of an earlier process, if the cache has it, or else a new one, which it then
  /// gets.
  static std::shared_ptr<const Plan> make(const Segment& segment, const std::vector<bool>& wanted,
                                          bool relaxed, double tune_ms = 0,
                                          PlanFor purpose = PlanFor::Segment);

  /// Whether it computes all that is wanted now.
  bool serves(const std::vector<bool>& wanted) const noexcept;
  /// Slots that regions write: what no call by itself brings the memory of.
  std::vector<uint32_t> written_by_regions() const;
  bool is_loaded() const noexcept { return is_loaded_; }  ///< From the cache.
  size_t num_steps() const noexcept { return steps_.size(); }
  /// Whether any calls run as one: else recording them has gained nothing.
  bool joins_calls() const noexcept;
  const graph::FusionReport& report() const noexcept { return report_; }

 private:
  friend class Instance;

  /// Several calls as one loop.
  struct Loop {
    Loop(const graph::Graph& g, const graph::Node& node)
        : step(g, node), takes_over(step.num_outputs(), kNoSlot) {}

    graph::LoopStep step;
    /// Of an output without memory: the slot whose memory it takes over, of an input that is read element by
    /// element and never again.
    std::vector<uint32_t> takes_over;
  };
  /// Several calls around a product or a convolution.
  struct Anchored {
    std::string name;
    std::string_view engine;
    std::unique_ptr<const graph::RegionProgram> program;
    std::vector<Operand> uses, defs;  ///< Of the region's node.
  };
  struct Step {
    std::vector<uint32_t> calls;  ///< Of the segment; one, or the members of a region.
    std::unique_ptr<Loop> loop;
    std::unique_ptr<const Anchored> anchored;
    std::vector<uint32_t> last_uses;  ///< Slots that nothing needs any more.
  };

  enum class From : uint8_t { Fuser, Cache };
  Plan(const Segment& segment, const std::vector<bool>& wanted, bool relaxed, const Fused& fused, From from);
  static std::unique_ptr<const Anchored> make_anchored(const graph::Graph& g, const graph::Node& node,
                                                       bool relaxed);
  void find_last_uses(const Segment& segment);
  static void reuse_memory(const Segment& segment, const Step& step, Loop& loop);

  std::vector<bool> wanted_;
  std::vector<size_t> nbytes_;        ///< By slot.
  std::vector<size_t> offset_shift_;  ///< As graph::Assembled has it.
  std::vector<Step> steps_;
  graph::FusionReport report_;
  bool is_loaded_;
};

}  // namespace tenon::record
