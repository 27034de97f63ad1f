#include "tenon/graph/engine.h"

#include <fmt/format.h>

namespace tenon::graph {

const Engine* engine_for(const Graph& graph, const Node& region) {
  for (const Engine& engine : kHostEngines) {
    if (engine.check_support(graph, region).empty()) return &engine;
  }
  return nullptr;
}

std::string EngineTuner::refuse(const Graph& graph, const Node& region) {
  const Engine* const engine = engine_for(graph, region);
  if (!engine) {
    std::string sentences;
    for (const Engine& e : kHostEngines)
      sentences +=
          fmt::format("{}{}: {}", sentences.empty() ? "" : "; ", e.name, e.check_support(graph, region));
    return sentences;
  }
  if (!engine->cost) return {};
  const RegionCost cost = engine->cost(graph, region);
  if (cost.together < cost.apart) return {};
  return fmt::format("{} is no faster here: {:.1f} us by its model, {:.1f} us for the calls apart",
                     engine->name, cost.together / 1000, cost.apart / 1000);
}

void EngineTuner::describe(const Graph& graph, const Node& region, FusionReport::Fusion& fusion) const {
  for (const Engine& engine : kHostEngines) {
    const std::string why = engine.check_support(graph, region);
    if (why.empty() && fusion.engine.empty()) fusion.engine = engine.name;
    if (!why.empty()) fusion.refused.push_back(fmt::format("{}: {}", engine.name, why));
  }
}

}  // namespace tenon::graph
