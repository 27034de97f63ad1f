#include "backends/cpu/onednn/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/onednn/region_call.h"
#include "backends/cpu/region/composed.h"
#include "backends/cpu/region/cost.h"
#include "backends/cpu/region/operands.h"
#include "tenon/core/error.h"
#include "tenon/core/parallel.h"
#include "tenon/core/strict.h"
#include "tenon/graph/fuse/region_parts.h"

namespace tenon::cpu::onednn {
namespace {

using Arguments = graph::RegionProgram::Arguments;

std::shared_ptr<const Primitive> primitive_of(Description description, std::string& problem) {
  description.threads = OpenMpThreads().count();
  return Primitive::find(description, problem);
}

class Program final : public graph::RegionProgram {
 public:
  Program(const graph::Graph& g, const graph::Node& node, RegionCall call,
          std::shared_ptr<const Primitive> primitive)
      : call_(std::move(call)),
        primitive_(std::move(primitive)),
        operands_(g, node),
        numbers_(g, *node.region),
        composed_(compose(g, node)) {
    const graph::Geometry& result = g.geometry(call_.result.geometry);
    sizes_ = result.sizes;
    const std::span<const graph::Def> defs = g.defs(node);
    for (uint32_t i = 0; i < defs.size(); ++i) {
      if (defs[i].value == call_.result.value) stored_ = i;
    }
    if (call_.rest.empty()) return;
    const graph::RegionPart part = graph::rest_of_epilogue(g, node, call_.result, call_.rest);
    rest_ = std::make_unique<const PartLoop>(g, node, part, sizes_, node.region->over);
    rest_outputs_ = part.outputs;
  }

  void run(const Arguments& arguments, bool& clobbered_inputs) const override {
    const auto is_one = [&](const Number& n) { return n.value(arguments.numbers) == 1; };
    if (is_strict() || in_forked_child() || !std::ranges::all_of(call_.ones, is_one))
      return composed_->run(arguments, clobbered_inputs);
    const std::vector<uint64_t> numbers = numbers_.values(arguments.numbers);
    const OpenMpThreads threads;
    const std::shared_ptr<const Primitive> primitive = primitive_for(threads.count());
    const Tensor result =
        stored_ == graph::kNone ? make_empty(sizes_, DType::Float32) : arguments.defs[stored_];
    std::vector<Tensor> held;
    SmallVector<float, 8> scalars(call_.post_ops.size());
    const auto operand = [&](uint32_t i) {
      return held.emplace_back(operands_.whole(i, arguments, numbers)).data_ptr();
    };
    const auto address = [&](const Source& from, float* scalar) -> void* {
      switch (from.kind) {
        case Source::Kind::Operand:
          return operand(from.index);
        case Source::Kind::Use:
          return arguments.uses[from.index].data_ptr();
        case Source::Kind::Number:
          *scalar = static_cast<float>(from.number.value(arguments.numbers));
          return scalar;
        case Source::Kind::None:
          break;
      }
      return nullptr;
    };
    SmallVector<void*, 8> post_ops;
    for (size_t i = 0; i < call_.post_ops.size(); ++i)
      post_ops.push_back(address(call_.post_ops[i], &scalars[i]));
    float unused = 0;
    primitive->run({.source = operand(call_.source),
                    .weights = operand(call_.weights),
                    .bias = address(call_.bias, &unused),
                    .result = result.data_ptr(),
                    .post_ops = {post_ops.data(), post_ops.size()}});
    if (!rest_) return;
    std::vector<Tensor> outputs;
    for (const uint32_t def : rest_outputs_) outputs.push_back(arguments.defs[def]);
    rest_->run(outputs, arguments.uses, result, numbers, 0, sizes_[0]);
  }

 private:
  /// The one that was planned, unless the number of threads has changed since.
  std::shared_ptr<const Primitive> primitive_for(int threads) const {
    if (primitive_->description().threads == threads) return primitive_;
    std::string problem;
    std::shared_ptr<const Primitive> other = primitive_of(call_.description, problem);
    return other ? other : primitive_;
  }

  RegionCall call_;
  std::shared_ptr<const Primitive> primitive_;
  AnchorOperands operands_;
  SlotNumbers numbers_;
  std::unique_ptr<const graph::RegionProgram> composed_;  // where oneDNN may not run, or other factors come
  Dims sizes_;
  uint32_t stored_ = graph::kNone;  // the def that oneDNN stores; kNone: the rest alone reads its result
  std::unique_ptr<const PartLoop> rest_;
  std::vector<uint32_t> rest_outputs_;
};

}  // namespace

std::string refusal(const graph::Graph& g, const graph::Node& node) {
  if (std::string why = composed_refusal(g, node); !why.empty()) return why;
  if (!library().problem.empty()) return library().problem;
  const RegionCall call = call_of(g, node);
  if (!call.refusal.empty()) return call.refusal;
  if (call.post_ops.empty() && call.bias.kind == Source::Kind::None)
    return "oneDNN computes nothing of what follows together with it";
  std::string problem;
  primitive_of(call.description, problem);
  return problem;
}

std::string version() {
  if (!library().problem.empty()) return library().problem;
  const Version& v = *library().api.version();
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
}

graph::RegionCost cost_of(const graph::Graph& g, const graph::Node& node) {
  const RegionCall call = call_of(g, node);
  graph::RegionCost cost = cost_in_one_call(g, node, !call.rest.empty());
  cost.together -= call.saved;
  return cost;
}

std::unique_ptr<const graph::RegionProgram> build(const graph::Graph& g, const graph::Node& node) {
  RegionCall call = call_of(g, node);
  std::string problem;
  std::shared_ptr<const Primitive> primitive = primitive_of(call.description, problem);
  TENON_CHECK(primitive, Internal, "oneDNN: " + problem);
  return std::make_unique<const Program>(g, node, std::move(call), std::move(primitive));
}

}  // namespace tenon::cpu::onednn
