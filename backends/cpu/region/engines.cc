// The engines of the host.
#include "backends/cpu/jit/jit.h"
#include "backends/cpu/region/composed.h"
#include "backends/cpu/region/cost.h"
#include "tenon/graph/engine.h"
#include "tenon/graph/region.h"

namespace tenon {
namespace {

std::string interpreter_refusal(const graph::Graph&, const graph::Node& node) {
  if (node.region->body.empty()) return "it runs loops over elements; a product or a convolution is none";
  return {};
}

std::string jit_refusal(const graph::Graph& g, const graph::Node& node) {
  if (std::string why = interpreter_refusal(g, node); !why.empty()) return why;
  return cpu::jit_refusal(*node.region->body.expression, cpu::cpu_target());
}

}  // namespace

constinit const std::array<graph::Engine, graph::kNumHostEngines> graph::kHostEngines{{
    {"composed", &cpu::composed_refusal, &cpu::cost_of, &cpu::compose},
    {"jit", &jit_refusal},
    {"interpreter", &interpreter_refusal},
}};

}  // namespace tenon
