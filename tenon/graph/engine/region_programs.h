// Two ways to run a region that no engine has as a program: as the loop that it is, and call by call. Used by
// the tuner, which compares them with engines.
#pragma once

#include <map>
#include <vector>

#include "tenon/graph/engine/call_step.h"
#include "tenon/graph/engine/engine.h"
#include "tenon/graph/engine/loop_step.h"

namespace tenon::graph {

/// A region without an anchor member, for tensors.
class LoopProgram final : public RegionProgram {
 public:
  LoopProgram(const Graph& g, const Node& node);
  void run(const Arguments& arguments, bool& clobbered_inputs) const override;
  const LoopStep& step() const noexcept { return step_; }

 private:
  LoopStep step_;
  std::vector<uint32_t> outputs_, inputs_;
};

/// The members of a region as they run without it: each by itself, what they make on the way in fresh memory.
class CallsApart final : public RegionProgram {
 public:
  CallsApart(const Graph& g, const Node& node);
  void run(const Arguments& arguments, bool& clobbered_inputs) const override;

 private:
  struct Place {
    uint32_t block = kNone;
    Geometry geometry = {};
  };
  struct Call {
    CallStep step;
    std::vector<Place> uses, defs;
  };
  Place place(const Graph& g, ValueId value, GeometryId geometry);

  std::map<StorageId, uint32_t> blocks_;
  std::vector<uint64_t> nbytes_;
  std::vector<Place> uses_, defs_;
  std::vector<Call> calls_;
};

}  // namespace tenon::graph
