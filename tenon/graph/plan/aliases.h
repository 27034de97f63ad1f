// Aliases: which tensors of a plan may share memory in a run. An output may be written over an input where
// every element is read before it is written; all other sharing is refused. Used by Plan. Found once for a
// plan; a run compares addresses, and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tenon/core/allocator.h"
#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

struct Signature;

class Aliases {
 public:
  Aliases() = default;
  /// `places`: of the signature's tensors, among the addresses of a run. `elementwise`: by node, whether it
  /// reads each element of its operands before it writes the element of the same index of its only result.
  Aliases(const Graph& graph, const Signature& signature, std::span<const uint32_t> places,
          const std::vector<bool>& elementwise);

  /// Throws Error{Value} if an output shares memory with another tensor in a way that changes results, or a
  /// tensor with the workspace.
  void check(const Graph& graph, std::span<const Address> sorted, std::span<const std::byte> workspace) const;

 private:
  /// A tensor that a run brings, with elements.
  struct Row {
    uint64_t uid;
    uint32_t place;
    StorageId storage;
    int64_t first, last;  ///< Its bytes, from its address on: [first, last).
  };
  void check_pair(const Graph& graph, std::span<const Address> sorted, size_t output, size_t other) const;

  std::vector<Row> rows_;  // outputs, then inputs
  size_t outputs_ = 0;
  std::vector<bool> in_place_;  // output * inputs + input: at one address, the output may be written over it
};

}  // namespace tenon::graph
