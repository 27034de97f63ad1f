// The registration blocks of all libraries. Blocks are committed at the next look-up, not when a library is
// loaded, because static initialisers cannot throw.
//
// A library may be opened and closed at any time, by any thread. The loader runs static initialisers and
// destructors under a lock of its own, so a thread that waits for that lock must not hold one that a block
// needs. The locks must be taken in this order: the loader's, Dispatcher::State::commit_mutex, State::mutex,
// the list's mutex. A library is pinned before its block runs, so that it cannot be closed meanwhile; a
// block's destructor removes what it registered.
#include "tenon/dispatch/library_block.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "tenon/core/error.h"
#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/state.h"

namespace tenon::detail {
namespace {

/// All blocks there are, oldest first. Trivially destructible: blocks of other libraries outlive this file's
/// statics.
struct BlockList {
  std::mutex mutex;  ///< Nothing else is locked or called under it.
  LibraryBlock* first = nullptr;
  LibraryBlock* last = nullptr;
  uint64_t last_id = 0;
  /// How many wait or are being committed. A look-up that reads 0 needs no lock.
  std::atomic<int> waiting{0};
};
constinit BlockList g_list;

/// Set when the process exits. Operators may be called until its very end, from static destructors and from
/// threads that still run, so blocks then leave their registrations where they are.
constinit std::atomic<bool> g_exiting{false};

const void* this_object() noexcept { return &kThisObject; }

/// Whether a block is Tenon's own, of another copy of this library: its symbols were bound to this copy,
/// whose operators are there already.
bool is_of_second_copy(const LibraryBlock& block) noexcept {
  if (block.object == this_object()) return false;
  for (const LibraryBlock* b = g_list.first; b; b = b->next) {
    if (b->object == this_object() && b->where.line == block.where.line && b->kind == block.kind &&
        std::strcmp(b->ns, block.ns) == 0 && std::strcmp(b->key, block.key) == 0 &&
        std::strcmp(b->where.file, block.where.file) == 0) {
      return true;
    }
  }
  return false;
}

LibraryBlock* find_block(uint64_t id) noexcept {
  for (LibraryBlock* b = g_list.first; b; b = b->next) {
    if (b->id == id) return b;
  }
  return nullptr;
}

/// The path of the shared object that contains an address; empty for the program itself.
std::string path_of(const void* address) {
  struct Search {
    uintptr_t address;
    std::string path;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  // Unlike dladdr, it shows names while nothing can be unloaded.
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && s.address >= begin && s.address - begin < segment.p_memsz) {
            s.path = info->dlpi_name;
            return 1;
          }
        }
        return 0;
      },
      &search);
  return search.path;
}

}  // namespace

// Locked before the first member is written: another block may have been at the same address, which
// ThreadSanitizer remembers.
LibraryBlock::LibraryBlock(Library::Kind kind, const char* ns, const char* key, Init init, const char* file,
                           int line, const void* object) noexcept
    : LibraryBlock(std::unique_lock(g_list.mutex), kind, ns, key, init, {file, line}, object) {}

LibraryBlock::LibraryBlock(const std::unique_lock<std::mutex>&, Library::Kind kind, const char* ns,
                           const char* key, Init init, SourceLocation where, const void* object) noexcept
    : kind(kind), ns(ns), key(key), init(init), where(where), object(object), thread(&thread_state) {
  if (is_of_second_copy(*this)) return;
  id = ++g_list.last_id;
  state = State::Waiting;
  previous = g_list.last;
  (previous ? previous->next : g_list.first) = this;
  g_list.last = this;
  g_list.waiting.fetch_add(1, std::memory_order_release);
}

LibraryBlock::~LibraryBlock() {
  // This library's own stay as long as its code.
  if (object == this_object() || g_exiting.load(std::memory_order_acquire)) return;
  std::unique_ptr<Library> registered;  // dies after the lock
  const std::lock_guard lock(g_list.mutex);
  if (state == State::Ignored) return;
  if (state == State::Waiting) g_list.waiting.fetch_sub(1, std::memory_order_relaxed);
  (previous ? previous->next : g_list.first) = next;
  (next ? next->previous : g_list.last) = previous;
  registered.reset(std::exchange(library, nullptr));
}

BlockPins::~BlockPins() {
  for (const auto& [object, handle] : pins_) {
    if (handle) dlclose(handle);
  }
}

void BlockPins::hold(const BlockName& block) {
  if (block.object == this_object()) return;
  for (const auto& [object, handle] : pins_) {
    if (object == block.object) return;
  }
  const std::string path = path_of(block.address);
  if (path.empty()) return;
  // None for a library that is just being closed; its blocks are off the list by then.
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) pins_.emplace_back(block.object, handle);
}

bool blocks_wait() noexcept { return g_list.waiting.load(std::memory_order_acquire) != 0; }

uint64_t last_block() noexcept {
  const std::lock_guard lock(g_list.mutex);
  return g_list.last_id;
}

std::vector<BlockName> list_blocks() {
  const std::lock_guard lock(g_list.mutex);
  std::vector<BlockName> blocks;
  for (const LibraryBlock* b = g_list.first; b; b = b->next) {
    blocks.push_back({b->id, b, b->object, b->thread, b->state == LibraryBlock::State::Waiting});
  }
  return blocks;
}

CommitResult commit_block(uint64_t id, bool again) {
  LibraryBlock* block = nullptr;
  {
    const std::lock_guard lock(g_list.mutex);
    block = find_block(id);
    const bool wanted = block && (block->state == LibraryBlock::State::Waiting ||
                                  (again && block->state == LibraryBlock::State::Idle));
    if (!wanted) return CommitResult::NothingToDo;
    if (block->state == LibraryBlock::State::Idle) g_list.waiting.fetch_add(1, std::memory_order_relaxed);
    block->state = LibraryBlock::State::Committing;
  }
  const bool foreign = block->object != this_object();
  const bool our_own = !foreign && block->ns == detail::kBuiltinNamespace;
  const SourceLocation where = block->where;
  // The last that is seen of the block: its library may be closed from then on.
  const auto end = [&](LibraryBlock::State state, Library* library) {
    const std::lock_guard lock(g_list.mutex);
    block->state = state;
    block->library = library;
    g_list.waiting.fetch_sub(1, std::memory_order_release);
  };
  try {
    auto library = std::make_unique<Library>(block->kind, block->ns, block->key, where);
    block->init(*library);
    end(LibraryBlock::State::Committed, library.release());
  } catch (const std::exception& e) {
    end(LibraryBlock::State::Idle, nullptr);
    if (!our_own) throw;
    throw_error(ErrorKind::Internal,
                fmt::format("Tenon's own registration at {} failed: {}", to_string(where), e.what()));
  } catch (...) {
    end(LibraryBlock::State::Idle, nullptr);
    throw;
  }
  // Handlers run in the reverse order of their registration, so this one before the block's destructor.
  if (foreign) std::atexit([] { g_exiting.store(true, std::memory_order_release); });
  return CommitResult::Committed;
}

bool undo_block(uint64_t id) noexcept {
  std::unique_ptr<Library> registered;  // dies after the lock
  const std::lock_guard lock(g_list.mutex);
  LibraryBlock* block = find_block(id);
  if (!block) return false;
  if (block->state == LibraryBlock::State::Waiting) g_list.waiting.fetch_sub(1, std::memory_order_relaxed);
  if (block->state != LibraryBlock::State::Committing) block->state = LibraryBlock::State::Idle;
  registered.reset(std::exchange(block->library, nullptr));
  return registered != nullptr;
}

}  // namespace tenon::detail

namespace tenon {

void Dispatcher::commit_pending() {
  // A block that looks something up does not wait for itself.
  while (detail::blocks_wait() &&
         state_->committer.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
    const auto blocks = detail::list_blocks();
    detail::BlockPins pins;  // released after the lock: closing a library may run anything
    for (const auto& block : blocks) {
      if (block.waiting) pins.hold(block);
    }
    const State::CommitLock lock(*state_);
    for (const auto& block : blocks) {
      if (block.waiting) detail::commit_block(block.id, false);
    }
  }
}

}  // namespace tenon
