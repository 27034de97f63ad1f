#include "tenon/graph/plan/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tenon/core/error.h"
#include "tenon/core/thread_state.h"
#include "tenon/graph/engine/trial_memory.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/instance.h"

namespace tenon::graph {
namespace {

bool is_loop(const Node& region) { return region.region->anchor_member == kNone; }

// How far a vendor's engine may be from ours; each is within the bound of docs/compile.md: numbers
// of the trial memory are at most 1, and a prologue makes at most 8 of them, as 1/x does.
class Bound {
 public:
  Bound(const Graph& g, const Node& node) {
    const Region& region = *node.region;
    const Node& anchor = region.members[region.anchor_member];
    const std::span<const Use> uses = g.uses(anchor);
    const auto geometry = [&](size_t i) -> const Geometry& { return g.geometry(uses[i].geometry); };
    const Geometry& summed =
        geometry(region.kind == RegionKind::Convolution ? 1 : anchor.op.traits().anchor.left);
    double terms = summed.sizes.empty() ? 1 : static_cast<double>(summed.sizes.back());
    if (region.kind == RegionKind::Convolution)
      terms = static_cast<double>(summed.numel() / std::max<int64_t>(summed.sizes[0], 1));
    const bool has_prologue =
        std::ranges::any_of(region.prologue, [](const RegionPart& p) { return !p.empty(); });
    const double magnitude = has_prologue ? 64 * terms : terms;
    absolute_ = 1.2 * (terms + 2) * 0x1p-24 * magnitude + 0x1p-18;
    const Geometry& made = g.geometry(g.defs(anchor)[0].geometry);
    for (size_t d = 0; d < region.over.size() && d < made.sizes.size(); ++d)
      if (region.over[d] != 0) rows_ *= static_cast<double>(std::max<int64_t>(made.sizes[d], 1));
  }
  bool holds(double wanted, double got) const {
    if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) == std::isnan(got);
    if (wanted == got) return true;
    return std::abs(got - wanted) <= 2 * rows_ * (absolute_ + 0x1p-18 * std::abs(wanted));
  }

 private:
  double absolute_ = 0, rows_ = 1;
};

std::vector<double> all_as_doubles(std::span<const Tensor> tensors) {
  std::vector<double> all;
  for (const Tensor& t : tensors) {
    const std::vector<double> own = as_doubles(t);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

/// What the first run of each candidate is held against.
class Judge {
 public:
  Judge(const Graph& g, const Node& region, TrialMemory& memory) : g_(g), region_(region), memory_(memory) {}

  void set_reference(const RegionProgram& program) {
    run(program);
    wanted_ = memory_.results();
    wanted_numbers_ = all_as_doubles(memory_.arguments().defs);
  }
  /// Why a candidate is not taken; empty if it may be.
  std::string verdict(const Candidate& candidate) {
    try {
      run(*candidate.program);
    } catch (const std::exception& e) {
      return e.what();
    }
    if (!candidate.is_exact) return vendors_verdict();
    if (memory_.results() != wanted_) return "wrong: it has other bits than the calls of the region";
    return {};
  }

 private:
  void run(const RegionProgram& program) {
    memory_.reset();
    bool clobbered_inputs = false;
    program.run(memory_.arguments(), clobbered_inputs);
  }
  std::string vendors_verdict() const {
    if (is_loop(region_)) return {};
    const Bound bound(g_, region_);
    const std::vector<double> got = all_as_doubles(memory_.arguments().defs);
    for (size_t i = 0; i < got.size(); ++i) {
      if (!bound.holds(wanted_numbers_[i], got[i]))
        return fmt::format("wrong: {} where {} is right, which is out of the bound", got[i],
                           wanted_numbers_[i]);
    }
    return {};
  }

  const Graph& g_;
  const Node& region_;
  TrialMemory& memory_;
  std::vector<std::byte> wanted_;
  std::vector<double> wanted_numbers_;
};

/// A region without an anchor member, for tensors.
class LoopProgram final : public RegionProgram {
 public:
  LoopProgram(const Graph& g, const Node& node)
      : step_(g, node), outputs_(node.region->body.outputs), inputs_(node.region->body.inputs) {}
  const LoopStep& step() const noexcept { return step_; }

  void run(const Arguments& arguments, bool& clobbered_inputs) const override {
    SmallVector<char*, 16> addresses;
    for (const uint32_t i : outputs_) addresses.push_back(static_cast<char*>(arguments.defs[i].data_ptr()));
    for (const uint32_t i : inputs_) addresses.push_back(static_cast<char*>(arguments.uses[i].data_ptr()));
    SmallVector<uint64_t, 16> slots(step_.num_numbers());
    step_.put_numbers(arguments.numbers, slots.data());
    clobbered_inputs = true;
    step_.run(addresses.data(), slots.data());
  }

 private:
  LoopStep step_;
  std::vector<uint32_t> outputs_, inputs_;
};

/// The members of a region as they run without it: an unfused plan, whose runs make what stays inside.
class CallsApart final : public RegionProgram {
 public:
  CallsApart(const Graph& g, const Node& node)
      : plan_(members_of(g, node), {.numbers = std::vector<Scalar>(g.numbers.size())}, {.fuse = false}) {
    for (const Use& u : g.uses(node)) uses_.push_back(u.value == kNone ? kNone : g.values[u.value].storage);
    for (const Def& d : g.defs(node)) defs_.push_back(g.values[d.value].storage);
  }

  void run(const Arguments& arguments, bool& clobbered_inputs) const override {
    std::unique_ptr<Instance> instance = plan_.take_instance();
    const auto place = [&](const std::vector<StorageId>& ids, std::span<const Tensor> tensors) {
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] != kNone) instance->place(ids[i], reinterpret_cast<char*>(tensors[i].storage().address()));
      }
    };
    place(uses_, arguments.uses);
    place(defs_, arguments.defs);
    instance->put_numbers(arguments.numbers);
    clobbered_inputs = true;
    if (const std::exception_ptr error = instance->run()) std::rethrow_exception(error);
    plan_.give_back(std::move(instance));
  }

 private:
  static Graph members_of(const Graph& g, const Node& node) {
    Graph calls = g.copy();
    std::vector<bool> is_made(g.values.size());
    calls.nodes.clear();
    for (const Node& member : node.region->members) {
      calls.nodes.push_back(member.copy());
      for (const Def& d : g.defs(member)) is_made[d.value] = true;
    }
    for (Storage& s : calls.storages) s.is_input = s.is_output = false;
    for (ValueId v = 0; v < is_made.size(); ++v) {
      if (!is_made[v]) calls.values[v].producer = calls.values[v].previous = kNone;
    }
    for (const Use& u : g.uses(node)) {
      if (u.value != kNone) calls.storages[g.values[u.value].storage].is_input = true;
    }
    for (const Def& d : g.defs(node)) calls.storages[g.values[d.value].storage].is_output = true;
    return calls;
  }

  Plan plan_;
  std::vector<StorageId> uses_, defs_;
};

/// Null where another engine would run the loop: machine code may be switched off, or the system let none
/// run.
std::unique_ptr<const RegionProgram> program_for(const Graph& g, const Node& region, const Engine& engine) {
  if (engine.build) return engine.build(g, region);
  auto loop = std::make_unique<const LoopProgram>(g, region);
  return loop->step().engine() == engine.name ? std::move(loop) : nullptr;
}

}  // namespace

std::string Candidate::name() const {
  std::string text = engine.empty() ? shown : engine;
  for (size_t i = 0; i < knobs.size(); ++i)
    text += fmt::format("{}{}={}{}", i == 0 ? "(" : ", ", knobs[i].first, knobs[i].second,
                        i + 1 == knobs.size() ? ")" : "");
  return text;
}

std::vector<Candidate> candidates_of(const Graph& g, const Node& region, const EngineChoice& choice) {
  std::vector<Candidate> all;
  Node trial = region.copy();
  const auto add = [&](const Engine& engine, const Knobs& knobs) {
    trial.region->engine = engine.name;
    trial.region->knobs = knobs;
    auto program = program_for(g, trial, engine);
    if (!program) return;
    all.push_back({.engine = trial.region->engine,
                   .knobs = knobs,
                   .is_exact = engine.is_exact,
                   .program = std::move(program)});
  };
  if (is_loop(region)) {
    auto own = std::make_unique<const LoopProgram>(g, region);
    const std::string runs = own->step().engine();
    const FusedLoop& loop = own->step().loop();
    const bool can_stream = loop.can_stream(), streams = loop.streams();
    // Rows are computed in one way; a kernel that was compiled with the library is no engine of regions.
    const bool has_rows = !region.region->over.empty();
    if (has_rows || runs == "simd") all.push_back({.engine = {}, .program = std::move(own), .shown = runs});
    if (has_rows) return all;
    for (const Engine& engine : kHostEngines) {
      if (engine.build || !refusal(engine, g, region, choice).empty()) continue;
      add(engine, {});
      if (can_stream) add(engine, {{"streams", streams ? 0 : 1}});
      if (!engine.variants) continue;
      for (const Knobs& knobs : engine.variants(g, region)) add(engine, knobs);
    }
    return all;
  }
  const Engine* const first = engine_for(g, region, choice);
  if (!first) return all;
  const auto add_all = [&](const Engine& engine) {
    add(engine, {});
    if (!engine.variants) return;
    for (const Knobs& knobs : engine.variants(g, region)) add(engine, knobs);
  };
  add_all(*first);
  for (const Engine& engine : kHostEngines) {
    if (&engine != first && engine.build && refusal(engine, g, region, choice).empty()) add_all(engine);
  }
  return all;
}

Candidate calls_apart(const Graph& g, const Node& region) {
  return {.engine = {}, .program = std::make_unique<const CallsApart>(g, region), .shown = "its calls apart"};
}

TuningResult tune(const Graph& g, const Node& region, std::span<const Candidate> candidates,
                  const RegionProgram& reference, const Budget& budget) {
  const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
  const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) | kAutogradKeys};
  const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
  TuningResult tuned;
  for (const Candidate& c : candidates) tuned.trials.push_back({.name = c.name()});
  TrialMemory memory(g, region);
  const auto give_up = [&](const std::string& why) {
    for (Trial& trial : tuned.trials) trial.reason = "not timed: " + why;
    return std::move(tuned);
  };
  if (!memory.problem().empty()) return give_up(memory.problem());
  Judge judge(g, region, memory);
  std::vector<Runner> runners;
  try {
    judge.set_reference(reference);
  } catch (const std::exception& e) {
    return give_up(e.what());
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    const RegionProgram* const program = candidates[i].program.get();
    // Trying costs time, too; the first, which runs without tuning, is always there to win.
    tuned.trials[i].is_late = i > 0 && budget.left() < 0;
    tuned.trials[i].reason = tuned.trials[i].is_late ? budget.spent() : judge.verdict(candidates[i]);
    Runner& runner = runners.emplace_back();
    runner.run = [&memory, program] {
      bool clobbered_inputs = false;
      program->run(memory.arguments(), clobbered_inputs);
    };
    if (memory.is_changed_by_runs()) runner.prepare = [&memory] { memory.reset(); };
  }
  if (std::ranges::all_of(tuned.trials, [](const Trial& t) { return !t.reason.empty(); })) return tuned;
  tuned.winner = race(runners, tuned.trials, budget);
  return tuned;
}

const MeasuringTuner::Choice& MeasuringTuner::choice_for(const Graph& g, const Node& region) {
  std::vector<ValueId> made;
  for (const Node& member : region.region->members) {
    for (const Def& d : g.defs(member)) made.push_back(d.value);
  }
  const auto [found, is_new] = known_.try_emplace(std::move(made));
  Choice& chosen = found->second;
  if (!is_new) return chosen;
  std::vector<Candidate> candidates = candidates_of(g, region, choice());
  // What models choose comes first: others have to be faster beyond noise.
  size_t apart = kNone;
  if (!candidates.empty() && region.region->members.size() > 1) {
    apart = is_loop(region) || EngineChooser::refuse(g, region).empty() ? 1 : 0;
    candidates.insert(candidates.begin() + static_cast<ptrdiff_t>(apart), calls_apart(g, region));
  }
  if (candidates.size() < 2) return chosen;
  const CallsApart calls(g, region);
  const RegionProgram* reference = &calls;
  if (choice().relaxed) {
    // What is rounded less often than calls round it has no other reference than another engine of our own.
    if (apart != kNone) candidates[apart].is_exact = false;
    const auto own = std::ranges::find_if(candidates, &Candidate::is_exact);
    if (own != candidates.end()) reference = own->program.get();
  }
  // Of several regions none spends all.
  const Budget share(budget_.left() / 2);
  TuningResult tuned = tune(g, region, candidates, *reference, share);
  chosen.trials = std::move(tuned.trials);
  if (tuned.winner == kNone) return chosen;
  const Candidate& winner = candidates[tuned.winner];
  chosen.is_apart = tuned.winner == apart;
  chosen.engine = winner.engine;
  chosen.knobs = winner.knobs;
  return chosen;
}

namespace {

std::string shown(const std::vector<Trial>& trials) {
  std::string why = "nothing was faster than its calls when it was timed:";
  for (const Trial& t : trials) {
    why += t.ns > 0 ? fmt::format(" {} {:.1f} us,", t.name, t.ns / 1000)
                    : fmt::format(" {} ({}),", t.name, t.reason);
  }
  why.pop_back();
  return why;
}

}  // namespace

std::string MeasuringTuner::refuse(const Graph& g, const Node& region) {
  const Choice& chosen = choice_for(g, region);
  if (chosen.is_apart) return shown(chosen.trials);
  return chosen.engine.empty() ? EngineChooser::refuse(g, region) : std::string();
}

std::string MeasuringTuner::refuse_loop(const Graph& g, const Node& loop) {
  const Choice& chosen = choice_for(g, loop);
  return chosen.is_apart ? shown(chosen.trials) : std::string();
}

void MeasuringTuner::describe(const Graph& g, const Node& region, FusionReport::Fusion& fusion) {
  EngineChooser::describe(g, region, fusion);
  const Choice& chosen = choice_for(g, region);
  fusion.trials = chosen.trials;
  // A loop runs without one as it would untimed, by a kernel that is no engine.
  if (is_loop(region) && !chosen.trials.empty()) fusion.engine.clear();
  if (chosen.engine.empty()) return;
  fusion.engine = chosen.engine;
  fusion.knobs = chosen.knobs;
  // Those that were timed do not decline.
  std::erase_if(fusion.refused, [&](const std::string& why) {
    const std::string_view engine = std::string_view(why).substr(0, why.find(':'));
    return std::ranges::any_of(chosen.trials, [&](const Trial& t) { return t.name.starts_with(engine); });
  });
}

std::string DeviceChooser::refuse_loop(const Graph& g, const Node& loop) {
  std::string why = LoopStep(g, loop).refusal();
  has_declined_ |= !why.empty();
  return why;
}

void DeviceChooser::describe(const Graph&, const Node&, FusionReport::Fusion& fusion) {
  fusion.engine = "launch";
}

std::unique_ptr<EngineChooser> make_chooser(EngineChoice choice, double ms, Device device) {
  if (!device.is_cpu()) {
    TENON_CHECK(ms <= 0, NotImplemented,
                fmt::format("plan: engines of the host are timed, and the tensors are on {}",
                            tenon::to_string(device)));
    return std::make_unique<DeviceChooser>();
  }
  if (ms <= 0) return std::make_unique<EngineChooser>(std::move(choice));
  return std::make_unique<MeasuringTuner>(std::move(choice), ms * 1e6);
}

bool ran_out_of_time(const FusionReport& report) {
  return std::ranges::any_of(report.fusions, [](const FusionReport::Fusion& f) {
    return std::ranges::any_of(f.trials, &Trial::is_late);
  });
}

bool was_tuned(const FusionReport& report) {
  const auto timed = [](const FusionReport::Fusion& f) { return !f.trials.empty(); };
  return std::ranges::any_of(report.fusions, timed);
}

}  // namespace tenon::graph
