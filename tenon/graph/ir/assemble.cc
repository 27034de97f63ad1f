#include <algorithm>

#include "tenon/graph/ir/program.h"

namespace tenon::graph {
namespace {

/// Which calls have to run.
std::vector<bool> needed_calls(const Program& program, KeepErrors keep) {
  std::vector<bool> needed, calls(program.calls.size());
  for (const Storage& s : program.storages) needed.push_back(s.is_output);
  for (size_t c = calls.size(); c-- > 0;) {
    const Call& call = *program.calls[c].call;
    bool runs = keep == KeepErrors::Yes && call.info->op.traits().value_errors;
    for (const Output& o : call.outputs) runs = runs || needed[o.storage];
    for (const Operand& o : call.operands) runs = runs || (o.written && needed[o.storage]);
    if (!runs) continue;
    calls[c] = true;
    for (const Output& o : call.outputs) needed[o.storage] = true;
    for (const Operand& o : call.operands) {
      if (o.storage != kNone) needed[o.storage] = true;
    }
  }
  return calls;
}

/// How far a tensor reaches before the place that its offset counts from, in bytes.
int64_t reaches_before(const Geometry& g) noexcept {
  int64_t low = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return 0;
    if (g.strides[d] < 0) low += (g.sizes[d] - 1) * g.strides[d];
  }
  return low < 0 ? -low * static_cast<int64_t>(item_size(g.dtype)) : 0;
}

std::vector<size_t> shifts(const Program& program) {
  std::vector<size_t> shift(program.storages.size());
  for (const Program::Step& step : program.calls) {
    for (const Operand& o : step.call->operands) {
      const int64_t before = o.storage == kNone ? 0 : reaches_before(o.geometry);
      if (before > 0)
        shift[o.storage] = std::max(shift[o.storage], (static_cast<size_t>(before) + 15) & ~size_t{15});
    }
  }
  return shift;
}

/// Whether argument i is written without being read.
bool writes_only(const Call& call, size_t i) {
  return call.info->schema->arguments[i].is_out || ((call.info->op.traits().writes_only >> i) & 1u) != 0;
}

class Assembler {
 public:
  Assembler(const Program& program, KeepErrors keep)
      : program_(program), keep_(keep), shift_(shifts(program)) {
    for (const Storage& s : program.storages) {
      const StorageId id = g_.add_storage(s);
      now_.push_back(s.is_input ? g_.add_input_value(id) : kNone);
    }
    for (const Scalar::Kind kind : program.numbers) g_.add_number(kind);
  }

  void add(uint32_t index) {
    const Program::Step& step = program_.calls[index];
    const Call& call = *step.call;
    const bool may_fail = call.info->op.traits().value_errors;
    add_arguments(step);
    for (const Output& o : call.outputs) {
      define(o.storage, o.geometry, o.makes_storage ? kNone : now_[o.storage]);
      note_error(may_fail, o.storage);
    }
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const ArgumentSource& from = call.arguments[i];
      if (from.kind != ArgumentSource::Kind::Tensor || !call.operands[from.first].written) continue;
      const Operand& o = call.operands[from.first];
      // A call that fails leaves what was there.
      const bool is_new = !may_fail && writes_only(call, i) && is_whole(o);
      define(o.storage, o.geometry, is_new ? kNone : now_[o.storage]);
      note_error(may_fail, o.storage);
    }
    g_.add_node(call.info->op, step.line).call = index;
  }

  Assembled take() && { return {std::move(g_), std::move(shift_)}; }

 private:
  /// The caller has to see what the call throws.
  void note_error(bool may_fail, StorageId storage) {
    if (may_fail && keep_ == KeepErrors::Yes) g_.storages[storage].is_output = true;
  }

  /// Whether a tensor has all bytes of its storage.
  bool is_whole(const Operand& o) const {
    const Geometry& g = o.geometry;
    return Dims(contiguous_strides(g.sizes)) == g.strides &&
           static_cast<size_t>(g.numel()) * item_size(g.dtype) == program_.storages[o.storage].nbytes;
  }

  Use use(const Call& call, size_t argument, const Operand& o) {
    if (o.storage == kNone) return {};
    const GeometryId geometry = this->geometry(o.storage, o.geometry);
    return {o.written && writes_only(call, argument) ? kNone : now_[o.storage], geometry};
  }
  GeometryId geometry(StorageId storage, Geometry g) {
    g.offset += static_cast<int64_t>(shift_[storage] / item_size(g.dtype));
    return g_.add_geometry(g);
  }
  void define(StorageId storage, Geometry g, ValueId previous) {
    g.wrapped_number = false;
    now_[storage] = g_.add_def(storage, geometry(storage, std::move(g)), previous);
  }

  void add_arguments(const Program::Step& step) {
    const Call& call = *step.call;
    uint32_t number = step.first_number;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const ArgumentSource& from = call.arguments[i];
      switch (from.kind) {
        case ArgumentSource::Kind::Attribute:
          if (from.tag == CellTag::None)
            g_.add_none();
          else
            g_.add_attribute(call.attributes, i);
          break;
        case ArgumentSource::Kind::Number:
          g_.add_number_use(number++);
          break;
        case ArgumentSource::Kind::Tensor: {
          const Operand& o = call.operands[from.first];
          if (o.storage == kNone)
            g_.add_none();
          else
            g_.add_use(use(call, i, o));
          break;
        }
        case ArgumentSource::Kind::TensorList: {
          std::vector<Use> uses;
          for (uint16_t k = 0; k < from.count; ++k)
            uses.push_back(use(call, i, call.operands[from.first + k]));
          g_.add_uses(uses);
          break;
        }
      }
    }
  }

  const Program& program_;
  KeepErrors keep_;
  Graph g_;
  std::vector<ValueId> now_;  // of storages
  std::vector<size_t> shift_;
};

}  // namespace

Assembled assemble(const Program& program, KeepErrors keep) {
  const std::vector<bool> needed = needed_calls(program, keep);
  Assembler assembler(program, keep);
  for (uint32_t c = 0; c < program.calls.size(); ++c) {
    if (needed[c]) assembler.add(c);
  }
  return std::move(assembler).take();
}

}  // namespace tenon::graph
