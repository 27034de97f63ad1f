// Program: calls in their order, on storages and numbers that are known by number, before anything is
// planned. assemble makes its graph. A recorded segment is one, and a written graph, once its nodes are
// operators. Holds no bytes and no values of numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/core/source_mark.h"
#include "tenon/graph/ir/call.h"
#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

struct Program {
  struct Step {
    const Call* call;       ///< Not the program's own.
    uint32_t first_number;  ///< Of those that it takes, which follow each other.
    SourceMark line = {};
  };
  std::vector<Step> calls;
  std::vector<Storage> storages;  ///< An output is read after the last call.
  std::vector<Scalar::Kind> numbers;
};

struct Assembled {
  Graph graph;
  /// By storage: how many bytes further offsets count in the graph, where none is negative, than those of the
  /// calls' operands.
  std::vector<size_t> offset_shift;
};

/// Whether calls are kept whose values may be wrong, though their results are dead: an error has to come.
enum class KeepErrors : uint8_t { No, Yes };

/// The graph of the calls that the program's outputs follow from.
Assembled assemble(const Program& program, KeepErrors keep);

}  // namespace tenon::graph
