#include "tenon/record/fused.h"

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/graph/engine/engine.h"
#include "tenon/graph/engine/tuner.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/plan/plan_key.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/bytes.h"

namespace tenon::record {

Fused fuse(const Segment& segment, const std::vector<bool>& wanted, graph::Assembled assembled, bool relaxed,
           double tune_ms, PlanFor purpose) {
  Fused fused;
  const auto tuner = graph::make_tuner({.relaxed = relaxed}, tune_ms);
  // A fault of the fuser's or an engine's costs time and no results: the calls run one by one.
  try {
    fused.report = graph::fuse(
        assembled.graph,
        {.tuner = tuner.get(), .rows = true, .relaxed = relaxed, .single_calls = purpose == PlanFor::Replay});
    for (const auto& left : fused.report.left)
      fused.left.push_back(assembled.call_by_argument[left.argument]);
  } catch (const std::exception&) {
    assembled = assemble(segment, wanted);
    fused.is_whole = false;
  }
  graph::each_call(assembled.graph,
                   [&](const graph::Node& call) { fused.calls.push_back(assembled.call_of(call)); });
  fused.graph = std::move(assembled.graph);
  fused.offset_shift = std::move(assembled.offset_shift);
  return fused;
}

expr::Key cache_key(const graph::Assembled& assembled, bool relaxed, double tune_ms, PlanFor purpose) {
  expr::Mixer mixer;
  mixer.add(purpose == PlanFor::Replay ? "replay" : "program");
  graph::add_to_key(mixer, assembled.graph,
                    {.position = graph::configured_position(),
                     .rows = true,
                     .engines = {.relaxed = relaxed},
                     .tune_ms = tune_ms});
  for (const graph::Node& node : assembled.graph.nodes) mixer.add(uint64_t{assembled.call_of(node)});
  return mixer.take();
}

cache::PlanCache::File to_file(const Fused& fused) {
  graph::ByteWriter out;
  out.fixed(fused.report.key.high);
  out.fixed(fused.report.key.low);
  out.byte(static_cast<uint8_t>(fused.report.position));
  out.number(fused.calls.size());
  for (const uint32_t call : fused.calls) out.number(call);
  out.number(fused.report.fusions.size());
  for (const auto& fusion : fused.report.fusions) {
    out.text(fusion.engine);
    out.number(fusion.refused.size());
    for (const std::string& why : fusion.refused) out.text(why);
    out.number(fusion.trials.size());
    for (const graph::Trial& trial : fusion.trials) {
      out.text(trial.name);
      out.real(trial.ns);
      out.text(trial.reason);
    }
  }
  out.number(fused.left.size());
  for (size_t i = 0; i < fused.left.size(); ++i) {
    out.number(fused.left[i]);
    out.text(fused.report.left[i].reason);
  }
  std::vector<std::byte> bytes = out.take();
  const std::vector<std::byte> graph = graph::serialize(fused.graph);
  bytes.insert(bytes.end(), graph.begin(), graph.end());
  return {graph::about(fused.graph), std::move(bytes)};
}

namespace {

/// The fused graph has the segment's calls, each once, on the segment's storages and numbers.
void check_calls(const Fused& fused, graph::Assembled& assembled) {
  const auto require = [](bool right, const char* problem) { TENON_CHECK(right, Value, problem); };
  graph::remove_dead(assembled.graph);
  const graph::Graph &read = fused.graph, &recorded = assembled.graph;
  require(graph::same_tables(read, recorded), "its storages or numbers are not those of the program");
  require(fused.calls.size() == recorded.nodes.size(), "it has not as many calls as the program");
  std::vector<const graph::Node*> by_call;
  for (const graph::Node& node : recorded.nodes) {
    by_call.resize(std::max<size_t>(by_call.size(), assembled.call_of(node) + 1));
    by_call[assembled.call_of(node)] = &node;
  }
  size_t next = 0;
  graph::each_call(read, [&](const graph::Node& call) {
    require(next < fused.calls.size() && fused.calls[next] < by_call.size(),
            "it has other calls than the program");
    const graph::Node* const same = std::exchange(by_call[fused.calls[next++]], nullptr);
    require(same && call.op == same->op && key_of_call(read, call) == key_of_call(recorded, *same),
            "it has other calls than the program");
  });
  require(next == fused.calls.size(), "it has not as many calls as the program");
}

}  // namespace

Fused from_file(cache::Bytes bytes, const Segment& segment, graph::Assembled assembled) {
  Fused fused;
  graph::ByteReader in(bytes);
  graph::FusionReport& report = fused.report;
  report.key.high = in.fixed();
  report.key.low = in.fixed();
  report.position = graph::kPositions[in.below(std::size(graph::kPositions), "position")];
  const auto call = [&] { return in.below(segment.calls.size(), "call"); };
  for (size_t n = in.count(); n > 0; --n) fused.calls.push_back(call());
  std::vector<graph::FusionReport::Fusion> told;
  for (size_t n = in.count(); n > 0; --n) {
    told.emplace_back().engine = in.text();
    for (size_t k = in.count(); k > 0; --k) told.back().refused.push_back(in.text());
    for (size_t k = in.count(); k > 0; --k) {
      graph::Trial& trial = told.back().trials.emplace_back();
      trial.name = in.text();
      trial.ns = in.real();
      trial.reason = in.text();
    }
  }
  for (size_t n = in.count(); n > 0; --n) {
    fused.left.push_back(call());
    const RecordedCall& left = segment.calls[fused.left.back()];
    report.left.push_back({left.node->info->op, left.line, in.text()});
  }
  fused.graph = graph::deserialize(in.rest());
  check_calls(fused, assembled);
  graph::describe(fused.graph, report);
  TENON_CHECK(report.fusions.size() == told.size(), Value, "it has not as many regions as are described");
  for (size_t i = 0; i < told.size(); ++i) {
    report.fusions[i].engine = std::move(told[i].engine);
    report.fusions[i].refused = std::move(told[i].refused);
    report.fusions[i].trials = std::move(told[i].trials);
  }
  size_t next = 0;
  graph::each_call(fused.graph,
                   [&](graph::Node& node) { node.line = segment.calls[fused.calls[next++]].line; });
  fused.offset_shift = std::move(assembled.offset_shift);
  return fused;
}

}  // namespace tenon::record
