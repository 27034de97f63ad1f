// How a graph's plans are chosen, built and run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "tenon/builder/graph.h"
#include "tenon/builder/lowering.h"
#include "tenon/core/error.h"
#include "tenon/core/tensor.h"

namespace tenon::builder {
namespace {

constexpr std::string_view kFused = "fused", kOperators = "operators";
constexpr std::array kEngines{kFused, kOperators};

std::string name_of(std::string_view engine, const Knobs& knobs) {
  std::string text(engine);
  for (size_t i = 0; i < knobs.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "(" : ", ", knobs[i].first, knobs[i].second);
  return knobs.empty() ? text : text + ")";
}

bool is_engine_of_regions(std::string_view name) {
  return std::ranges::find(graph::kHostEngines, name, &graph::Engine::name) != graph::kHostEngines.end();
}

}  // namespace

std::span<const std::string_view> engine_names() { return kEngines; }

std::vector<Knob> knobs_of(std::string_view engine) {
  if (engine == kOperators) return {};
  TENON_CHECK(
      engine == kFused, Value,
      fmt::format("graph: there is no engine '{}'; there are {}", engine, fmt::join(kEngines, " and ")));
  // Where the matcher of products stands (graph::MatcherPosition), whether reductions join regions, whether
  // bits may differ from eager's, and whether it is measured what runs each region.
  std::vector<std::string_view> positions;
  for (const graph::MatcherPosition position : graph::kMatcherPositions)
    positions.push_back(graph::name(position));
  return {{"position", {0, 1, 2, 3}, positions}, {"rows", {0, 1}}, {"relaxed", {0, 1}}, {"tuned", {0, 1}}};
}

namespace {

const Knob& knob_named(std::span<const Knob> known, std::string_view engine, std::string_view name) {
  const auto knob = std::ranges::find(known, name, &Knob::name);
  TENON_CHECK(knob != known.end(), Value,
              fmt::format("create_execution_plan: engine '{}' has no knob '{}'", engine, name));
  return *knob;
}

/// "one of 0, 1, 2, 3, by name a, b-A, b-B, c"
std::string values_of(const Knob& knob) {
  std::string text = fmt::format("one of {}", fmt::join(knob.values, ", "));
  return knob.words.empty() ? text : text + fmt::format(", by name {}", fmt::join(knob.words, ", "));
}

}  // namespace

int64_t knob_value(std::string_view engine, std::string_view knob, std::string_view word) {
  const std::vector<Knob> known = knobs_of(engine);
  const Knob& named = knob_named(known, engine, knob);
  const auto found = std::ranges::find(named.words, word);
  TENON_CHECK(found != named.words.end(), Value,
              fmt::format("create_execution_plan: knob '{}' is {}, not '{}'", knob, values_of(named), word));
  return named.values[static_cast<size_t>(found - named.words.begin())];
}

void Graph::create_execution_plan(std::string_view engine, const Knobs& knobs) {
  need(Stage::Operations, "create_execution_plan");
  const std::vector<Knob> known = knobs_of(engine);
  Candidate made{.name = {}, .engine = std::string(engine), .options = {}, .plan = {}, .refused = {}};
  made.options.fuse = engine == kFused;
  for (const auto& [name, value] : knobs) {
    const Knob& knob = knob_named(known, engine, name);
    TENON_CHECK(std::ranges::find(knob.values, value) != knob.values.end(), Value,
                fmt::format("create_execution_plan: knob '{}' is {}, not {}", name, values_of(knob), value));
    if (name == "position") made.options.position = graph::kMatcherPositions[static_cast<size_t>(value)];
    if (name == "rows") made.options.rows = value != 0;
    if (name == "tuned") made.options.tune_ms = value != 0 ? kTuneMs : 0;
    if (name == "relaxed") made.options.engines.relaxed = value != 0;
  }
  Knobs all;
  if (made.options.fuse) {
    all = {{"position", static_cast<int64_t>(made.options.position)},
           {"rows", made.options.rows ? 1 : 0},
           {"relaxed", made.options.engines.relaxed ? 1 : 0}};
    if (made.options.tune_ms > 0) all.emplace_back("tuned", 1);
  }
  made.name = name_of(engine, all);
  if (std::ranges::find(candidates_, made.name, &Candidate::name) == candidates_.end())
    candidates_.push_back(std::move(made));
  stage_ = std::max(stage_, Stage::Plans);
}

void Graph::create_execution_plans(std::span<const HeuristicMode> modes) {
  need(Stage::Operations, "create_execution_plans");
  const auto fused = [&](graph::MatcherPosition position) {
    create_execution_plan(kFused, {{"position", static_cast<int64_t>(position)}});
  };
  using enum graph::MatcherPosition;
  for (const HeuristicMode mode : modes) {
    if (mode == HeuristicMode::A) {
      fused(graph::configured_position());
      for (const graph::MatcherPosition position : graph::kMatcherPositions) fused(position);
    } else if (mode == HeuristicMode::B) {
      for (const graph::MatcherPosition position : {InFuser, BeforeFuser}) fused(position);
    }
    if (mode != HeuristicMode::B) create_execution_plan(kOperators);
  }
}

void Graph::deselect_engines(std::span<const std::string> names) {
  need(Stage::Plans, "deselect_engines");
  for (const std::string& name : names) {
    TENON_CHECK(std::ranges::find(kEngines, name) != kEngines.end() || is_engine_of_regions(name), Value,
                fmt::format("deselect_engines: there is no engine '{}'; there are {}, and {} of regions",
                            name, fmt::join(kEngines, ", "), [] {
                              std::string all;
                              for (const graph::Engine& e : graph::kHostEngines)
                                all += fmt::format("{}{}", all.empty() ? "" : ", ", e.name);
                              return all;
                            }()));
    deselected_.push_back(name);
  }
}

void Graph::deselect_workspace_greater_than(size_t nbytes) {
  need(Stage::Plans, "deselect_workspace_greater_than");
  most_workspace_ = nbytes;
}

bool Graph::try_build(Candidate& candidate) {
  if (candidate.plan) return true;
  if (!candidate.refused.empty()) return false;
  try {
    if (std::ranges::find(deselected_, candidate.engine) != deselected_.end())
      candidate.refused = "it was deselected";
    if (!candidate.refused.empty()) return false;
    candidate.options.engines.excluded = deselected_;
    std::shared_ptr<const graph::Plan> plan =
        graph::Plan::find_or_make(lowered_->graph.copy(), lowered_->signature, candidate.options);
    if (plan->workspace_size() > most_workspace_)
      candidate.refused = fmt::format("it needs a workspace of {} bytes", plan->workspace_size());
    else
      candidate.plan = std::move(plan);
  } catch (const std::exception& e) {
    candidate.refused = e.what();
  }
  return candidate.plan != nullptr;
}

void Graph::check_support() {
  need(Stage::Plans, "check_support");
  if (std::ranges::any_of(candidates_, [&](Candidate& c) { return try_build(c); })) {
    stage_ = std::max(stage_, Stage::Supported);
    return;
  }
  std::string sentences;
  for (const Candidate& c : candidates_) sentences += fmt::format("\n  {}: {}", c.name, c.refused);
  throw_error(ErrorKind::NotImplemented, fmt::format("graph: no plan runs it:{}", sentences));
}

void Graph::build_plans(BuildPolicy policy) {
  need(Stage::Supported, "build_plans");
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!try_build(candidates_[i])) continue;
    chosen_ = std::min(chosen_, i);
    if (policy == BuildPolicy::HeuristicsChoice) break;
  }
  stage_ = Stage::Built;
}

void Graph::build_plan_at_index(size_t index) {
  need(Stage::Plans, "build_plan_at_index");
  TENON_CHECK(index < candidates_.size(), Index,
              fmt::format("build_plan_at_index: {} of {} plans", index, candidates_.size()));
  Candidate& candidate = candidates_[index];
  TENON_CHECK(try_build(candidate), NotImplemented,
              fmt::format("graph: plan {} ({}): {}", index, candidate.name, candidate.refused));
  if (chosen_ == ~size_t{0}) chosen_ = index;
  stage_ = Stage::Built;
}

void Graph::build(std::span<const HeuristicMode> modes) {
  static constexpr HeuristicMode kDefault[] = {HeuristicMode::A, HeuristicMode::Fallback};
  validate();
  build_operation_graph();
  create_execution_plans(modes.empty() ? std::span<const HeuristicMode>(kDefault) : modes);
  check_support();
  build_plans();
}

const std::string& Graph::plan_name_at_index(size_t index) const {
  TENON_CHECK(index < candidates_.size(), Index,
              fmt::format("get_plan_name_at_index: {} of {} plans", index, candidates_.size()));
  return candidates_[index].name;
}

const std::shared_ptr<const graph::Plan>& Graph::plan() const {
  need(Stage::Built, "execute");
  return candidates_[chosen_].plan;
}

const std::shared_ptr<const graph::Plan>& Graph::plan_at_index(size_t index) const {
  TENON_CHECK(index < candidates_.size(), Index,
              fmt::format("graph: plan {} of {}", index, candidates_.size()));
  TENON_CHECK(candidates_[index].plan, Runtime,
              fmt::format("graph: plan {} ({}) is not built; build_plan_at_index() does", index,
                          candidates_[index].name));
  return candidates_[index].plan;
}

size_t Graph::workspace_size_at_index(size_t index) const { return plan_at_index(index)->workspace_size(); }

std::vector<Address> Graph::sorted(const graph::Plan& plan,
                                   const std::unordered_map<uint64_t, Address>& variant_pack) const {
  std::vector<Address> addresses;
  const auto described = [&](uint64_t uid) {
    const TensorAttributes* const t = find_tensor(uid);
    return t ? fmt::format("UID {} ('{}')", uid, t->name()) : fmt::format("UID {}", uid);
  };
  for (const uint64_t uid : plan.uids_sorted()) {
    const auto found = variant_pack.find(uid);
    TENON_CHECK(found != variant_pack.end(), Value,
                fmt::format("execute: the address of {} is missing", described(uid)));
    addresses.push_back(found->second);
  }
  if (variant_pack.size() == addresses.size()) return addresses;
  for (const auto& [uid, address] : variant_pack) {
    const auto uids = plan.uids_sorted();
    TENON_CHECK(std::ranges::binary_search(uids, uid), Value,
                fmt::format("execute: {} is no tensor that a node reads, and no output; these are [{}]",
                            described(uid), fmt::join(uids, ", ")));
  }
  return addresses;
}

void Graph::check_tensor(uint64_t uid, const tenon::Tensor& t) const {
  const TensorAttributes* const wanted = find_tensor(uid);
  TENON_CHECK(wanted, Value, fmt::format("execute: UID {} is no tensor of the graph", uid));
  const auto refuse = [&](ErrorKind kind, const std::string& what) {
    throw_error(kind, fmt::format("execute: the tensor for UID {} ('{}') {}", uid, wanted->name(), what));
  };
  // A number is read before anything is queued.
  const Device there = wanted->is_pass_by_value() ? kCPU : handle_.device;
  if (!same_device(t.device(), there))
    refuse(ErrorKind::Device,
           fmt::format("is on {}; {} {}", tenon::to_string(t.device()),
                       wanted->is_pass_by_value() ? "numbers lie on" : "the plan runs on", name_of(there)));
  if (t.dtype() != *wanted->data_type())
    refuse(ErrorKind::Type,
           fmt::format("is {}, the graph's is {}", name(t.dtype()), name(*wanted->data_type())));
  if (wanted->is_pass_by_value()) {
    if (t.numel() != 1) refuse(ErrorKind::Shape, fmt::format("has {} elements, and is a number", t.numel()));
    return;
  }
  if (t.sizes() != IntArrayRef(wanted->dim()))
    refuse(ErrorKind::Shape, fmt::format("has sizes {}, the graph's has {}", tenon::to_string(t.sizes()),
                                         tenon::to_string(wanted->dim())));
  for (size_t d = 0; d < wanted->dim().size(); ++d) {
    const bool matters = wanted->dim()[d] > 1 && t.numel() > 0;
    if (matters && t.strides()[static_cast<int64_t>(d)] != wanted->stride()[d])
      refuse(ErrorKind::Shape,
             fmt::format("has strides {}, the graph's has {}", tenon::to_string(t.strides()),
                         tenon::to_string(wanted->stride())));
  }
}

void Graph::execute(const std::unordered_map<uint64_t, Address>& variant_pack, std::span<std::byte> workspace,
                    const Handle* handle) const {
  const graph::Plan& p = *plan();
  p.execute(sorted(p, variant_pack), workspace, stream(handle));
}

void Graph::execute_plan_at_index(const std::unordered_map<uint64_t, Address>& variant_pack,
                                  std::span<std::byte> workspace, size_t index, const Handle* handle) const {
  const graph::Plan& p = *plan_at_index(index);
  p.execute(sorted(p, variant_pack), workspace, stream(handle));
}

void Graph::execute_with_ptrs(std::span<const Address> sorted, std::span<std::byte> workspace,
                              const Handle* handle) const {
  plan()->execute(sorted, workspace, stream(handle));
}

}  // namespace tenon::builder
