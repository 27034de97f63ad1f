#include "tenon/graph/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/graph/engine/tuner.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"

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
  remove_dead(graph_);
  graph_.renumber();
  report_.key = key_of(graph_);
  if (options.fuse) {
    const std::unique_ptr<EngineTuner> tuner = make_tuner(options.engines, options.tune_ms, device_);
    report_ = graph::fuse(graph_, {.position = options.position,
                                   .tuner = tuner.get(),
                                   .rows = options.rows,
                                   .dump = options.dump,
                                   .relaxed = options.engines.relaxed,
                                   .single_calls = true});
    lasts_ = tuner->is_lasting();
  }
  finish(options.engines);
}

Plan::Plan(Graph fused, Signature signature, const expr::Key& key)
    : graph_(std::move(fused)), signature_(std::move(signature)) {
  find_device();
  report_.key = key;
  // Whether bits may differ from eager's was asked when the plan was made.
  finish({.relaxed = true});
  describe(graph_, report_);
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

void Plan::finish(const EngineChoice& choice) {
  for (const Node& node : graph_.nodes) {
    const bool anchored = node.region && node.region->anchor_member != kNone;
    add_step(node, anchored ? &engine_of(graph_, node, choice) : nullptr);
  }
  place_temporaries();
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
  for (const Step& step : steps_) {
    const bool loop = step.loop && !step.loop->is_over_rows();
    const bool call = step.call && step.call->is_pointwise();
    elementwise.push_back((loop || call) && graph_.defs(graph_.nodes[elementwise.size()]).size() == 1);
  }
  aliases_ = Aliases(graph_, signature_, tensor_places_, elementwise);
}

void Plan::add_step(const Node& node, const Engine* engine) {
  Step& step = steps_.emplace_back();
  if (node.region && node.region->anchor_member == kNone) {
    step.name = node.region->name;
    step.loop = std::make_unique<const LoopStep>(graph_, node);
    if (const std::string why = step.loop->refusal(); !why.empty())
      throw_error(ErrorKind::NotImplemented, fmt::format("plan: {}: {}", step.name, why));
    return;
  }
  const auto add = [&](Range& range, auto operands) {
    range.first = static_cast<uint32_t>(shells_.size());
    range.count = static_cast<uint32_t>(operands.size());
    for (const auto& o : operands)
      shells_.push_back({o.value == kNone ? kNone : graph_.values[o.value].storage, o.geometry});
  };
  add(step.uses, graph_.uses(node));
  add(step.defs, graph_.defs(node));
  if (node.region) {
    step.name = node.region->name;
    step.engine = engine->name;
    step.region = engine->build(graph_, node);
    return;
  }
  step.name = node.op.full_name();
  step.call = std::make_unique<const CallStep>(graph_, node);
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

void Plan::place_temporaries() {
  struct Life {
    size_t first = Plan::kNowhere, last = 0;
  };
  std::vector<Life> lives(graph_.storages.size());
  for (size_t s = 0; s < graph_.nodes.size(); ++s) {
    const auto touch = [&](ValueId value) {
      if (value == kNone) return;
      Life& life = lives[graph_.values[value].storage];
      life.first = std::min(life.first, s);
      life.last = s;
    };
    for (const Use& u : graph_.uses(graph_.nodes[s])) touch(u.value);
    for (const Def& d : graph_.defs(graph_.nodes[s])) touch(d.value);
  }
  for (const Signature::Tensor& t : signature_.tensors) lives[t.storage] = {};
  Workspace workspace;
  offsets_.assign(lives.size(), kNowhere);
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first != kNowhere)
      offsets_[i] = workspace.place(graph_.storages[i].nbytes, lives[i].first, lives[i].last);
  }
  workspace_size_ = workspace.size();
}

std::vector<std::string> Plan::allocating_steps() const {
  std::vector<std::string> names;
  for (const Step& step : steps_) {
    if (step.loop && step.loop->is_over_rows()) names.push_back(step.name + ": state of reductions");
    if (step.region) names.push_back(step.name + ": tensors of blocks");
    if (step.call) names.push_back(step.name + ": an operator by itself");
  }
  return names;
}

}  // namespace tenon::graph
