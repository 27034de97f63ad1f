#include "tenon/graph/text/dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tenon/dispatch/trace.h"
#include "tenon/graph/text/text.h"

namespace tenon::graph {
namespace {

/// The folder, which is made if it is not there; empty where dumps are off.
const std::string& folder() {
  static const std::string dir = [] {
    const char* const text = std::getenv("TENON_DUMP_GRAPH");
    std::error_code failed;  // what is written there fails, too, and says so
    if (text && *text) std::filesystem::create_directories(text, failed);
    return std::string(text ? text : "");
  }();
  return dir;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file.fail()) return;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    write_diagnostic(fmt::format("TENON_DUMP_GRAPH: nothing can be written to the folder '{}'", folder()));
  }
}

}  // namespace

GraphDump::GraphDump() noexcept {
  static std::atomic<uint32_t> count{0};
  static const bool on = !folder().empty();
  if (on) number_ = ++count;
}

std::string GraphDump::next_path(std::string_view name) {
  return fmt::format("{}/graph_{}_{:04}_{}_{}", folder(), ::getpid(), number_, stage_++, name);
}

void GraphDump::stage(std::string_view name, const Graph& graph) {
  if (number_ == 0) return;
  const std::string path = next_path(name);
  write(path + ".txt", to_string(graph, true));
  write(path + ".dot", to_dot(graph));
}

void GraphDump::text(std::string_view name, const std::string& text) {
  if (number_ != 0) write(next_path(name) + ".txt", text);
}

}  // namespace tenon::graph
