#include "tenon/graph/dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "tenon/dispatch/trace.h"
#include "tenon/graph/text.h"

namespace tenon::graph {
namespace {

/// The folder; empty where dumps are off.
const std::string& folder() {
  static const std::string dir = [] {
    const char* text = std::getenv("TENON_DUMP_GRAPH");
    return std::string(text ? text : "");
  }();
  return dir;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return !file.fail();
}

}  // namespace

GraphDump::GraphDump() noexcept {
  static std::atomic<uint32_t> count{0};
  static const bool on = !folder().empty();
  if (on) number_ = ++count;
}

void GraphDump::stage(std::string_view name, const Graph& graph) {
  if (number_ == 0) return;
  const std::string stem =
      fmt::format("{}/graph_{}_{:04}_{}_{}", folder(), ::getpid(), number_, stage_++, name);
  if (write(stem + ".txt", to_string(graph, true)) && write(stem + ".dot", to_dot(graph))) return;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    write_diagnostic(
        fmt::format("TENON_DUMP_GRAPH: '{}' cannot be written; is it a folder that is there?", folder()));
  }
}

}  // namespace tenon::graph
