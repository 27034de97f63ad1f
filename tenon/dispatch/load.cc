// Committing registration blocks, and the shared libraries that they come from.
#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <memory>

#include "tenon/core/error.h"
#include "tenon/dispatch/state.h"

namespace tenon {
namespace {

/// Where the shared object that contains an address begins; it stands for the library.
const void* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

/// Every block that was ever committed, so that a library can be unloaded and loaded again although its
/// static initialisers run once. Guarded by the dispatcher's mutex.
std::vector<detail::LibraryBlock*>& known_blocks() {
  static auto& blocks = *new std::vector<detail::LibraryBlock*>;
  return blocks;
}

std::vector<detail::LibraryBlock*> blocks_of(const void* base) {
  std::vector<detail::LibraryBlock*> blocks;
  for (detail::LibraryBlock* b : known_blocks()) {
    if (base_of(b) == base) blocks.push_back(b);
  }
  return blocks;
}

void undo(detail::LibraryBlock& block) noexcept { delete std::exchange(block.library, nullptr); }

/// Whether a block is one of Tenon's own; a program that links the archive has its blocks in the same place,
/// so there no difference is made.
bool is_our_own(const detail::LibraryBlock& block) {
  const void* ours = base_of(reinterpret_cast<const void*>(&load_library));
  const void* program = base_of(reinterpret_cast<const void*>(getauxval(AT_PHDR)));
  return ours != program && base_of(&block) == ours;
}

const void* base_of_handle(void* handle, const std::string& path) {
  link_map* map = nullptr;
  TENON_CHECK(dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map, Device,
              fmt::format("load_library: '{}': {}", path, dlerror()));
  return base_of(map->l_ld);
}

}  // namespace

void detail::commit_block(LibraryBlock& block) {
  auto& known = known_blocks();
  if (std::find(known.begin(), known.end(), &block) == known.end()) known.push_back(&block);
  try {
    auto library = std::make_unique<Library>(block.kind, block.ns, block.key, block.where);
    block.init(*library);
    block.library = library.release();
  } catch (const std::exception& e) {
    if (!is_our_own(block)) throw;
    throw_error(ErrorKind::Internal,
                fmt::format("Tenon's own registration at {} failed: {}", to_string(block.where), e.what()));
  }
}

void load_library(const std::string& path) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  // What is wrong with others is not this library's fault.
  dispatcher.commit_pending();
  // Not under the mutex: static initialisers may call operators.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  TENON_CHECK(handle, Device, fmt::format("load_library: {}", dlerror()));
  const void* base = base_of_handle(handle, path);

  Dispatcher::State& state = dispatcher.state();
  const std::lock_guard lock(state.mutex);
  std::vector<detail::LibraryBlock*> before;
  for (detail::LibraryBlock* b : known_blocks()) {
    if (b->library) before.push_back(b);
  }
  try {
    dispatcher.commit_pending();
    for (detail::LibraryBlock* b : blocks_of(base)) {
      if (!b->library) detail::commit_block(*b);
    }
  } catch (...) {
    // The library as a whole failed: what it brought goes again, its dependencies' blocks as well.
    const auto queued = detail::take_queue();
    state.pending.insert(state.pending.end(), queued.begin(), queued.end());
    for (detail::LibraryBlock* b : state.pending) known_blocks().push_back(b);
    state.pending.clear();
    state.has_pending.store(false, std::memory_order_release);
    auto& known = known_blocks();
    for (auto b = known.rbegin(); b != known.rend(); ++b) {
      if (std::find(before.begin(), before.end(), *b) == before.end()) undo(**b);
    }
    throw;
  }
}

void unload_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  TENON_CHECK(handle, Device, fmt::format("unload_library: '{}' is not loaded", path));
  Dispatcher& dispatcher = Dispatcher::singleton();
  dispatcher.commit_pending();
  const void* base = base_of_handle(handle, path);
  dlclose(handle);  // the look-up's reference; the load's own keeps the code mapped
  const std::lock_guard lock(dispatcher.state().mutex);
  const auto blocks = blocks_of(base);
  TENON_CHECK(std::any_of(blocks.begin(), blocks.end(), [](const auto* b) { return b->library != nullptr; }),
              Value, fmt::format("unload_library: '{}' has no registrations", path));
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) undo(**b);
}

}  // namespace tenon
