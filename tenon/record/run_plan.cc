// How plans run on recorded segments.
#include <algorithm>

#include "tenon/core/kernel_report.h"
#include "tenon/core/thread_state.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/record/running.h"

namespace tenon::record {
// Calls run on storages of their own over the memory of the segment's, which stay as they are seen by others
// until all is done: pending, with their versions.
class Plan::Run {
 public:
  Run(const Plan& plan, Segment& segment)
      : plan_(plan), segment_(segment), memory_(segment.slots.size()), failures_(segment.slots.size()) {}

  void step(const Step& step) {
    try {
      const bool done = step.loop ? run_loop(step) : step.anchored && run_anchored(*step.anchored, step);
      if (!done) {
        for (const uint32_t i : step.calls) {
          const RecordedCall& call = segment_.calls[i];
          failures_.run_call(call, [&] { compute(call); });
        }
      }
    } catch (...) {
      // In the middle of a region, which may have written some of its results.
      const std::exception_ptr error = std::current_exception();
      failures_.note(error);
      for (const uint32_t call : step.calls) {
        for (const Output& o : segment_.calls[call].node->outputs) {
          memory_[o.slot] = {};
          failures_.fail(o.slot, error);
        }
      }
    }
    for (const uint32_t slot : step.last_uses) release(slot);
  }

  std::exception_ptr finish() {
    for (size_t i = 0; i < segment_.slots.size(); ++i) {
      SlotState& slot = segment_.slots[i];
      if (slot.is_input || !slot.storage || !slot.storage->is_pending()) continue;
      // What nobody wants is not computed: it dies with the segment.
      if (memory_[i]) {
        StorageImpl& computed = *memory_[i];
        if (computed.address_now() != slot.storage->address_now()) slot.storage->take_bytes(computed);
        slot.storage->set_done();
      } else if (const auto number = static_cast<uint32_t>(i); failures_.has(number)) {
        slot.storage->set_failed(failures_.of(number));
      }
    }
    for (SlotState& slot : segment_.slots) {
      if (slot.is_input && slot.is_written) slot.storage->set_done();
    }
    return failures_.first();
  }

 private:
  // False: nothing was written; the calls are to be run one by one, of which some may fail.
  bool run_loop(const Step& step) {
    const graph::LoopStep& loop = step.loop->step;
    for (const auto& place : loop.places()) {
      if (failures_.has(place.storage)) return false;
    }
    std::vector<uint32_t> fresh;
    try {
      numbers_.resize(loop.num_numbers());
      loop.put_numbers(segment_.numbers, numbers_.data());
      addresses_.clear();
      for (size_t i = 0; i < loop.places().size(); ++i) {
        const auto& place = loop.places()[i];
        if (!memory_[place.storage]) fresh.push_back(place.storage);
        if (i < loop.num_outputs()) take_over(place.storage, step.loop->takes_over[i]);
        addresses_.push_back(reinterpret_cast<char*>(memory(place.storage).address()) +
                             begin_in_graph(place.storage) + place.offset);
      }
    } catch (const std::exception&) {
      for (const uint32_t slot : fresh) memory_[slot] = {};
      return false;
    }
    loop.run(addresses_.data(), numbers_.data());
    if (kernel_reporting()) [[unlikely]]
      report_region(segment_.calls, step.calls, loop.region().name(), loop.engine());
    return true;
  }

  // As run_loop. What fails once something is written that the calls would read fails as a whole.
  bool run_anchored(const Anchored& region, const Step& step) {
    bool has_written = false;
    try {
      std::vector<Tensor> uses, defs;
      for (const auto& [from, to] : {std::pair(&region.uses, &uses), {&region.defs, &defs}}) {
        for (const Operand& o : *from) {
          if (failures_.has(o.slot)) return false;
          to->push_back(tensor(o, begin_in_graph(o.slot)));
        }
      }
      region.program->run({uses, defs, segment_.numbers}, has_written);
      if (kernel_reporting()) [[unlikely]]
        report_region(segment_.calls, step.calls, region.name.c_str(), region.engine);
    } catch (const std::exception&) {
      if (!has_written) return false;
      const std::exception_ptr error = explained(std::current_exception(), segment_.calls[step.calls.back()]);
      failures_.note(error);
      for (const Operand& o : region.defs) failures_.fail(o.slot, error);
    }
    return true;
  }

  // A result may have the memory that an input leaves.
  void take_over(uint32_t slot, uint32_t from) {
    if (memory_[slot] || from == kNoSlot) return;
    if (!segment_.slots[slot].storage->address_now()) memory_[slot] = memory_[from];
  }

  Storage& memory(uint32_t slot) {
    Storage& memory = memory_[slot];
    if (memory) return memory;
    const SlotState& state = segment_.slots[slot];
    const StorageImpl& seen = *state.storage;
    const bool has_room = state.is_input || seen.address_now() != 0;
    // A result that is written before it was made: what made it was overwritten, and left out.
    memory = has_room
                 ? Storage::from_foreign(seen.address_now(), seen.nbytes(), seen.device(), nullptr, nullptr)
                 : Storage::allocate(seen.nbytes());
    return memory;
  }

  void release(uint32_t slot) {
    memory_[slot] = {};
    SlotState& state = segment_.slots[slot];
    // An input that only the segment holds by now: its memory is free for what comes next. Foreign memory
    // goes at the end, as its owner may take locks.
    const bool ours =
        state.is_input && state.storage->is_recorded() && !state.is_written && state.storage->allocator();
    if (!ours || state.storage.use_count() > 0) return;
    state.storage->remove_recorder();
    state.storage = {};
  }

  // Where the offsets of a plan's regions count from, in bytes.
  size_t begin_in_graph(uint32_t slot) const noexcept {
    return segment_.slots[slot].begin - plan_.moved_[slot];
  }

  // `begin`: where its offset counts from, in bytes.
  Tensor tensor(const Operand& o, size_t begin) {
    if (o.slot == kNoSlot) return {};
    const auto first = static_cast<int64_t>(begin / item_size(o.geometry.dtype));
    auto impl = TensorImpl::make(memory(o.slot), o.geometry.dtype, o.geometry.sizes, o.geometry.strides,
                                 first + o.geometry.offset);
    impl->set_wrapped_number(o.geometry.wrapped_number);
    return Tensor(std::move(impl));
  }

  void compute(const RecordedCall& call) {
    const TrieNode& node = *call.node;
    Stack stack;
    push_arguments(call, segment_.numbers, stack, [&](const Operand& o) {
      return tensor(o, o.slot == kNoSlot ? 0 : segment_.slots[o.slot].begin);
    });
    call_kernel(node.info->op, stack);
    size_t next = 0;
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i].kind == Result::Kind::Output)
        keep(*node.info, node.outputs[next++], stack.take<Tensor>(i), node);
    }
  }

  // A result becomes the memory of its slot, if it lies as was said when it was recorded.
  void keep(const OperatorInfo& info, const Output& promised, Tensor result, const TrieNode& node) {
    const bool same = lies_as_recorded(info, promised, result);
    const bool operands = std::ranges::any_of(node.operands, [&](const Operand& o) {
      return o.slot != kNoSlot && memory_[o.slot] == result.storage();
    });
    if (same && !operands && promised.makes_storage) {
      memory_[promised.slot] = result.storage();
      return;
    }
    if (!memory_[promised.slot]) memory_[promised.slot] = Storage::allocate(promised.nbytes);
    const Geometry& g = promised.geometry;
    const Tensor place(TensorImpl::make(memory_[promised.slot], g.dtype, g.sizes, g.strides, g.offset));
    if (!same || operands || place.storage() != result.storage())
      ops::copy_elements(place, result, info.op.name().data());
  }

  const Plan& plan_;
  Segment& segment_;
  std::vector<Storage> memory_;
  Failures failures_;
  std::vector<uint64_t> numbers_;
  std::vector<char*> addresses_;
};

std::exception_ptr Plan::run(Segment& segment) const {
  const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
  const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) | kAutogradKeys};
  const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
  Run run(*this, segment);
  for (const Step& step : steps_) run.step(step);
  return run.finish();
}

}  // namespace tenon::record
