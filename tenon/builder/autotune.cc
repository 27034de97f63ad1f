// Which of a graph's plans is the fastest, measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tenon/builder/graph.h"
#include "tenon/builder/lowering.h"
#include "tenon/core/error.h"
#include "tenon/core/tensor.h"
#include "tenon/core/thread_state.h"
#include "tenon/graph/engine/trial_memory.h"
#include "tenon/graph/text/text.h"

namespace tenon::builder {
namespace {

/// Memory for an output, so that a caller's is not written.
class ScratchOutput {
 public:
  ScratchOutput(const TensorAttributes& t, Device device)
      : sizes_(t.dim()), strides_(t.stride()), dtype_(*t.data_type()) {
    const Extent reached = extent(sizes_, strides_, "autotune");
    first_ = -reached.low;
    // An empty one has an address, too.
    const auto count = static_cast<size_t>(std::max<int64_t>(reached.high - reached.low, 1));
    storage_ = Storage::allocate(count * item_size(dtype_), device);
  }

  Address address() const { return storage_.address() + static_cast<Address>(first_) * item_size(dtype_); }
  void clear() { raw().fill_(0xA5); }
  std::vector<std::byte> bytes() const {
    const tenon::Tensor host = raw().to(kCPU);
    const auto* const at = static_cast<const std::byte*>(host.data_ptr());
    return {at, at + host.nbytes()};
  }
  std::vector<double> numbers() const {
    const tenon::Tensor own(TensorImpl::make(storage_, dtype_, sizes_, strides_, first_));
    return graph::as_doubles(own.to(kCPU));
  }
  DType dtype() const noexcept { return dtype_; }

 private:
  tenon::Tensor raw() const {
    return tenon::Tensor(TensorImpl::make(storage_, DType::UInt8, {static_cast<int64_t>(storage_.nbytes())}));
  }

  Dims sizes_, strides_;
  DType dtype_;
  int64_t first_ = 0;
  Storage storage_;
};

/// Of relaxed plans, whose products and halves are rounded otherwise than eager's: as close as the last
/// places of their dtype, for the largest numbers of the output.
bool is_close(const std::vector<double>& wanted, const std::vector<double>& got, DType dtype) {
  const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
  double largest = 0;
  for (const double v : wanted) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  const double bound = (half ? 0x1p-6 : 0x1p-12) * (1 + largest);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool same = wanted[i] == got[i] || (std::isnan(wanted[i]) && std::isnan(got[i]));
    if (!same && !(std::abs(wanted[i] - got[i]) <= bound)) return false;
  }
  return true;
}

}  // namespace

/// The addresses of a call but for its outputs, and what the first plan has computed.
class Graph::Trials {
 public:
  Trials(const Graph& g, std::unordered_map<uint64_t, Address> pack, std::span<std::byte> workspace,
         Stream stream)
      : g_(g), pack_(std::move(pack)), workspace_(workspace), stream_(stream) {
    for (auto& [uid, address] : pack_) {
      const TensorAttributes* const t = g.find_tensor(uid);
      if (t && t->is_output()) address = outputs_.emplace_back(*t, g.device()).address();
    }
  }

  /// Why a plan cannot be taken; empty if it can.
  std::string verdict(const Candidate& c) {
    if (c.plan->workspace_size() > workspace_.size())
      return fmt::format("it needs a workspace of {} bytes", c.plan->workspace_size());
    for (ScratchOutput& out : outputs_) out.clear();
    try {
      runner(c).run();
    } catch (const std::exception& e) {
      return e.what();
    }
    const bool first = wanted_.empty() && numbers_.empty();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (first) {
        wanted_.push_back(outputs_[i].bytes());
        numbers_.push_back(outputs_[i].numbers());
      } else if (c.options.engines.relaxed
                     ? !is_close(numbers_[i], outputs_[i].numbers(), outputs_[i].dtype())
                     : outputs_[i].bytes() != wanted_[i]) {
        return "wrong: it computes something else than " + reference_;
      }
    }
    if (first) reference_ = c.name;
    return {};
  }
  graph::Runner runner(const Candidate& c) const {
    return {.run = [this, plan = c.plan, sorted = g_.sorted(*c.plan, pack_)] {
      plan->execute(sorted, workspace_, stream_);
      stream_.synchronize();
    }};
  }

 private:
  const Graph& g_;
  std::unordered_map<uint64_t, Address> pack_;
  std::span<std::byte> workspace_;
  Stream stream_;
  std::vector<ScratchOutput> outputs_;
  std::vector<std::vector<std::byte>> wanted_;
  std::vector<std::vector<double>> numbers_;
  std::string reference_;
};

size_t Graph::autotune_workspace_size(const char* what) const {
  need(Stage::Built, what);
  size_t most = 0;
  for (const Candidate& c : candidates_) most = c.plan ? std::max(most, c.plan->workspace_size()) : most;
  return most;
}

std::vector<graph::Trial> Graph::autotune(const std::unordered_map<uint64_t, Address>& variant_pack,
                                          std::span<std::byte> workspace, double budget_ms,
                                          const Handle* handle) {
  need(Stage::Built, "autotune");
  (void)sorted(*plan(), variant_pack);  // what is missing is no plan's fault
  const graph::Budget budget(budget_ms * 1e6);
  const StreamGuard on_stream(stream(handle));
  const ThreadStateGuard<&ThreadState::excluded> at_once{DispatchKeySet(Functionality::Record) |
                                                         kAutogradKeys};
  Trials trials(*this, variant_pack, workspace, stream(handle));
  // Plans with eager's bits come first, so that the others have something to be held against; else in order.
  std::vector<size_t> built;
  for (const bool relaxed : {false, true}) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].plan && candidates_[i].options.engines.relaxed == relaxed) built.push_back(i);
    }
  }
  std::vector<graph::Trial> told;
  std::vector<graph::Runner> runners;
  const auto enter = [&](size_t i) {
    const Candidate& c = candidates_[i];
    told.push_back({.name = c.name, .reason = trials.verdict(c)});
    runners.push_back(trials.runner(c));
  };
  for (const size_t i : built) enter(i);
  if (std::ranges::all_of(told, [](const graph::Trial& t) { return !t.reason.empty(); }))
    throw_error(ErrorKind::Runtime, "autotune: no plan ran: " + told[0].reason);
  size_t winner = graph::race(runners, told, budget);
  // The regions of the best one, each by what is the fastest for it.
  if (const Candidate& best = candidates_[built[winner]];
      device().is_cpu() && best.options.fuse && best.options.tune_ms == 0 &&
      lowered_->graph.nodes.size() > 0 && budget.left() > 0) {
    Candidate tuned{.name = best.name, .engine = best.engine, .options = best.options};
    tuned.name.insert(tuned.name.size() - 1, ", tuned=1");
    tuned.options.tune_ms = budget.left() / 2e6;
    // What an earlier call or an earlier process has tuned is there already.
    const auto is_same = [&](const Candidate& c) {
      return c.plan && graph::to_string(c.plan->graph()) == graph::to_string(tuned.plan->graph());
    };
    if (try_build(tuned) && std::ranges::none_of(candidates_, is_same)) {
      built.push_back(candidates_.size());
      candidates_.push_back(std::move(tuned));
      enter(built.back());
      if (told.back().reason.empty()) {
        std::vector<graph::Trial> last{told[winner], told.back()};
        last[0].reason.clear();
        const graph::Runner both[] = {runners[winner], runners.back()};
        const size_t better = graph::race(both, last, budget);
        told[winner] = last[0];
        told.back() = last[1];
        if (better == 1) winner = told.size() - 1;
      }
    }
  }
  // The fastest first, then those that were slower, then what was not built or not timed.
  std::vector<double> times(candidates_.size(), std::numeric_limits<double>::infinity());
  for (size_t k = 0; k < built.size(); ++k) {
    if (told[k].ns > 0) times[built[k]] = k == winner ? 0 : told[k].ns;
  }
  std::vector<size_t> order(candidates_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return times[i]; });
  std::vector<Candidate> sorted;
  for (const size_t i : order) sorted.push_back(std::move(candidates_[i]));
  candidates_ = std::move(sorted);
  chosen_ = 0;
  return told;
}

}  // namespace tenon::builder
