#include <fmt/format.h>

#include <algorithm>

#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/timing.h"

namespace tenon::graph {
namespace {

std::string joined(const std::vector<OperatorHandle>& list) {
  std::string text;
  for (const OperatorHandle& op : list) text += (text.empty() ? "" : ", ") + op.full_name();
  return text;
}

/// The same regions, whatever their names.
bool same_fusions(const FusionReport& a, const FusionReport& b) {
  return std::equal(a.fusions.begin(), a.fusions.end(), b.fusions.begin(), b.fusions.end(),
                    [](const FusionReport::Fusion& x, const FusionReport::Fusion& y) {
                      return x.kind == y.kind && x.members == y.members;
                    });
}

}  // namespace

std::string to_string(const FusionReport& report) {
  std::string text = fmt::format("position {}: {} fusions, {} steps, {} bytes\n", name(report.position),
                                 report.fusions.size(), report.steps, report.bytes);
  for (const FusionReport::Fusion& f : report.fusions) {
    text += fmt::format("  {} ({}): {}; {} bytes, {} apart\n", f.name, name(f.kind), joined(f.operators),
                        f.bytes, f.bytes_apart);
    if (!f.engine.empty()) text += fmt::format("    run by {}\n", f.engine);
    for (const std::string& why : f.refused) text += fmt::format("    not by {}\n", why);
  }
  for (const FusionReport::Left& left : report.left) {
    const std::string where = left.line ? " at " + describe_source(left.line) : "";
    text += fmt::format("  left {}{}: {}\n", left.op.full_name(), where, left.reason);
  }
  return text;
}

Comparison compare_positions(const Graph& graph, const FusionOptions& options) {
  Comparison comparison;
  for (const MatcherPosition position : kMatcherPositions) {
    Graph fused = graph.copy();
    FusionOptions own = options;
    own.position = position;
    own.chooser = nullptr;
    own.dump = false;
    comparison.reports.push_back(fuse(fused, own));
    comparison.keys.push_back(expr::to_string(key_of(fused)));
    comparison.times.push_back(time_of(graph, position, options));
  }
  const FusionReport& first = comparison.reports[0];
  for (size_t i = 1; i < comparison.reports.size(); ++i) {
    const FusionReport& report = comparison.reports[i];
    if (same_fusions(report, first)) continue;
    const int64_t more = report.bytes - first.bytes;
    std::string line = fmt::format("{} fuses otherwise than {}", name(report.position), name(first.position));
    if (more != 0) line += fmt::format(" and moves {} bytes {}", std::abs(more), more > 0 ? "more" : "less");
    if (comparison.times[0].run > 0 && comparison.times[i].run > 0)
      line +=
          fmt::format("; it runs in {:.2f} of its time", comparison.times[i].run / comparison.times[0].run);
    comparison.differences.push_back({report.position, more, std::move(line)});
  }
  return comparison;
}

std::string to_string(const Comparison& comparison) {
  std::string text;
  for (size_t i = 0; i < comparison.reports.size(); ++i) {
    const Timing& time = comparison.times[i];
    text += fmt::format("{}  key {}\n", to_string(comparison.reports[i]), comparison.keys[i]);
    text += time.problem.empty() ? fmt::format("  planned in {:.1f} us, run in {:.1f} us\n",
                                               time.planned / 1000, time.run / 1000)
                                 : fmt::format("  not timed: {}\n", time.problem);
  }
  for (const Comparison::Difference& d : comparison.differences)
    text += fmt::format("{}{}\n", d.bytes > 0 ? "regression: " : "", d.text);
  return text;
}

}  // namespace tenon::graph
