// The tuner: times what may run a region, on memory of its own, and keeps the fastest that computes what it
// should. Engines of our own are to give the bits of the region's calls, those of vendors to stay within the
// bound of docs/compile.md. What it chose is in the region, as an engine's name and its knobs.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tenon/graph/engine/engine.h"
#include "tenon/graph/fuse/race.h"

namespace tenon::graph {

/// One way to run a region.
struct Candidate {
  std::string engine;  ///< Empty: as it runs without tuning, or, around an anchor, its calls apart.
  Knobs knobs = {};
  bool is_exact = true;
  std::unique_ptr<const RegionProgram> program;
  std::string name() const;  ///< "composed(rows=24)"; that of `shown`, if it has no engine.
  std::string shown = {};
};

/// The engines that take a region, each as it chooses its knobs itself and with every other value of them,
/// the one first that runs it without tuning.
std::vector<Candidate> candidates_of(const Graph& graph, const Node& region, const EngineChoice& choice);
/// The members of a region, one by one.
Candidate calls_apart(const Graph& graph, const Node& region);

struct TuningResult {
  std::vector<Trial> trials;  ///< Of the candidates, in order.
  size_t winner = kNone;      ///< kNone: none computes what it should, or nothing could be tried.
};
/// `reference`: what exact candidates have the bits of. What a candidate throws is the reason why it is not
/// taken.
TuningResult tune(const Graph& graph, const Node& region, std::span<const Candidate> candidates,
                  const RegionProgram& reference, const Budget& budget);

/// Keeps and chooses by what was measured: a region is kept where it is not slower than its calls.
class MeasuringTuner final : public EngineChooser {
 public:
  /// `ns`: for all regions of a graph.
  MeasuringTuner(EngineChoice choice, double ns) : EngineChooser(std::move(choice)), budget_(ns) {}
  std::string refuse(const Graph& graph, const Node& region) override;
  std::string refuse_loop(const Graph& graph, const Node& loop) override;
  void describe(const Graph& graph, const Node& region, FusionReport::Fusion& fusion) override;

 private:
  struct Choice {
    std::string engine;
    Knobs knobs;
    std::vector<Trial> trials;
    bool is_apart = false;
  };
  const Choice& choice_for(const Graph& graph, const Node& region);

  Budget budget_;
  // Regions are formed again when one is given up: by the values that their members make.
  std::map<std::vector<ValueId>, Choice> known_;
};

/// Keeps loops that the device takes as launches, and nothing else: engines are the host's.
class DeviceChooser final : public EngineChooser {
 public:
  std::string refuse_loop(const Graph& graph, const Node& loop) override;
  void describe(const Graph& graph, const Node& region, FusionReport::Fusion& fusion) override;
  bool is_lasting() const noexcept override { return !has_declined_; }

 private:
  bool has_declined_ = false;  // which it may not do tomorrow
};

/// Of `ms` milliseconds, or, for none, one that goes by models. Throws Error{NotImplemented} for a device
/// whose regions are to be timed.
std::unique_ptr<EngineChooser> make_chooser(EngineChoice choice, double ms, Device device = kCPU);
/// Whether anything was timed for it.
bool was_tuned(const FusionReport& report);
/// Whether more time might have chosen otherwise.
bool ran_out_of_time(const FusionReport& report);

}  // namespace tenon::graph
