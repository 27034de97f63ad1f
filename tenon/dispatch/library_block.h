// The list of registration blocks: which wait to be committed, and which library each is in. Used by the
// dispatcher and by load.cc. Independent of what blocks register; library.h defines the block.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tenon/dispatch/library.h"

namespace tenon::detail {

/// A block as it was when the list was read. The block may be gone since, so it is looked up again by its id.
struct BlockName {
  uint64_t id;
  const void* address;
  const void* object;
  const ThreadState* thread;  ///< Of the thread that opened the library.
  bool waiting;
};

/// Keeps the libraries of blocks mapped during its lifetime. Made and destroyed without the dispatcher's
/// locks.
class BlockPins {
 public:
  BlockPins() = default;
  BlockPins(const BlockPins&) = delete;
  BlockPins& operator=(const BlockPins&) = delete;
  ~BlockPins();

  void hold(const BlockName& block);

 private:
  std::vector<std::pair<const void*, void*>> pins_;
};

/// Whether any block waits to be committed or is being committed.
bool blocks_wait() noexcept;
/// The id of the newest block.
uint64_t last_block() noexcept;
/// All blocks, oldest first.
std::vector<BlockName> list_blocks();

enum class CommitResult : uint8_t { NothingToDo, Committed };
/// Commits a waiting block or, with `again`, one whose registrations were removed. The caller has pinned its
/// library and holds the commit lock. If the block throws, its registrations are removed, the exception is
/// passed on, and the block no longer waits.
CommitResult commit_block(uint64_t id, bool again);
/// Removes a block's registrations, or removes it from the waiting blocks. Returns whether there was anything
/// to remove.
bool undo_block(uint64_t id) noexcept;

}  // namespace tenon::detail
