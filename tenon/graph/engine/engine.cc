#include "tenon/graph/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {

const Engine* find_engine(std::string_view name) {
  const auto found = std::ranges::find(kHostEngines, name, &Engine::name);
  return found == kHostEngines.end() ? nullptr : &*found;
}

std::string refusal(const Engine& engine, const Graph& graph, const Node& region,
                    const EngineChoice& choice) {
  if (const Device device = graph.device(region); !device.is_cpu())
    return fmt::format("it runs on the host, and the tensors are on {}", tenon::to_string(device));
  if (std::ranges::find(choice.excluded, engine.name) != choice.excluded.end()) return "it was deselected";
  if (!engine.is_exact && region.region->anchor_member != kNone && !choice.relaxed)
    return "its bits are not eager's; compile(relaxed=True) allows that";
  return engine.check_support(graph, region);
}

namespace {

using Refusals = std::array<std::string, kNumHostEngines>;

Refusals refusals_of(const Graph& graph, const Node& region, const EngineChoice& choice) {
  Refusals all;
  for (size_t i = 0; i < all.size(); ++i) all[i] = refusal(kHostEngines[i], graph, region, choice);
  return all;
}

std::string joined(const Refusals& why) {
  std::string sentences;
  for (size_t i = 0; i < why.size(); ++i)
    sentences += fmt::format("{}{}: {}", i ? "; " : "", kHostEngines[i].name, why[i]);
  return sentences;
}

const Engine* best_of(const Graph& graph, const Node& region, const Refusals& why) {
  const Engine* best = nullptr;
  double least = 0;
  for (size_t i = 0; i < why.size(); ++i) {
    if (!why[i].empty()) continue;
    const Engine& engine = kHostEngines[i];
    if (!engine.cost) return best ? best : &engine;
    const double time = engine.cost(graph, region).together;
    if (best && time >= least) continue;
    best = &engine;
    least = time;
  }
  return best;
}

}  // namespace

const Engine* engine_for(const Graph& graph, const Node& region, const EngineChoice& choice) {
  return best_of(graph, region, refusals_of(graph, region, choice));
}

const Engine& engine_of(const Graph& graph, const Node& region, const EngineChoice& choice) {
  const auto refuse = [&](const std::string& why) {
    throw_error(ErrorKind::NotImplemented, fmt::format("plan: {}: {}", region.region->name, why));
  };
  const std::string& wanted = region.region->engine;
  const Engine* engine = nullptr;
  if (wanted.empty()) {
    engine = engine_for(graph, region, choice);
    if (!engine) refuse(refusals(graph, region, choice));
    return *engine;
  }
  const Engine* const named = find_engine(wanted);
  if (!named || !named->build) refuse(fmt::format("there is no engine '{}'", wanted));
  if (const std::string why = refusal(*named, graph, region, choice); !why.empty())
    refuse(fmt::format("{}: {}", wanted, why));
  return *named;
}

std::string refusals(const Graph& graph, const Node& region, const EngineChoice& choice) {
  return joined(refusals_of(graph, region, choice));
}

std::string EngineChooser::refuse(const Graph& graph, const Node& region) {
  const Refusals why = refusals_of(graph, region, choice_);
  const Engine* const engine = best_of(graph, region, why);
  if (!engine) return joined(why);
  if (!engine->cost) return {};
  const RegionCost cost = engine->cost(graph, region);
  if (cost.together < cost.apart) return {};
  return fmt::format("{} is no faster here: {:.1f} us by its model, {:.1f} us for the calls apart",
                     engine->name, cost.together / 1000, cost.apart / 1000);
}

void EngineChooser::describe(const Graph& graph, const Node& region, FusionReport::Fusion& fusion) {
  const Refusals all = refusals_of(graph, region, choice_);
  const Engine* const chosen = best_of(graph, region, all);
  if (chosen) fusion.engine = chosen->name;
  for (size_t i = 0; i < all.size(); ++i) {
    const Engine& engine = kHostEngines[i];
    std::string why = all[i];
    if (why.empty() && &engine != chosen && engine.cost)
      why = fmt::format("{} is faster by its model, by {:.1f} us", chosen->name,
                        (engine.cost(graph, region).together - chosen->cost(graph, region).together) / 1000);
    if (!why.empty()) fusion.refused.push_back(fmt::format("{}: {}", engine.name, why));
  }
}

}  // namespace tenon::graph
