// ProgramReport: what became of the calls of one program on one thread, for people: which ran at once, where
// a run left the path of the runs before, and what made values be computed. Filled in by the recorder; with
// the plans that the trie keeps, it is what `explain()` says in Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/core/source_mark.h"
#include "tenon/record/trie.h"

namespace tenon::record {

struct ProgramReport {
  /// Something that happened to a call of an operator at a line.
  struct Event {
    const OperatorInfo* info = nullptr;  ///< Null where no call forced a value.
    std::string what;
    SourceMark line;
    uint64_t count = 0;
  };
  std::vector<Event> ran_now, left, forced;

  static void add(std::vector<Event>& events, const OperatorInfo* info, std::string what, SourceMark line);
};

/// How a call differs from the one that was recorded there before: "sizes of `other`: [32, 10], known [64,
/// 10]".
std::string difference(const TrieNode& call, const TrieNode& known);

}  // namespace tenon::record
