// TrialMemory: memory of its own for the tensors of one node of a graph, filled with numbers. Used by the
// tuner, which runs regions there, so that no tensor of a program is written. Not safe for several threads.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tenon/graph/engine/engine.h"

namespace tenon::graph {

/// A number of a kind, for runs whose numbers do not matter.
Scalar one(Scalar::Kind kind);

/// The elements of a tensor of the host, in order; of complex ones, the real parts.
std::vector<double> as_doubles(const Tensor& t);

class TrialMemory {
 public:
  TrialMemory(const Graph& graph, const Node& node);
  TrialMemory(const TrialMemory&) = delete;

  /// Why nothing can run on it; empty if it can.
  const std::string& problem() const noexcept { return problem_; }
  RegionProgram::Arguments arguments() const noexcept { return {uses_, defs_, numbers_}; }
  /// What the node, or a member of its region, writes is as it was before the first run.
  void reset();
  /// Whether a run finds other values than the one before left it, without a reset.
  bool is_changed_by_runs() const noexcept { return reads_what_it_writes_; }
  /// The bytes of all that the node writes, where NaNs are alike: their signs and payloads are no part of a
  /// result.
  std::vector<std::byte> results() const;

 private:
  struct Block {
    tenon::Storage storage;
    DType dtype;
    std::vector<std::byte> before;  ///< Of what is written.
    bool is_result = false;
  };

  std::map<StorageId, Block> blocks_;
  std::vector<Tensor> uses_, defs_;
  std::vector<Scalar> numbers_;
  bool reads_what_it_writes_ = false;
  std::string problem_;
};

}  // namespace tenon::graph
