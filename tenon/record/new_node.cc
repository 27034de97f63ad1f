// A call that was not recorded there before.
#include <utility>

#include "tenon/record/recorder_parts.h"

namespace tenon::record {
namespace {

// Every dtype's elements begin at a multiple of their size from there.
size_t begin_of(const TensorImpl& t) noexcept {
  return static_cast<size_t>(t.offset()) * item_size(t.dtype()) & ~size_t{15};
}

}  // namespace

uint32_t Recorder::add_input(const TensorImpl& first) {
  const Storage& storage = first.storage();
  const auto slot = static_cast<uint32_t>(segment_.slots.size());
  storage->add_recorder();
  slots_by_storage_.add(&*storage, slot);
  input_bytes_ += storage.nbytes();
  segment_.slots.push_back({.storage = storage, .is_input = true, .begin = begin_of(first)});
  return slot;
}

std::pair<graph::StorageId, int64_t> Recorder::place_of(const Tensor& t) const {
  const uint32_t slot = slot_of(*t.storage());
  return {slot, segment_.slots[slot].begin_of(t.dtype())};
}

TrieNode* Recorder::infer(const OperatorInfo& info, const Stack& stack, size_t first) {
  TrieNode* const node = trie_->add(cursor_, key_);
  node->kind =
      graph::describe_call(*node, info, stack, first, info.numbers & ~special_arguments_, *this, kCPU);
  return node;
}

}  // namespace tenon::record
