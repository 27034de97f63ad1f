// Machine: runs a graph on memory of its own, node by node: calls as eager operators, regions by their
// expressions, anchors between their parts. Says which bytes a graph leaves, for tests of what passes do.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/graph/engine/engine.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/region.h"
#include "tenon/iter/fused_kernel.h"
#include "tenon/iter/lower.h"

namespace tenon::graph::testing {

inline Tensor view(tenon::Storage storage, const Geometry& g) {
  auto impl = TensorImpl::make(std::move(storage), g.dtype, g.sizes, g.strides, g.offset);
  impl->set_wrapped_number(g.wrapped_number);
  return Tensor(std::move(impl));
}

inline tenon::Storage copy_of(const tenon::Storage& from) {
  tenon::Storage copy = tenon::Storage::allocate(from.nbytes());
  std::memcpy(reinterpret_cast<void*>(copy.address()), reinterpret_cast<const void*>(from.address()),
              from.nbytes());
  return copy;
}

class Machine {
 public:
  /// `inputs` has the bytes of the storages that are inputs; the others are poisoned.
  /// `engine`: regions around anchors run by the engine that takes them.
  Machine(const Graph& graph, std::vector<tenon::Storage> inputs, std::vector<Scalar> numbers,
          bool engine = false)
      : g_(graph), memory_(std::move(inputs)), numbers_(std::move(numbers)), engine_(engine) {
    memory_.resize(g_.storages.size());
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (memory_[i]) {
        memory_[i] = copy_of(memory_[i]);
      } else {
        memory_[i] = tenon::Storage::allocate(g_.storages[i].nbytes);
        std::memset(reinterpret_cast<void*>(memory_[i].address()), 0xA5, g_.storages[i].nbytes);
      }
    }
  }

  void run() {
    for (const Node& node : g_.nodes) {
      if (!node.region)
        call(node);
      else if (node.region->anchor_member == kNone)
        part(node, node.region->body, {}, outputs_of(node, node.region->body));
      else
        engine_ ? by_engine(node) : around_anchor(node);
    }
  }
  const tenon::Storage& memory(StorageId id) const { return memory_[id]; }

 private:
  Tensor tensor(const Use& u) const {
    return view(memory_[g_.values[u.value].storage], g_.geometry(u.geometry));
  }
  Tensor tensor(const Def& d) const {
    return view(memory_[g_.values[d.value].storage], g_.geometry(d.geometry));
  }

  /// `replaced`: of each tensor among the arguments, what is taken instead, if anything.
  std::vector<Tensor> results(const Node& node, std::span<const Tensor> replaced = {}) const {
    const schema::FunctionSchema& schema = node.op.schema();
    Stack stack;
    size_t written = g_.defs(node).size(), tensors = 0;
    for (const schema::Argument& a : schema.arguments) written -= a.is_write();
    const auto one = [&](const Use& u) {
      if (u.geometry == kNone) return Tensor();
      const size_t place = tensors++;
      if (place < replaced.size() && replaced[place].defined()) return replaced[place];
      return u.value == kNone ? tensor(g_.defs(node)[written++]) : tensor(u);
    };
    const std::span<const Argument> arguments = g_.arguments(node);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      switch (a.kind) {
        case Argument::Kind::None:
          stack.push_none();
          break;
        case Argument::Kind::Use:
          stack.push(one(g_.uses(a)[0]));
          break;
        case Argument::Kind::Uses: {
          std::vector<Tensor> list;
          for (const Use& u : g_.uses(a)) list.push_back(one(u));
          stack.push(std::move(list));
          break;
        }
        case Argument::Kind::Number: {
          const Scalar& v = numbers_[g_.numbers_of(a)[0]];
          if (schema.arguments[i].type.base == schema::BaseType::Float)
            stack.push(v.to_double());
          else if (schema.arguments[i].type.base == schema::BaseType::Int)
            stack.push(v.to_int());
          else
            stack.push(v);
          break;
        }
        case Argument::Kind::Numbers: {
          std::vector<Scalar> list;
          for (const uint32_t n : g_.numbers_of(a)) list.push_back(numbers_[n]);
          stack.push(std::move(list));
          break;
        }
        case Argument::Kind::Attribute:
          stack.push_copy(g_.attributes(), a.range.first);
          break;
      }
    }
    node.op.call_boxed(stack);
    std::vector<Tensor> made;
    for (size_t i = 0; i < stack.size(); ++i) made.push_back(stack.at<Tensor>(i));
    return made;
  }

  static void copy(const Tensor& to, const Tensor& from) {
    static const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full("aten::copy_");
    Stack stack;
    stack.push(to);
    stack.push(from);
    stack.push(false);
    op.call_boxed(stack);
  }

  void call(const Node& node) {
    const std::vector<Tensor> made = results(node);
    size_t next = 0;
    const std::vector<schema::Return>& returns = node.op.schema().returns;
    for (size_t i = 0; i < made.size(); ++i) {
      if (!returns[i].is_write()) copy(tensor(g_.defs(node)[next++]), made[i]);
    }
  }

  uint64_t number(const Region& region, uint32_t place) const {
    const NumberSource& source = region.numbers[place];
    const Node& member = region.members[source.member];
    Scalar value = source.from.constant;
    if (source.from.argument != kNone) {
      const Argument& a = g_.arguments(member)[source.from.argument];
      if (a.kind == Argument::Kind::Number) {
        value = numbers_[g_.numbers_of(a)[0]];
      } else {
        const Stack& attributes = g_.attributes();
        switch (attributes.tag(a.range.first)) {
          case CellTag::Int:
            value = attributes.at<int64_t>(a.range.first);
            break;
          case CellTag::Float:
            value = attributes.at<double>(a.range.first);
            break;
          case CellTag::Bool:
            value = attributes.at<bool>(a.range.first);
            break;
          default:
            value = attributes.at<Scalar>(a.range.first);
        }
      }
    }
    uint64_t slot = 0;
    put_number(slot, source.from.rule, value, "member");
    return slot;
  }

  std::vector<Tensor> outputs_of(const Node& node, const RegionPart& p) const {
    std::vector<Tensor> outputs;
    for (const uint32_t i : p.outputs) outputs.push_back(tensor(g_.defs(node)[i]));
    return outputs;
  }

  void part(const Node& node, const RegionPart& p, const Tensor& anchor,
            const std::vector<Tensor>& outputs) const {
    std::vector<Tensor> inputs;
    for (const uint32_t i : p.inputs)
      inputs.push_back(i == kAnchorResult ? anchor : tensor(g_.uses(node)[i]));
    std::vector<uint64_t> numbers;
    for (const uint32_t i : p.numbers) numbers.push_back(number(*node.region, i));
    expr::ExpressionPtr e = expr::make_expression(expr::parts_of(*p.expression));
    const bool over_rows =
        !node.region->over.empty() && (&p == &node.region->body || &p == &node.region->epilogue);
    if (over_rows)
      tenon::FusedKernel(std::move(e), node.region->over).run(outputs, inputs, numbers.data());
    else
      tenon::FusedKernel(std::move(e)).run(outputs, inputs, numbers.data());
  }

  void around_anchor(const Node& node) const {
    const Region& region = *node.region;
    const Node& anchor = region.members[region.anchor_member];
    std::vector<Tensor> operands;
    for (const Use& u : g_.uses(anchor)) {
      if (u.geometry == kNone) continue;
      const RegionPart& p = region.prologue[operands.size()];
      Tensor& operand = operands.emplace_back();
      if (p.empty()) continue;
      const Geometry& g = g_.geometry(u.geometry);
      operand = view(tenon::Storage::allocate(g_.storages[g_.values[u.value].storage].nbytes), g);
      part(node, p, {}, {operand});
    }
    const Tensor result = results(anchor, operands)[0];
    if (region.epilogue.empty())
      copy(tensor(g_.defs(node)[0]), result);
    else
      part(node, region.epilogue, result, outputs_of(node, region.epilogue));
  }

  void by_engine(const Node& node) const {
    std::vector<Tensor> uses, defs;
    for (const Use& u : g_.uses(node)) uses.push_back(tensor(u));
    for (const Def& d : g_.defs(node)) defs.push_back(tensor(d));
    bool clobbered_inputs = false;
    engine_for(g_, node)->build(g_, node)->run({uses, defs, numbers_}, clobbered_inputs);
  }

  const Graph& g_;
  std::vector<tenon::Storage> memory_;
  std::vector<Scalar> numbers_;
  bool engine_;
};

}  // namespace tenon::graph::testing
