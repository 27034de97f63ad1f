// The engines of the host.
#include "backends/cpu/jit/jit.h"
#include "backends/cpu/onednn/engine.h"
#include "backends/cpu/region/composed.h"
#include "backends/cpu/region/cost.h"
#include "tenon/expr/passes.h"
#include "tenon/graph/engine/engine.h"
#include "tenon/graph/ir/region.h"

namespace tenon {
namespace {

std::string interpreter_refusal(const graph::Graph&, const graph::Node& node) {
  if (node.region->body.empty()) return "it runs loops over elements; a product or a convolution is none";
  return {};
}

std::string jit_refusal(const graph::Graph& g, const graph::Node& node) {
  if (std::string why = interpreter_refusal(g, node); !why.empty()) return why;
  const expr::Expression& e = *node.region->body.expression;
  if (node.region->over.empty()) {
    std::string why = cpu::jit_refusal(e, cpu::cpu_target());
    return why.empty() ? cpu::jit_loss(e, cpu::cpu_target()) : why;
  }
  // Rows are computed in passes over their elements, each with code of its own.
  for (const expr::RowPass& pass : expr::cut_passes(e, expr::RowForm::Along, expr::Keep::Dear).passes) {
    if (!pass.elements.flat) continue;
    if (std::string why = cpu::jit_refusal(*pass.elements.flat, cpu::cpu_target()); !why.empty()) return why;
  }
  return {};
}

// Each instruction of the interpreter is a call: longer tiles make fewer, shorter ones stay in the cache.
std::vector<graph::Knobs> tiles(const graph::Graph&, const graph::Node& node) {
  if (!node.region->over.empty()) return {};
  return {{{"tile", 256}}, {{"tile", 512}}, {{"tile", 1024}}, {{"tile", 2048}}};
}

// While one vector waits for its operations, others go on, until registers run out.
std::vector<graph::Knobs> side_by_side(const graph::Graph&, const graph::Node& node) {
  if (!node.region->over.empty()) return {};
  return {{{"vectors", 1}}, {{"vectors", 2}}, {{"vectors", 4}}, {{"vectors", 6}}};
}

}  // namespace

constinit const std::array<graph::Engine, graph::kNumHostEngines> graph::kHostEngines{{
    {"onednn", &cpu::onednn::refusal, &cpu::onednn::cost_of, &cpu::onednn::build, false,
     &cpu::onednn::version},
    {"composed", &cpu::composed_refusal, &cpu::cost_of, &cpu::compose, true, nullptr, &cpu::block_sizes},
    {"jit", &jit_refusal, nullptr, nullptr, true, nullptr, &side_by_side},
    {"interpreter", &interpreter_refusal, nullptr, nullptr, true, nullptr, &tiles},
}};

}  // namespace tenon
