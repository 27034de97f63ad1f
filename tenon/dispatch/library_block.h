// The list of registration blocks: what waits to be committed, and what came from which library.
// Used by the dispatcher and by load.cc. Knows nothing of what blocks register; library.h has the block
// itself.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tenon/dispatch/library.h"

namespace tenon::detail {

/// A block as it was when the list was read. It may be gone by now: only its id is looked up again.
struct BlockName {
  uint64_t id;
  const void* address;
  const void* object;
  const ThreadState* thread;  ///< Of the thread that opened the library.
  bool waiting;
};

/// Keeps the libraries of blocks mapped until it dies. Makes and dies without the dispatcher's locks held.
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

/// Whether any block waits for its turn or is having it.
bool blocks_wait() noexcept;
/// The id of the newest block.
uint64_t last_block() noexcept;
/// All blocks, oldest first.
std::vector<BlockName> list_blocks();

enum class CommitResult : uint8_t { NothingToDo, Committed };
/// Runs a block that waits, or with `again` one that was taken back. Its library is pinned and the commit
/// lock held. A failure undoes what the block registered and throws; the block does not wait any longer.
CommitResult commit_block(uint64_t id, bool again);
/// Takes a block's registrations back, or its turn if it waits. Says whether it had any.
bool undo_block(uint64_t id) noexcept;

}  // namespace tenon::detail
