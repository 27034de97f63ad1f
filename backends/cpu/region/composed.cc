#include "backends/cpu/region/composed.h"

#include <algorithm>

#include "backends/cpu/region/cost.h"
#include "backends/cpu/region/operands.h"
#include "tenon/core/parallel.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/graph/engine/member_call.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

using Arguments = graph::RegionProgram::Arguments;

/// Work that another thread must bring.
constexpr int64_t kParallelWork = int64_t{1} << 20;

bool takes_numbers_one_by_one(const graph::Graph& g, const graph::Node& call) {
  const std::span<const graph::Argument> arguments = g.arguments(call);
  return std::none_of(arguments.begin(), arguments.end(),
                      [](const graph::Argument& a) { return a.kind == graph::Argument::Kind::Numbers; });
}

class Composed final : public graph::RegionProgram {
 public:
  Composed(const graph::Graph& g, const graph::Node& node)
      : anchor_(g, anchor_node(*node.region)),
        result_(result_of(g, *node.region)),
        kept_(kept_result(g, node)),
        blocks_(choose_blocks(g, node)),
        loop_(result_.sizes),
        numbers_(g, *node.region),
        operands_(g, node) {
    const graph::Region& region = *node.region;
    for (size_t i = 0; i < operands_.size(); ++i) has_rows_.push_back(operand_has_rows(g, region, i));
    if (const graph::RegionPart epilogue = epilogue_without(region, kept_); !epilogue.outputs.empty()) {
      epilogue_ = std::make_unique<const PartLoop>(g, node, epilogue, loop_, region.over);
      outputs_ = epilogue.outputs;
    }
    for (const graph::Def& d : g.defs(node)) {
      const graph::Value& value = g.values[d.value];
      in_place_ |= g.storages[value.storage].is_input || value.previous != graph::kNone;
      for (const graph::Use& u : g.uses(node))
        in_place_ |= u.value != graph::kNone && g.values[u.value].storage == value.storage;
    }
  }

  void run(const Arguments& arguments, bool& clobbered_inputs) const override {
    const std::vector<uint64_t> numbers = numbers_.values(arguments.numbers);
    const bool all = blocks_.at_once >= blocks_.rows;
    // Operands that are the same for all rows.
    std::vector<Tensor> operands(operands_.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands_[i].prologue || all || !has_rows_[i])
        operands[i] = operands_.whole(i, arguments, numbers);
    }
    clobbered_inputs = in_place_;
    if (blocks_.rows == 0) return;
    if (all) return block(arguments, numbers, operands, 0, num_rows());
    const int64_t count = (blocks_.rows + blocks_.at_once - 1) / blocks_.at_once;
    const auto some = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * blocks_.at_once;
        block(arguments, numbers, operands, first, std::min(first + blocks_.at_once, blocks_.rows));
      }
    };
    // Too few blocks for all threads: these divide what is in each.
    const bool few = count < num_threads() || blocks_.row_work * blocks_.at_once < kParallelWork / 4;
    parallel_for(0, count, few ? count : 1, some);
  }

 private:
  int64_t num_rows() const { return loop_.empty() ? 1 : loop_[0]; }

  void block(const Arguments& arguments, const std::vector<uint64_t>& numbers,
             const std::vector<Tensor>& whole, int64_t begin, int64_t end) const {
    const bool all = begin == 0 && end == num_rows();
    std::vector<Tensor> operands = whole;
    for (size_t i = 0; i < operands.size() && !all; ++i) {
      const AnchorOperands::Operand& o = operands_[i];
      if (!has_rows_[i]) continue;
      if (!o.prologue) {
        operands[i] = rows_of(whole[i], begin, end);
        continue;
      }
      Dims sizes = o.sizes;
      sizes[0] = end - begin;
      operands[i] = make_empty(sizes, o.dtype);
      o.prologue->run({&operands[i], 1}, arguments.uses, {}, numbers, begin, end);
    }
    const Tensor result = kept_ != graph::kNone ? slice(arguments.defs[kept_], begin, end) : made(begin, end);
    anchor_.run(operands, {&result, 1}, arguments.numbers);
    if (!epilogue_) {
      if (kept_ == graph::kNone) ops::copy_elements(slice(arguments.defs[0], begin, end), result, "composed");
      return;
    }
    std::vector<Tensor> outputs;
    for (const uint32_t def : outputs_) outputs.push_back(slice(arguments.defs[def], begin, end));
    epilogue_->run(outputs, arguments.uses, result, numbers, begin, end);
  }

  /// Memory for rows of the anchor's result, laid out as the anchor would.
  Tensor made(int64_t begin, int64_t end) const {
    Dims sizes = result_.sizes;
    if (!sizes.empty()) sizes[0] = end - begin;
    return make_empty_strided(sizes, result_.strides, result_.dtype);
  }

  /// Rows of what has as many as the result.
  Tensor slice(const Tensor& t, int64_t begin, int64_t end) const {
    return end - begin == num_rows() ? t : rows_of(t, begin, end);
  }

  graph::MemberCall anchor_;
  graph::Geometry result_;  // of the anchor
  uint32_t kept_;  // the def that is the anchor's result, and has its memory; kNone: it is a temporary
  Blocks blocks_;
  Dims loop_;
  SlotNumbers numbers_;
  AnchorOperands operands_;
  std::vector<bool> has_rows_;  // of each: cut with the rows of the result
  std::unique_ptr<const PartLoop> epilogue_;
  std::vector<uint32_t> outputs_;
  bool in_place_ = false;
};

}  // namespace

std::string composed_refusal(const graph::Graph& g, const graph::Node& node) {
  const graph::Region& region = *node.region;
  if (region.kind != graph::RegionKind::Matmul && region.kind != graph::RegionKind::Convolution)
    return "it runs regions around a product or a convolution, and this one has none";
  for (const graph::Use& u : g.uses(node)) {
    if (u.value != graph::kNone && !g.storages[g.values[u.value].storage].device.is_cpu())
      return "it runs on the host, and an operand is on another device";
  }
  const graph::Node& anchor = anchor_node(region);
  const std::string name = anchor.op.full_name();
  if (!Dispatcher::singleton().runs_builtin_code(anchor.op))
    return name + " has a kernel of a user's, which may not be called for some rows at a time";
  if (!takes_numbers_one_by_one(g, anchor)) return name + " takes a list of numbers";
  return {};
}

std::unique_ptr<const graph::RegionProgram> compose(const graph::Graph& g, const graph::Node& node) {
  graph::check_knobs(*node.region, {"rows"});
  return std::make_unique<const Composed>(g, node);
}

}  // namespace tenon::cpu
