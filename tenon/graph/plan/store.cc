// Plans on disk, of recorded programs and of written graphs: under which key, their bytes, and what is
// checked of them. No machine code: it is made again from expressions.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tenon/cache/plan_cache.h"
#include "tenon/core/error.h"
#include "tenon/core/parallel.h"
#include "tenon/expr/mixer.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/plan.h"
#include "tenon/graph/plan/tuner.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/bytes.h"
#include "tenon/iter/host.h"

namespace tenon::graph {
namespace {

/// Raised whenever the bytes of plans change. Raise `kVersion` in builder/file.cc, too.
constexpr std::string_view kForm = "plan 4";

void require(bool right, const char* problem) { TENON_CHECK(right, Value, problem); }

/// Of a recorded program nothing but that it is one: the rest follows from its slots.
void write(ByteWriter& out, const Signature& s) {
  out.byte(s.by_slot);
  out.number(s.tensors.size());
  for (const Signature::Tensor& t : s.tensors) {
    out.number(t.uid);
    out.number(t.storage);
    out.signed_number(t.offset);
  }
  out.number(s.values.size());
  for (const Signature::Value& v : s.values) {
    out.number(v.uid);
    out.byte(static_cast<uint8_t>(v.dtype));
    out.number(v.numbers.size());
    for (const uint32_t number : v.numbers) out.number(number);
  }
  out.number(s.numbers.size());
  for (const Scalar& number : s.numbers) out.scalar(number);
}

Signature read_signature(ByteReader& in) {
  Signature s;
  s.by_slot = in.boolean();
  for (size_t n = in.count(); n > 0; --n) {
    Signature::Tensor t{.uid = in.number(), .storage = in.below(kNone, "storage"), .offset = 0};
    t.offset = in.signed_number();
    s.tensors.push_back(t);
  }
  for (size_t n = in.count(); n > 0; --n) {
    Signature::Value v{
        .uid = in.number(), .dtype = static_cast<DType>(in.below(kNumDTypes, "dtype")), .numbers = {}};
    for (size_t k = in.count(); k > 0; --k) v.numbers.push_back(in.below(kNone, "number"));
    s.values.push_back(std::move(v));
  }
  for (size_t n = in.count(); n > 0; --n) s.numbers.push_back(in.scalar());
  return s;
}

std::vector<std::byte> bytes_of(const Signature& s) {
  ByteWriter out;
  write(out, s);
  return out.take();
}

/// The calls of a graph as they stand, its tables, what the caller brings, and what decides how calls are
/// fused and what runs them: options, and, where engines of vendors take part, their libraries' versions,
/// and, where they do or regions are tuned, the number of threads. The build and the instruction set are the
/// cache's to add.
expr::Key cache_key(const Graph& graph, const Signature& signature, const PlanOptions& options) {
  expr::Mixer mixer;
  mixer.add(kForm);
  mixer.add(uint64_t{graph.storages.size()});
  for (const Storage& s : graph.storages) {
    mixer.add(s.nbytes);
    mixer.add(tenon::to_string(s.device));
    mixer.add(uint64_t{s.is_input} | uint64_t{s.is_output} << 1);
  }
  mixer.add(uint64_t{graph.numbers.size()});
  for (const Scalar::Kind kind : graph.numbers) mixer.add(static_cast<uint64_t>(kind));
  mixer.add(uint64_t{graph.nodes.size()});
  for (const Node& node : graph.nodes) {
    mixer.add(key_of_call(graph, node));
    mixer.add(uint64_t{node.call});
  }
  for (const std::byte b : bytes_of(signature)) mixer.add(static_cast<uint64_t>(b));
  mixer.add(uint64_t{options.fuse} | uint64_t{options.rows} << 1 | uint64_t{options.engines.relaxed} << 2 |
            uint64_t{options.single_calls} << 3 | static_cast<uint64_t>(options.position) << 4 |
            uint64_t{options.tune_ms > 0} << 8);
  mixer.add(uint64_t{options.engines.excluded.size()});
  for (const std::string& name : options.engines.excluded) mixer.add(name);
  if (options.engines.relaxed || options.tune_ms > 0) mixer.add(static_cast<uint64_t>(num_threads()));
  if (options.tune_ms > 0) mixer.add(uint64_t{kHost.makes_machine_code()});
  if (!options.engines.relaxed) return mixer.take();
  for (const Engine& engine : kHostEngines) {
    if (engine.version) mixer.add(engine.version());
  }
  return mixer.take();
}

/// For people who look at the cache: "mul, add, relu: 8 calls in 1 step".
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

/// A graph that keeps all rules and has the calls of the one that is asked for, each once, on the same
/// storages and numbers computes the same. Its calls get their lines.
void check_same(Graph& read, FusionReport& report, const Graph& asked) {
  const auto same = [](const Storage& s, const Storage& t) {
    return s.nbytes == t.nbytes && s.device == t.device && s.is_input == t.is_input &&
           s.is_output == t.is_output;
  };
  require(read.numbers == asked.numbers && std::ranges::equal(read.storages, asked.storages, same),
          "its storages or numbers are not those of the program");
  std::vector<const Node*> by_call;
  size_t left = 0;
  const std::vector<bool> live = live_nodes(asked);
  for (size_t i = 0; i < live.size(); ++i) {
    const Node& node = asked.nodes[i];
    if (!live[i]) continue;
    by_call.resize(std::max<size_t>(by_call.size(), node.call + 1));
    by_call[node.call] = &node;
    ++left;
  }
  for (auto& call : report.left) {
    if (call.call < by_call.size() && by_call[call.call]) call.line = by_call[call.call]->line;
  }
  each_call(read, [&](Node& call) {
    require(call.call < by_call.size(), "it has other calls than the program");
    const Node* const wanted = std::exchange(by_call[call.call], nullptr);
    require(wanted && call.op == wanted->op && key_of_call(read, call) == key_of_call(asked, *wanted),
            "it has other calls than the program");
    call.line = wanted->line;
    --left;
  });
  require(left == 0, "it has not as many calls as the program");
}

}  // namespace

void Plan::write(ByteWriter& out) const {
  out.fixed(report_.key.high);
  out.fixed(report_.key.low);
  out.byte(static_cast<uint8_t>(report_.position));
  out.number(calls_.size());
  for (const Node* const call : calls_) out.number(call->call);
  out.number(report_.fusions.size());
  for (const FusionReport::Fusion& fusion : report_.fusions) {
    out.text(fusion.engine);
    out.number(fusion.refused.size());
    for (const std::string& why : fusion.refused) out.text(why);
    out.number(fusion.trials.size());
    for (const Trial& trial : fusion.trials) {
      out.text(trial.name);
      out.real(trial.ns);
      out.text(trial.reason);
    }
  }
  out.number(report_.left.size());
  for (const FusionReport::Left& left : report_.left) {
    out.number(left.call);
    out.text(left.reason);
  }
  graph::write(out, signature_);
  for (const std::byte b : serialize(graph_)) out.byte(static_cast<uint8_t>(b));
}

Plan::Fused Plan::read_fused(ByteReader& in) {
  FusionReport report;
  report.key.high = in.fixed();
  report.key.low = in.fixed();
  report.position = kMatcherPositions[in.below(std::size(kMatcherPositions), "position")];
  const auto call = [&] { return in.below(kNone, "call"); };
  std::vector<uint32_t> calls;
  for (size_t n = in.count(); n > 0; --n) calls.push_back(call());
  std::vector<FusionReport::Fusion> described;
  for (size_t n = in.count(); n > 0; --n) {
    described.emplace_back().engine = in.text();
    for (size_t k = in.count(); k > 0; --k) described.back().refused.push_back(in.text());
    for (size_t k = in.count(); k > 0; --k) {
      Trial& trial = described.back().trials.emplace_back();
      trial.name = in.text();
      trial.ns = in.real();
      trial.reason = in.text();
    }
  }
  std::vector<std::pair<uint32_t, std::string>> left;
  for (size_t n = in.count(); n > 0; --n) {
    left.emplace_back().first = call();
    left.back().second = in.text();
  }
  Signature s = read_signature(in);
  Graph graph = deserialize(in.rest());
  std::map<uint32_t, OperatorHandle> operators;
  size_t next = 0;
  each_call(graph, [&](Node& node) {
    require(next < calls.size(), "it has more calls than numbers of calls");
    node.call = calls[next++];
    if (!left.empty()) operators.emplace(node.call, node.op);
  });
  require(next == calls.size(), "it has fewer calls than numbers of calls");
  for (auto& [number, reason] : left) {
    const auto op = operators.find(number);
    require(op != operators.end(), "it has not all calls that are described");
    report.left.push_back({op->second, {}, std::move(reason), number});
  }
  const bool fits =
      s.numbers.size() == (s.by_slot ? 0 : graph.numbers.size()) &&
      std::ranges::all_of(s.tensors, [&](const auto& t) { return t.storage < graph.storages.size(); }) &&
      std::ranges::all_of(s.values, [&](const auto& v) {
        return std::ranges::all_of(v.numbers, [&](uint32_t number) { return number < graph.numbers.size(); });
      });
  require(fits, "the plan's parts do not fit each other");
  describe(graph, report);
  require(report.fusions.size() == described.size(), "it has not as many regions as are described");
  for (size_t i = 0; i < described.size(); ++i) {
    report.fusions[i].engine = std::move(described[i].engine);
    report.fusions[i].refused = std::move(described[i].refused);
    report.fusions[i].trials = std::move(described[i].trials);
  }
  return {std::move(graph), std::move(s), std::move(report)};
}

std::shared_ptr<const Plan> Plan::read(ByteReader& in) {
  Fused fused = read_fused(in);
  require(!fused.signature.by_slot, "it is the plan of a recorded program");
  // Whether bits may differ from eager's was asked when the plan was made.
  return std::shared_ptr<const Plan>(new Plan(std::move(fused), {.relaxed = true}, true));
}

std::shared_ptr<const Plan> Plan::find_or_make(Graph graph, Signature signature, const PlanOptions& options) {
  cache::PlanCache& cache = cache::PlanCache::get();
  expr::Key key;
  if (cache.is_on()) {
    key = cache_key(graph, signature, options);
    if (const std::vector<std::byte> bytes = cache.find(key); !bytes.empty()) {
      try {
        ByteReader in(bytes);
        Fused fused = read_fused(in);
        check_same(fused.graph, fused.report, graph);
        require(bytes_of(fused.signature) == bytes_of(signature), "it has another signature");
        fused.signature = signature;
        std::shared_ptr<const Plan> plan(new Plan(std::move(fused), options.engines, true));
        cache.count_loaded();
        return plan;
      } catch (const std::exception& e) {
        cache.reject(e.what());
      }
    }
  }
  cache.count_planned();
  auto plan = std::make_shared<const Plan>(std::move(graph), std::move(signature), options);
  if (was_tuned(plan->report())) cache.count_tuned();
  if (cache.is_on() && plan->lasts_) {
    cache.put(key, [plan] {
      ByteWriter out;
      plan->write(out);
      return cache::PlanCache::File{about(plan->graph_), out.take()};
    });
  }
  return plan;
}

}  // namespace tenon::graph
