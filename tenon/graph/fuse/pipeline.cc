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
constexpr std::string_view kPassNames[] = {"clean", "fuse", "match", "fuse and match", "form", "tune"};

using enum PassKind;
constexpr PassKind kAfterFuser[] = {Clean, Fuse, Match, Form, Tune};
constexpr PassKind kBeforeFuser[] = {Clean, Match, Fuse, Form, Tune};
constexpr PassKind kInFuser[] = {Clean, FuseAndMatch, Form, Tune};
constexpr PassKind kAlone[] = {Clean, Match, Form, Tune};

}  // namespace

std::string_view name(Position position) noexcept { return kPositionNames[static_cast<size_t>(position)]; }
std::string_view name(PassKind kind) noexcept { return kPassNames[static_cast<size_t>(kind)]; }

std::optional<Position> parse_position(std::string_view text) noexcept {
  for (const Position position : kPositions) {
    if (name(position) == text) return position;
  }
  return std::nullopt;
}

Position configured_position() {
  static const Position position = [] {
    const char* text = std::getenv("TENON_FUSION");
    if (!text || !*text) return Position::AfterFuser;
    const auto parsed = parse_position(text);
    if (!parsed)
      write_diagnostic(fmt::format("TENON_FUSION: '{}' is none of a, b-A, b-B and c; a is taken", text));
    return parsed.value_or(Position::AfterFuser);
  }();
  return position;
}

std::span<const PassKind> passes_of(Position position) noexcept {
  switch (position) {
    case Position::AfterFuser:
      return kAfterFuser;
    case Position::BeforeFuser:
      return kBeforeFuser;
    case Position::InFuser:
      return kInFuser;
    case Position::Alone:
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
      return fmt::format("pass '{}' stands twice", name(kind));
  }
  if (place(FuseAndMatch) < end && (place(Fuse) < end || place(Match) < end))
    return "pass 'fuse and match' stands beside one that does half of it";
  for (const PassKind rewriter : {Fuse, Match, FuseAndMatch}) {
    if (place(rewriter) == end) continue;
    if (place(Clean) < end && place(Clean) > place(rewriter))
      return fmt::format("pass 'clean' comes after '{}', which would fuse what is dead", name(rewriter));
    if (place(Tune) < place(rewriter))
      return fmt::format("the tuner comes before '{}', which would rewrite what it has tuned",
                         name(rewriter));
    if (place(Form) < place(rewriter))
      return fmt::format("pass 'form' comes before '{}', which joins what is to be formed", name(rewriter));
  }
  if (place(Tune) < place(Form)) return "the tuner comes before 'form', which makes what it tunes";
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

/// One run of the passes. What the tuner refuses is formed again without it.
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
                    fmt::format("pipeline: a rewriter comes after the tuner, which has chosen '{}' for {}",
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
    while (passes.back() == Tune && tune());
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
    refused_.insert(refused_.end(), untuned_.begin(), untuned_.end());
  }

  /// Whether something has to be formed again.
  bool tune() {
    if (!options_.tuner) return false;
    bool again = false;
    for (size_t i = 0; i < formed_.nodes.size(); ++i) {
      if (!formed_.nodes[i].region) continue;
      const NodeId anchor = formed_.anchors[i];
      const std::string why = anchor != kNone ? options_.tuner->refuse(g_, formed_.nodes[i])
                                              : options_.tuner->refuse_loop(g_, formed_.nodes[i]);
      if (why.empty()) continue;
      again = true;
      if (anchor != kNone) {
        except_.push_back(anchor);
        untuned_.push_back({anchor, why});
        continue;
      }
      for (const NodeId member : formed_.members[i]) {
        alone_.push_back(member);
        untuned_.push_back({member, why});
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
      if (!options_.tuner) continue;
      options_.tuner->describe(g_, node, fusion);
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
  std::vector<Refusal> refused_, untuned_;
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
    fusion.anchor = node.region->anchor;
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
