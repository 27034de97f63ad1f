// Loading and unloading shared libraries with the registrations that they bring.
#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <memory>

#include "tenon/core/crash_note.h"
#include "tenon/core/error.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/library_block.h"
#include "tenon/dispatch/state.h"
#include "tenon/dispatch/stub.h"

namespace tenon {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

/// Where the shared object that contains an address begins; it identifies the library.
const void* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

const void* base_of_handle(void* handle, const std::string& path) {
  link_map* map = nullptr;
  TENON_CHECK(dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map, Device,
              fmt::format("load_library: '{}': {}", path, dlerror()));
  return base_of(map->l_ld);
}

/// The blocks of an open library, oldest first, and those that this thread's loading it has brought: its
/// dependencies' too, which come first.
std::vector<uint64_t> blocks_of(const void* base, uint64_t newer_than) {
  std::vector<uint64_t> ids;
  for (const auto& b : detail::list_blocks()) {
    const bool brought = b.id > newer_than && b.thread == &thread_state;
    if (brought || base_of(b.address) == base) ids.push_back(b.id);
  }
  return ids;
}

/// Fills in again what a library has for stubs, or takes it back. Returns whether there was anything to do.
bool set_stubs(const void* base, bool filled_in) {
  bool any = false;
  for (const void* registration : detail::StubRegistration::all()) {
    if (base_of(registration) == base) any |= detail::StubRegistration::set(registration, filled_in);
  }
  return any;
}

}  // namespace

void load_library(const std::string& path) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  // What is wrong with others is not this library's fault.
  dispatcher.commit_pending();
  const uint64_t before = detail::last_block();
  const LibraryHandle known(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD));
  // Its static initialisers may call operators, and with that commit blocks of the library.
  const CrashNote note("load_library", path, "what it runs when it is opened");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: the code stays mapped
  if (!handle) throw FileError(fmt::format("load_library: {}", dlerror()));
  const void* const base = base_of_handle(handle, path);
  const std::vector<uint64_t> blocks = blocks_of(base, before);

  const Dispatcher::State::CommitLock lock(dispatcher.state());
  std::vector<uint64_t> committed;
  try {
    for (const uint64_t id : blocks) {
      if (detail::commit_block(id, true) == detail::CommitResult::Committed) committed.push_back(id);
    }
  } catch (...) {
    // The library as a whole failed: what it brought goes again.
    for (auto id = blocks.rbegin(); id != blocks.rend(); ++id) {
      const bool had_been_there =
          *id <= before && std::find(committed.begin(), committed.end(), *id) == committed.end();
      if (!had_been_there) detail::undo_block(*id);
    }
    if (!known) set_stubs(base, false);
    throw;
  }
  set_stubs(base, true);
}

void unload_library(const std::string& path) {
  // Keeps it open while its registrations go.
  const LibraryHandle handle(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD));
  TENON_CHECK(handle, Device, fmt::format("unload_library: '{}' is not loaded", path));
  Dispatcher& dispatcher = Dispatcher::singleton();
  dispatcher.commit_pending();
  const void* const base = base_of_handle(handle.get(), path);
  const std::vector<uint64_t> blocks = blocks_of(base, detail::last_block());
  const Dispatcher::State::CommitLock lock(dispatcher.state());
  bool any = false;
  for (auto id = blocks.rbegin(); id != blocks.rend(); ++id) any |= detail::undo_block(*id);
  any |= set_stubs(base, false);
  TENON_CHECK(any, Value, fmt::format("unload_library: '{}' has no registrations", path));
}

}  // namespace tenon
