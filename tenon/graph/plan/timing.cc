#include "tenon/graph/plan/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tenon/graph/engine/trial_memory.h"
#include "tenon/graph/plan/plan.h"

namespace tenon::graph {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr double kLongest = 5e6;  // of runs in one position
constexpr int kMostRuns = 20;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

tenon::Storage zeros(size_t nbytes) {
  tenon::Storage made = tenon::Storage::allocate(nbytes);
  if (nbytes > 0) std::memset(reinterpret_cast<void*>(made.address()), 0, nbytes);
  return made;
}

}  // namespace

Timing time_of(const Graph& graph, MatcherPosition position, const FusionOptions& options) {
  Timing timing;
  uint64_t nbytes = 0;
  for (const Storage& s : graph.storages) nbytes += s.nbytes;
  if (nbytes > kMostBytes) {
    timing.problem = fmt::format("it has {} bytes, more than 1 GiB", nbytes);
    return timing;
  }
  try {
    Signature signature;
    std::vector<tenon::Storage> memory;
    std::vector<Address> addresses;
    for (StorageId id = 0; id < graph.storages.size(); ++id) {
      const Storage& s = graph.storages[id];
      if (!s.is_input && !s.is_output) continue;
      signature.tensors.push_back({.uid = id, .storage = id, .offset = 0});
      // An empty one has an address, too.
      memory.push_back(zeros(std::max<size_t>(s.nbytes, 1)));
      addresses.push_back(memory.back().address());
    }
    for (const Scalar::Kind kind : graph.numbers) signature.numbers.push_back(one(kind));
    Graph calls = graph.copy();
    Clock::time_point start = Clock::now();
    const Plan plan(
        std::move(calls), std::move(signature),
        {.position = position, .rows = options.rows, .engines = {.relaxed = options.relaxed}, .dump = false});
    timing.planned = since(start);
    const tenon::Storage workspace = zeros(plan.workspace_size());
    const std::span<std::byte> space(reinterpret_cast<std::byte*>(workspace.address()),
                                     plan.workspace_size());
    const Clock::time_point first = Clock::now();
    for (int i = 0; i < kMostRuns && (i < 2 || since(first) < kLongest); ++i) {
      start = Clock::now();
      plan.execute(addresses, space);
      const double ns = since(start);
      timing.run = i == 0 ? ns : std::min(timing.run, ns);
    }
  } catch (const std::exception& error) {
    timing.problem = error.what();
  }
  return timing;
}

}  // namespace tenon::graph
