// Where devices are looked for by their names.
#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "tenon/plugin/load.h"
#include "tenon/plugin/registry.h"

namespace tenon {
namespace plugin {
namespace {

constinit std::atomic<PluginFinder> g_finder{nullptr};

}  // namespace

std::vector<std::string> search_folders() {
  std::vector<std::string> folders;
  const char* listed = std::getenv("TENON_PLUGIN_PATH");
  std::string_view rest = listed ? listed : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&search_folders), &own) && own.dli_fname)
    folders.push_back((std::filesystem::path(own.dli_fname).parent_path() / "tenon" / "plugins").string());
  return folders;
}

std::string file_of(std::string_view name) {
  const auto in_names = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; };
  if (name.empty() || !std::ranges::all_of(name, in_names)) return {};
  for (const std::string& folder : search_folders()) {
    // A relative folder would depend on where the program happens to run.
    if (!folder.starts_with('/')) continue;
    for (const std::string& file :
         {fmt::format("{}/libtenon_{}.so", folder, name), fmt::format("{}/{}.so", folder, name)}) {
      std::error_code unreadable;
      if (std::filesystem::is_regular_file(file, unreadable)) return file;
    }
  }
  const PluginFinder finder = g_finder.load(std::memory_order_acquire);
  return finder ? finder(name) : std::string();
}

}  // namespace plugin

void set_plugin_finder(PluginFinder finder) noexcept {
  plugin::g_finder.store(finder, std::memory_order_release);
}

}  // namespace tenon
