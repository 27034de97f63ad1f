#include "tenon/graph/plan/plan_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "tenon/core/parallel.h"
#include "tenon/graph/ir/key.h"
#include "tenon/iter/host.h"

namespace tenon::graph {

void add_to_key(expr::Mixer& mixer, const Graph& graph, const PlanOptions& options) {
  mixer.add(uint64_t{graph.storages.size()});
  for (const Storage& s : graph.storages) {
    mixer.add(s.nbytes);
    mixer.add(tenon::to_string(s.device));
    mixer.add(uint64_t{s.is_input} | uint64_t{s.is_output} << 1);
  }
  mixer.add(uint64_t{graph.numbers.size()});
  for (const Scalar::Kind kind : graph.numbers) mixer.add(static_cast<uint64_t>(kind));
  mixer.add(uint64_t{graph.nodes.size()});
  for (const Node& node : graph.nodes) mixer.add(key_of_call(graph, node));
  mixer.add(uint64_t{options.fuse} | uint64_t{options.rows} << 1 | uint64_t{options.engines.relaxed} << 2 |
            static_cast<uint64_t>(options.position) << 4 | uint64_t{options.tune_ms > 0} << 8);
  mixer.add(uint64_t{options.engines.excluded.size()});
  for (const std::string& name : options.engines.excluded) mixer.add(name);
  if (options.engines.relaxed || options.tune_ms > 0) mixer.add(static_cast<uint64_t>(num_threads()));
  if (options.tune_ms > 0) mixer.add(uint64_t{kHost.makes_machine_code()});
  if (!options.engines.relaxed) return;
  for (const Engine& engine : kHostEngines) {
    if (engine.version) mixer.add(engine.version());
  }
}

bool same_tables(const Graph& a, const Graph& b) {
  const auto same = [](const Storage& s, const Storage& t) {
    return s.nbytes == t.nbytes && s.device == t.device && s.is_input == t.is_input &&
           s.is_output == t.is_output;
  };
  return a.numbers == b.numbers && std::ranges::equal(a.storages, b.storages, same);
}

std::string about(const Graph& graph) {
  constexpr size_t kLong = 60;
  std::string text;
  std::set<std::string_view> named;
  size_t calls = 0;
  each_call(graph, [&](const Node& call) {
    ++calls;
    std::string_view name = call.op.name();
    if (!named.insert(name).second || text.ends_with("...")) return;
    name.remove_prefix(std::min(name.rfind(':') + 1, name.size()));
    text += text.empty() ? "" : ", ";
    text += text.size() < kLong ? name : "...";
  });
  return fmt::format("{}: {} call{} in {} step{}", text, calls, calls == 1 ? "" : "s", graph.nodes.size(),
                     graph.nodes.size() == 1 ? "" : "s");
}

}  // namespace tenon::graph
