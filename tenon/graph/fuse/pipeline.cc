#include "tenon/graph/fuse/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tenon/core/error.h"
#include "tenon/dispatch/trace.h"
#include "tenon/graph/fuse/match.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/dump.h"

namespace tenon::graph {
namespace {

constexpr std::string_view kPositionNames[] = {"a", "b-A", "b-B", "c"};
constexpr std::string_view kPassNames[] = {"clean", "fuse", "match", "fuse and match", "form", "choose"};

using enum PassKind;
constexpr PassKind kAfterFuser[] = {Clean, Fuse, Match, Form, Choose};
constexpr PassKind kBeforeFuser[] = {Clean, Match, Fuse, Form, Choose};
constexpr PassKind kInFuser[] = {Clean, FuseAndMatch, Form, Choose};
constexpr PassKind kAlone[] = {Clean, Match, Form, Choose};

}  // namespace

std::string_view name(MatcherPosition position) noexcept {
  return kPositionNames[static_cast<size_t>(position)];
}
std::string_view name(PassKind kind) noexcept { return kPassNames[static_cast<size_t>(kind)]; }

std::optional<MatcherPosition> parse_position(std::string_view text) noexcept {
  for (const MatcherPosition position : kMatcherPositions) {
    if (name(position) == text) return position;
  }
  return std::nullopt;
}

MatcherPosition configured_position() {
  static const MatcherPosition position = [] {
    const char* text = std::getenv("TENON_FUSION");
    if (!text || !*text) return MatcherPosition::AfterFuser;
    const auto parsed = parse_position(text);
    if (!parsed)
      write_diagnostic(fmt::format("TENON_FUSION: '{}' is none of a, b-A, b-B and c; a is taken", text));
    return parsed.value_or(MatcherPosition::AfterFuser);
  }();
  return position;
}

std::span<const PassKind> passes_of(MatcherPosition position) noexcept {
  switch (position) {
    case MatcherPosition::AfterFuser:
      return kAfterFuser;
    case MatcherPosition::BeforeFuser:
      return kBeforeFuser;
    case MatcherPosition::InFuser:
      return kInFuser;
    case MatcherPosition::Alone:
      break;
  }
  return kAlone;
}

std::string why_not(std::span<const PassKind> passes) {
  const auto place = [&](PassKind kind) {
    return std::find(passes.begin(), passes.end(), kind) - passes.begin();
  };
  const auto end = static_cast<ptrdiff_t>(passes.size());
  for (const PassKind kind : passes) {
    if (std::count(passes.begin(), passes.end(), kind) > 1)
      return fmt::format("pass '{}' is there twice", name(kind));
  }
  if (place(FuseAndMatch) < end && (place(Fuse) < end || place(Match) < end))
    return "pass 'fuse and match' is there together with one that does half of it";
  for (const PassKind rewriter : {Fuse, Match, FuseAndMatch}) {
    if (place(rewriter) == end) continue;
    if (place(Clean) < end && place(Clean) > place(rewriter))
      return fmt::format("pass 'clean' comes after '{}', which would fuse what is dead", name(rewriter));
    if (place(Choose) < place(rewriter))
      return fmt::format(
          "the chooser comes before '{}', which would rewrite what it has chosen an engine for",
          name(rewriter));
    if (place(Form) < place(rewriter))
      return fmt::format("pass 'form' comes before '{}', which joins what is to be formed", name(rewriter));
  }
  if (place(Choose) < place(Form))
    return "the chooser comes before 'form', which makes what it chooses engines for";
  return {};
}

namespace {

int64_t bytes_of(const Graph& g, GeometryId id) {
  return id == kNone ? 0 : g.geometry(id).numel() * static_cast<int64_t>(item_size(g.geometry(id).dtype));
}

/// What a node reads and writes, each tensor once.
int64_t bytes_of(const Graph& g, const Node& node) {
  int64_t bytes = 0;
  const std::span<const Use> uses = g.uses(node);
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].value != kNone && std::find(uses.begin(), uses.begin() + static_cast<ptrdiff_t>(i),
                                            uses[i]) == uses.begin() + static_cast<ptrdiff_t>(i))
      bytes += bytes_of(g, uses[i].geometry);
  }
  for (const Def& d : g.defs(node)) bytes += bytes_of(g, d.geometry);
  return bytes;
}

/// One run of the passes. What the chooser refuses is formed again without it.
class Pipeline {
 public:
  Pipeline(Graph& graph, const FusionOptions& options)
      : g_(graph), options_(options), lowering_(options.lowering ? *options.lowering : own_lowering_) {
    report_.position = options.position;
    if (options.dump) dump_.emplace();
  }

  FusionReport run(std::span<const PassKind> passes) {
    if (const std::string why = why_not(passes); !why.empty())
      throw_error(ErrorKind::Internal, "pipeline: " + why);
    for (const Node& node : g_.nodes) {
      if (node.region && !node.region->engine.empty())
        throw_error(ErrorKind::Internal,
                    fmt::format("pipeline: a rewriter comes after the chooser, which has chosen '{}' for {}",
                                node.region->engine, node.region->name));
    }
    check_debug(g_, "lift");
    stage("lifted");
    remove_dead(g_);
    check_debug(g_, "clean");
    stage("clean");
    report_.key = key_of(g_);
    if (dump_ && *dump_) dump_->text("positions", to_string(compare_positions(g_, options_)));
    // Each round leaves out at least one more anchor, or loop.
    do form(passes);
    while (passes.back() == Choose && choose());
    for (const Refusal& r : refused_)
      report_.left.push_back({g_.nodes[r.node].op, g_.nodes[r.node].line, r.reason, g_.nodes[r.node].call});
    g_.nodes = std::move(formed_.nodes);
    g_.renumber();
    check_debug(g_, "form");
    describe_all();
    stage("fused");
    return std::move(report_);
  }

 private:
  void stage(std::string_view name) {
    if (dump_) dump_->stage(name, g_);
  }

  void form(std::span<const PassKind> passes) {
    Clusters clusters(g_, lowering_, options_.rows, alone_);
    Matcher matcher(clusters, except_);
    for (const PassKind pass : passes) {
      if (pass == Fuse) join_flat(clusters);
      if (pass == Match) matcher.match_all();
      if (pass == FuseAndMatch) join_flat(clusters, &matcher);
    }
    formed_ = form_regions(g_, clusters, options_.relaxed, options_.single_calls);
    refused_ = matcher.refused();
    refused_.insert(refused_.end(), formed_.refused.begin(), formed_.refused.end());
    refused_.insert(refused_.end(), declined_.begin(), declined_.end());
  }

  /// Whether something has to be formed again.
  bool choose() {
    if (!options_.chooser) return false;
    bool again = false;
    for (size_t i = 0; i < formed_.nodes.size(); ++i) {
      if (!formed_.nodes[i].region) continue;
      const NodeId anchor = formed_.anchors[i];
      const std::string why = anchor != kNone ? options_.chooser->refuse(g_, formed_.nodes[i])
                                              : options_.chooser->refuse_loop(g_, formed_.nodes[i]);
      if (why.empty()) continue;
      again = true;
      if (anchor != kNone) {
        except_.push_back(anchor);
        declined_.push_back({anchor, why});
        continue;
      }
      for (const NodeId member : formed_.members[i]) {
        alone_.push_back(member);
        declined_.push_back({member, why});
      }
    }
    return again;
  }

  void describe_all() {
    describe(g_, report_);
    size_t next = 0;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const Node& node = g_.nodes[i];
      if (!node.region) continue;
      FusionReport::Fusion& fusion = report_.fusions[next++];
      fusion.members = formed_.members[i];
      if (!options_.chooser) continue;
      options_.chooser->describe(g_, node, fusion);
      if (node.region->anchor_member == kNone && fusion.trials.empty()) continue;
      node.region->engine = fusion.engine;
      node.region->knobs = fusion.knobs;
    }
  }

  Graph& g_;
  const FusionOptions& options_;
  OperatorLowering own_lowering_;
  Lowering& lowering_;
  std::optional<GraphDump> dump_;
  FusionReport report_;
  FormedRegions formed_;
  std::vector<NodeId> except_, alone_;
  std::vector<Refusal> refused_, declined_;
};

}  // namespace

void describe(const Graph& graph, FusionReport& report) {
  report.steps = graph.nodes.size();
  for (const Node& node : graph.nodes) {
    const int64_t bytes = bytes_of(graph, node);
    report.bytes += bytes;
    if (!node.region) continue;
    FusionReport::Fusion& fusion = report.fusions.emplace_back();
    fusion.name = node.region->name;
    fusion.kind = node.region->kind;
    fusion.knobs = node.region->knobs;
    fusion.bytes = bytes;
    for (const Node& member : node.region->members) {
      fusion.operators.push_back(member.op);
      fusion.bytes_apart += bytes_of(graph, member);
    }
  }
}

FusionReport fuse(Graph& graph, const FusionOptions& options) {
  return Pipeline(graph, options).run(passes_of(options.position));
}

}  // namespace tenon::graph
