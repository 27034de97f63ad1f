// The parts of regions: the expressions of calls, joined into one, and what its slots are. Used by the passes
// that form regions and by engines that compute a part of one.
#pragma once

#include <vector>

#include "tenon/expr/join.h"
#include "tenon/graph/fuse/clusters.h"
#include "tenon/graph/ir/lowering.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {

/// Tensors by number: the same elements of the same version.
class Names {
 public:
  expr::ValueName of(const Use& use);
  expr::ValueName of(const Def& def) { return of(Use{def.value, def.geometry}); }
  const Use& operator[](expr::ValueName name) const noexcept { return uses_[name]; }

 private:
  std::vector<Use> uses_;
};

/// The numbers of a region: one that several calls take alike has one place.
class RegionNumbers {
 public:
  /// A number slot of member number `member`; the place that parts take it from.
  uint32_t add(const Graph& graph, const Node& call, uint32_t member, uint32_t slot,
               const LoweredArgument& from);
  std::vector<NumberSource> take() { return std::move(sources_); }
  /// The graph's numbers among them, each once.
  std::vector<uint32_t> used() const;

 private:
  std::vector<NumberSource> sources_;
  std::vector<uint32_t> numbers_;  // of the graph; kNone for an attribute
};

/// One part while calls are added to it, in their order.
class PartMaker {
 public:
  /// `rows`: what the part loops over if it works on rows, else null.
  PartMaker(const Graph& graph, Names& names, RegionNumbers& numbers, const RowShape* rows, bool relaxed)
      : g_(graph), names_(names), numbers_(numbers), rows_(rows), joiner_(relaxed) {}

  void add(const Node& call, const LoweredCall& lowered, uint32_t member);
  /// What the anchor gives, as it is: its name from now on is that of the def.
  void add_anchor_result(const Def& result);
  /// The part that stores these tensors; `outputs` are left to the caller. Its inputs are names. Throws as
  /// Joiner::finish.
  RegionPart finish(std::span<const expr::ValueName> wanted);

 private:
  expr::Rank rank_of(const Use& use, const expr::Slot& slot, bool on_rows) const;

  const Graph& g_;
  Names& names_;
  RegionNumbers& numbers_;
  const RowShape* const rows_;
  expr::Joiner joiner_;
};

/// What is left of an epilogue once an engine has computed `made`, the result of a member: these members, as
/// one part whose anchor's result is `made`. It stores the other defs of the region's node, and may skip
/// rounding to half types in between. Throws as Joiner::finish.
RegionPart rest_of_epilogue(const Graph& graph, const Node& node, const Def& made,
                            std::span<const uint32_t> members);

}  // namespace tenon::graph
