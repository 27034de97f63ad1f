#include "tenon/record/lift.h"

#include <algorithm>
#include <utility>

namespace tenon::record {

std::vector<bool> wanted_slots(const Segment& segment) {
  std::vector<bool> wanted(segment.slots.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const SlotState& slot = segment.slots[i];
    wanted[i] = slot.is_written && (slot.is_input || slot.storage.use_count() > 0);
  }
  return wanted;
}

namespace {

// Which calls have to run, the last first.
std::vector<bool> needed_calls(const Segment& segment, std::vector<bool> needed) {
  std::vector<bool> calls(segment.calls.size());
  for (size_t c = segment.calls.size(); c-- > 0;) {
    const TrieNode& node = *segment.calls[c].node;
    bool runs = node.info->op.traits().value_errors;
    for (const Output& o : node.outputs) runs = runs || needed[o.slot];
    for (const Operand& o : node.operands) runs = runs || (o.written && o.slot != kNoSlot && needed[o.slot]);
    if (!runs) continue;
    calls[c] = true;
    for (const Output& o : node.outputs) needed[o.slot] = true;
    for (const Operand& o : node.operands) {
      if (o.slot != kNoSlot) needed[o.slot] = true;
    }
  }
  return calls;
}

// How far a tensor reaches before the place that its offset counts from, in bytes.
int64_t reaches_before(const Geometry& g) noexcept {
  int64_t low = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return 0;
    if (g.strides[d] < 0) low += (g.sizes[d] - 1) * g.strides[d];
  }
  return low < 0 ? -low * static_cast<int64_t>(item_size(g.dtype)) : 0;
}

std::vector<size_t> moves(const Segment& segment) {
  std::vector<size_t> moved(segment.slots.size());
  for (const RecordedCall& call : segment.calls) {
    for (const Operand& o : call.node->operands) {
      const int64_t before = o.slot == kNoSlot ? 0 : reaches_before(o.geometry);
      if (before > 0)
        moved[o.slot] = std::max(moved[o.slot], (static_cast<size_t>(before) + 15) & ~size_t{15});
    }
  }
  return moved;
}

class Lift {
 public:
  Lift(const Segment& segment, const std::vector<bool>& wanted) : segment_(segment), moved_(moves(segment)) {
    for (size_t i = 0; i < segment.slots.size(); ++i) {
      const SlotState& slot = segment.slots[i];
      g_.add_storage({.nbytes = slot.storage.nbytes(), .is_input = slot.is_input, .is_output = wanted[i]});
      now_.push_back(slot.is_input ? g_.add_input_value(static_cast<uint32_t>(i)) : graph::kNone);
    }
    for (const Scalar& number : segment.numbers) g_.add_number(number.kind());
  }

  void add(uint32_t index) {
    const RecordedCall& call = segment_.calls[index];
    const TrieNode& node = *call.node;
    add_arguments(call);
    for (const Output& o : node.outputs) {
      define(o.slot, o.geometry, o.makes_storage ? graph::kNone : now_[o.slot]);
      // Somebody has to notice what it throws.
      if (node.info->op.traits().value_errors) g_.storages[o.slot].is_output = true;
    }
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const ArgumentSource& from = node.arguments[i];
      const Operand* const o = written_operand(node, from);
      if (o && node.info->op.traits().value_errors) g_.storages[o->slot].is_output = true;
      if (o) define(o->slot, o->geometry, overwritten(node, i, *o) ? graph::kNone : now_[o->slot]);
    }
    const graph::Node& added = g_.add_node(node.info->op, call.line);
    call_by_argument_.resize(added.arguments.first + added.arguments.count, index);
  }

  Lifted take() && { return {std::move(g_), std::move(call_by_argument_), std::move(moved_)}; }

 private:
  static const Operand* written_operand(const TrieNode& node, const ArgumentSource& from) {
    if (from.kind != ArgumentSource::Kind::Tensor) return nullptr;
    const Operand& o = node.operands[from.first];
    return o.written && o.slot != kNoSlot ? &o : nullptr;
  }

  // Whether argument i is written without being read.
  bool write_only(const TrieNode& node, size_t i) const {
    return node.info->schema->arguments[i].is_out || ((node.info->op.traits().writes_only >> i) & 1u) != 0;
  }
  // Whether nothing is left of the version before.
  bool overwritten(const TrieNode& node, size_t i, const Operand& o) const {
    // A call that fails leaves what was there.
    if (!write_only(node, i) || node.info->op.traits().value_errors) return false;
    const Geometry& g = o.geometry;
    return Dims(contiguous_strides(g.sizes)) == g.strides &&
           static_cast<size_t>(g.numel()) * item_size(g.dtype) == segment_.slots[o.slot].storage.nbytes();
  }

  graph::Use use(const TrieNode& node, size_t argument, const Operand& o) {
    if (o.slot == kNoSlot) return {};
    const graph::GeometryId geometry = this->geometry(o.slot, o.geometry);
    return {o.written && write_only(node, argument) ? graph::kNone : now_[o.slot], geometry};
  }
  graph::GeometryId geometry(uint32_t slot, Geometry g) {
    g.offset += static_cast<int64_t>(moved_[slot] / item_size(g.dtype));
    return g_.add_geometry(g);
  }
  void define(uint32_t slot, Geometry g, graph::ValueId previous) {
    g.wrapped_number = false;
    now_[slot] = g_.add_def(slot, geometry(slot, std::move(g)), previous);
  }

  void add_arguments(const RecordedCall& call) {
    const TrieNode& node = *call.node;
    uint32_t number = call.first_number;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const ArgumentSource& from = node.arguments[i];
      switch (from.kind) {
        case ArgumentSource::Kind::Attribute:
          if (from.tag == CellTag::None)
            g_.add_none();
          else
            g_.add_attribute(node.prototype, i);
          break;
        case ArgumentSource::Kind::Number:
          g_.add_number_use(number++);
          break;
        case ArgumentSource::Kind::Tensor: {
          const Operand& o = node.operands[from.first];
          if (o.slot == kNoSlot)
            g_.add_none();
          else
            g_.add_use(use(node, i, o));
          break;
        }
        case ArgumentSource::Kind::TensorList: {
          std::vector<graph::Use> uses;
          for (uint16_t k = 0; k < from.count; ++k)
            uses.push_back(use(node, i, node.operands[from.first + k]));
          g_.add_uses(uses);
          break;
        }
      }
    }
  }

  const Segment& segment_;
  graph::Graph g_;
  std::vector<graph::ValueId> now_;  // of slots
  std::vector<uint32_t> call_by_argument_;
  std::vector<size_t> moved_;
};

}  // namespace

Lifted lift(const Segment& segment, const std::vector<bool>& wanted) {
  const std::vector<bool> needed = needed_calls(segment, wanted);
  Lift lift(segment, wanted);
  for (uint32_t c = 0; c < segment.calls.size(); ++c) {
    if (needed[c]) lift.add(c);
  }
  return std::move(lift).take();
}

}  // namespace tenon::record
