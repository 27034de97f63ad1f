// The devices that are loaded, with all that came with each. Used by this room alone.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/caching_allocator.h"
#include "tenon/plugin/registrar.h"

namespace tenon::plugin {

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

/// A device and what came with it.
struct Loaded {
  LibraryHandle library;
  std::unique_ptr<PluginDevice> device;
  std::unique_ptr<CachingAllocator> allocator;
  Registrations registrations;
};

/// Never destroyed: tensors may outlive static destruction.
struct Registry {
  std::mutex mutex;
  std::vector<Loaded*> loaded;
  /// What is left of those that were unloaded: a table that was replaced, or another thread, may still look
  /// at it.
  std::vector<Loaded*> unloaded;
};
Registry& registry();

/// Held while a device is loaded or unloaded, one at a time. Taken without the interpreter's lock.
std::recursive_mutex& loading();

/// Takes back what a device has set for its backend, apart from its registrations and its number.
void detach(Backend backend) noexcept;

/// Throws for an ELF file that ends before what its program headers say: dlopen would not notice, and who
/// reads there gets a signal.
void check_library_file(const std::string& path);

/// The file of a device that is looked for by its name; empty where there is none.
std::string file_of(std::string_view name);
/// Where files are looked for.
std::vector<std::string> search_folders();

}  // namespace tenon::plugin
