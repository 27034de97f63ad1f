#include "tenon/graph/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/tuner.h"
#include "tenon/iter/lower.h"

namespace tenon::graph {
namespace {

size_t aligned(size_t n) { return (n + Plan::kAlignment - 1) / Plan::kAlignment * Plan::kAlignment; }

/// First fit by address among blocks that live at the same time.
class Workspace {
 public:
  size_t place(size_t nbytes, size_t first, size_t last) {
    const size_t size = aligned(std::max<size_t>(nbytes, 1));
    size_t at = 0;
    for (const Block& b : blocks_) {  // sorted by address
      const bool meets = b.first <= last && first <= b.last;
      if (meets && at < b.end && b.begin < at + size) at = b.end;
    }
    const Block block{at, at + size, first, last};
    blocks_.insert(std::ranges::upper_bound(blocks_, at, {}, &Block::begin), block);
    size_ = std::max(size_, block.end);
    return at;
  }
  size_t size() const noexcept { return size_; }

 private:
  struct Block {
    size_t begin, end;
    size_t first, last;  // steps
  };
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace

Plan::Plan(Graph graph, Signature signature, const PlanOptions& options)
    : graph_(std::move(graph)), signature_(std::move(signature)) {
  find_device();
  if (options.fuse) {
    fuse(options);
  } else {
    remove_dead(graph_);
    graph_.renumber();
    report_.key = key_of(graph_);
  }
  finish(options.engines);
}

Plan::Plan(Fused fused, const EngineChoice& choice, bool is_loaded)
    : graph_(std::move(fused.graph)),
      signature_(std::move(fused.signature)),
      is_loaded_(is_loaded),
      report_(std::move(fused.report)) {
  find_device();
  finish(choice);
}

void Plan::find_device() {
  if (!graph_.storages.empty()) device_ = graph_.storages[0].device;
  for (const Storage& s : graph_.storages) {
    TENON_CHECK(s.device == device_, NotImplemented,
                fmt::format("plan: it runs on one device, and tensors are on {} and {}",
                            tenon::to_string(device_), tenon::to_string(s.device)));
  }
  TENON_CHECK(!device_.is_meta(), NotImplemented, "plan: tensors of meta have no memory to run on");
}

void Plan::fuse(const PlanOptions& options) {
  const std::unique_ptr<EngineChooser> chooser = make_chooser(options.engines, options.tune_ms, device_);
  try {
    report_ = graph::fuse(graph_, {.position = options.position,
                                   .chooser = chooser.get(),
                                   .rows = options.rows,
                                   .dump = options.dump,
                                   .relaxed = options.engines.relaxed,
                                   .single_calls = options.single_calls});
    lasts_ = chooser->is_lasting() && !ran_out_of_time(report_);
  } catch (const std::exception&) {
    if (!signature_.by_slot) throw;
    // A fault of the fuser's or an engine's costs time and no results: the calls run one by one.
    std::vector<Node> calls;
    each_call(graph_, [&](Node& call) { calls.push_back(std::move(call)); });
    graph_.nodes = std::move(calls);
    graph_.renumber();
    lasts_ = false;
  }
}

void Plan::finish(const EngineChoice& choice) {
  size_t fusion = 0;  // one for each region of a graph that was fused
  for (const Node& node : graph_.nodes) {
    add_step(node, choice);
    if (!node.region || fusion == report_.fusions.size()) continue;
    // Machine code is made once it pays: until then, too, the report has the engine that makes it.
    const LoopStep* const loop = steps_.back().loop.get();
    if (loop && !find_engine(loop->engine())) report_.fusions[fusion].engine = loop->engine();
    ++fusion;
  }
  find_lives();
  saves_ = estimate_saving();
  if (signature_.by_slot) return;
  find_alignments();
  for (const auto& t : signature_.tensors) uids_.push_back(t.uid);
  for (const auto& v : signature_.values) uids_.push_back(v.uid);
  std::ranges::sort(uids_);
  const auto place_of = [&](uint64_t uid) {
    return static_cast<uint32_t>(std::ranges::lower_bound(uids_, uid) - uids_.begin());
  };
  for (const auto& t : signature_.tensors) tensor_places_.push_back(place_of(t.uid));
  for (const auto& v : signature_.values) value_places_.push_back(place_of(v.uid));
  std::vector<bool> elementwise;
  for (const Node& node : graph_.nodes) {
    const Step& step = steps_[elementwise.size()];
    const bool by_element = step.loop ? !step.loop->is_over_rows()
                                      : !step.region && pointwise_info_of(node.op.entry(), device_.backend);
    elementwise.push_back(by_element && graph_.defs(node).size() == 1);
  }
  aliases_ = Aliases(graph_, signature_, tensor_places_, elementwise);
}

void Plan::add_step(const Node& node, const EngineChoice& choice) {
  Step& step = steps_.emplace_back();
  step.first_call = static_cast<uint32_t>(calls_.size());
  if (node.region) {
    for (const Node& member : node.region->members) calls_.push_back(&member);
  } else {
    calls_.push_back(&node);
  }
  step.num_calls = static_cast<uint32_t>(calls_.size()) - step.first_call;
  step.name = node.region ? node.region->name : node.op.full_name();
  if (!node.region) {
    // Throws where the device has no kernel, and does not fall back.
    if (!device_.is_cpu())
      (void)detail::find_kernel(node.op.entry(), DispatchKeySet(Functionality::Dense, device_.backend));
    return;
  }
  try {
    add_region(step, node, choice);
  } catch (const std::exception& e) {
    if (!signature_.by_slot || is_loaded_) throw;
    const Node& last = node.region->members.back();
    report_.left.push_back({last.op, last.line, e.what(), last.call});
    lasts_ = false;
  }
}

void Plan::add_region(Step& step, const Node& node, const EngineChoice& choice) const {
  if (node.region->anchor_member != kNone) {
    const Engine& engine = engine_of(graph_, node, choice);
    step.engine = engine.name;
    step.region = engine.build(graph_, node);
    return;
  }
  auto loop = std::make_unique<const LoopStep>(graph_, node);
  if (const std::string why = loop->refusal(); !why.empty())
    throw_error(ErrorKind::NotImplemented, fmt::format("plan: {}: {}", step.name, why));
  step.takes_over.assign(loop->num_outputs(), kNone);
  step.loop = std::move(loop);
}

void Plan::find_alignments() {
  alignments_.assign(graph_.storages.size(), 1);
  const auto align = [&](ValueId value, GeometryId geometry) {
    if (value == kNone || geometry == kNone) return;
    const DType dtype = graph_.geometry(geometry).dtype;
    size_t& alignment = alignments_[graph_.values[value].storage];
    if (has_arithmetic(dtype)) alignment = std::max(alignment, item_size(dtype_info(dtype).parts));
  };
  for (const Node& node : graph_.nodes) {
    for (const Use& u : graph_.uses(node)) align(u.value, u.geometry);
    for (const Def& d : graph_.defs(node)) align(d.value, d.geometry);
  }
}

void Plan::find_lives() {
  struct Life {
    size_t first = Plan::kNowhere, last = 0;
  };
  std::vector<Life> lives(graph_.storages.size());
  for (size_t s = 0; s < steps_.size(); ++s) {
    const auto touch = [&](ValueId value) {
      if (value == kNone) return;
      Life& life = lives[graph_.values[value].storage];
      life.first = std::min(life.first, s);
      life.last = s;
    };
    const auto touch_all = [&](const Node& node) {
      for (const Use& u : graph_.uses(node)) touch(u.value);
      for (const Def& d : graph_.defs(node)) touch(d.value);
    };
    touch_all(graph_.nodes[s]);
    if (!signature_.by_slot) continue;
    // Those that run one by one make what stays inside a region.
    for (uint32_t i = 0; i < steps_[s].num_calls; ++i) touch_all(*calls_[steps_[s].first_call + i]);
  }
  if (signature_.by_slot) {
    for (StorageId id = 0; id < lives.size(); ++id) {
      if (lives[id].first != kNowhere && !signature_.wanted[id])
        steps_[lives[id].last].last_uses.push_back(id);
    }
    for (Step& step : steps_) {
      if (step.loop) reuse_memory(step);
    }
    return;
  }
  for (const Signature::Tensor& t : signature_.tensors) lives[t.storage] = {};
  for (const auto& [id, storage] : signature_.constants) lives[id] = {};
  Workspace workspace;
  offsets_.assign(lives.size(), kNowhere);
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first != kNowhere)
      offsets_[i] = workspace.place(graph_.storages[i].nbytes, lives[i].first, lives[i].last);
  }
  workspace_size_ = workspace.size();
}

void Plan::reuse_memory(Step& step) {
  // Below, memory costs nothing.
  constexpr size_t kWorthIt = 4096;
  using Place = LoopStep::Place;
  const std::span<const Place> places = step.loop->places();
  const auto count = [&](StorageId id) { return std::ranges::count(places, id, &Place::storage); };
  std::vector<StorageId> free;
  for (const StorageId id : step.last_uses) {
    if (!graph_.storages[id].is_input && count(id) == 1) free.push_back(id);
  }
  for (size_t i = 0; i < step.takes_over.size(); ++i) {
    const Place& output = places[i];
    // A value of a row is stored when it is known, and the row's operands may be read again.
    if (output.of_rows) continue;
    const Storage& made = graph_.storages[output.storage];
    if (made.is_input || made.nbytes < kWorthIt || count(output.storage) != 1) continue;
    for (const Place& input : places.subspan(step.takes_over.size())) {
      const auto found = std::ranges::find(free, input.storage);
      if (found == free.end() || input.geometry != output.geometry ||
          graph_.storages[input.storage].nbytes != made.nbytes)
        continue;
      step.takes_over[i] = input.storage;
      free.erase(found);
      break;
    }
  }
}

int64_t Plan::estimate_saving() const noexcept {
  if (!device_.is_cpu()) return static_cast<int64_t>(report_.fusions.size());
  // Of one core: nanoseconds of a call by itself and of recording one, bytes a nanosecond.
  constexpr int64_t kCall = 250, kRecording = 500, kBytes = 32;
  int64_t saved = -kRecording * static_cast<int64_t>(calls_.size());
  for (const FusionReport::Fusion& fusion : report_.fusions)
    saved += kCall * (static_cast<int64_t>(fusion.members.size()) - 1) +
             (fusion.bytes_apart - fusion.bytes) / kBytes;
  return saved;
}

std::vector<std::string> Plan::allocating_steps() const {
  std::vector<std::string> names;
  for (const Step& step : steps_) {
    if (step.loop && step.loop->is_over_rows()) names.push_back(step.name + ": state of reductions");
    if (step.region) names.push_back(step.name + ": tensors of blocks");
    if (!step.loop && !step.region) names.push_back(step.name + ": an operator by itself");
  }
  return names;
}

}  // namespace tenon::graph
