// Plans of graphs in the cache.
#include <algorithm>

#include "tenon/cache/plan_cache.h"
#include "tenon/core/error.h"
#include "tenon/graph/engine/tuner.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/plan/plan.h"
#include "tenon/graph/plan/plan_key.h"
#include "tenon/graph/text/bytes.h"

namespace tenon::graph {
namespace {

void add(expr::Mixer& mixer, const Signature& signature) {
  mixer.add(uint64_t{signature.tensors.size()});
  for (const Signature::Tensor& t : signature.tensors) {
    mixer.add(t.uid);
    mixer.add(uint64_t{t.storage});
    mixer.add(static_cast<uint64_t>(t.offset));
  }
  mixer.add(uint64_t{signature.values.size()});
  for (const Signature::Value& v : signature.values) {
    mixer.add(v.uid);
    mixer.add(static_cast<uint64_t>(v.dtype));
    mixer.add(uint64_t{v.numbers.size()});
    for (const uint32_t number : v.numbers) mixer.add(uint64_t{number});
  }
  mixer.add(uint64_t{signature.numbers.size()});
  for (const Scalar& n : signature.numbers) {
    mixer.add(static_cast<uint64_t>(n.kind()));
    mixer.add(n.is_integral() ? static_cast<uint64_t>(n.to_int()) : 0);
    mixer.add(std::bit_cast<uint64_t>(n.to_complex().real()));
    mixer.add(std::bit_cast<uint64_t>(n.to_complex().imag()));
  }
}

expr::Key key_of_signature(const Signature& signature) {
  expr::Mixer mixer;
  add(mixer, signature);
  return mixer.take();
}

/// Those of all calls as they stand, in an order of their own.
std::vector<expr::Key> calls_of(const Graph& graph) {
  std::vector<expr::Key> calls;
  each_call(graph, [&](const Node& call) { calls.push_back(key_of_call(graph, call)); });
  std::ranges::sort(calls);
  return calls;
}

/// Graphs that keep all rules, and have the same calls on the same storages, compute the same.
void check_same(const Graph& read, Graph asked) {
  remove_dead(asked);
  TENON_CHECK(same_tables(read, asked) && calls_of(read) == calls_of(asked), Value, "it is of another graph");
}

}  // namespace

expr::Key Plan::cache_key(const Graph& graph, const Signature& signature, const PlanOptions& options) {
  expr::Mixer mixer;
  mixer.add("graph");
  add_to_key(mixer, graph, options);
  add(mixer, signature);
  return mixer.take();
}

void Plan::keep(std::shared_ptr<const Plan> plan, const expr::Key& cache_key) {
  cache::PlanCache::get().put(cache_key, [plan = std::move(plan)] {
    ByteWriter out;
    plan->write(out);
    return cache::PlanCache::File{about(plan->graph_), out.take()};
  });
}

std::shared_ptr<const Plan> Plan::make(const Graph& graph, const Signature& signature,
                                       const PlanOptions& options) {
  cache::PlanCache& cache = cache::PlanCache::get();
  expr::Key key;
  if (cache.is_on()) {
    key = cache_key(graph, signature, options);
    if (const std::vector<std::byte> bytes = cache.find(key); !bytes.empty()) {
      try {
        ByteReader in(bytes);
        std::shared_ptr<const Plan> plan = read(in);
        check_same(plan->graph_, graph.copy());
        TENON_CHECK(key_of_signature(plan->signature_) == key_of_signature(signature), Value,
                    "it has another signature");
        cache.count_loaded();
        return plan;
      } catch (const std::exception& e) {
        cache.reject(e.what());
      }
    }
  }
  auto plan = std::make_shared<const Plan>(graph.copy(), signature, options);
  cache.count_planned();
  if (was_tuned(plan->report())) cache.count_tuned();
  if (cache.is_on() && plan->lasts_) keep(plan, key);
  return plan;
}

}  // namespace tenon::graph
