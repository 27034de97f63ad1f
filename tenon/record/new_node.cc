// A call that was not recorded there before: what its results will be, which the operator says on meta
// tensors.
#include <algorithm>
#include <utility>

#include "tenon/record/recorder_parts.h"

namespace tenon::record {
namespace {

Geometry geometry_of(const TensorImpl& t) {
  return {t.dtype(), t.is_wrapped_number(), t.offset(), t.sizes().to_dims(), t.strides().to_dims()};
}

// Every dtype's elements begin at a multiple of their size from there.
size_t begin_of(const TensorImpl& t) noexcept {
  return static_cast<size_t>(t.offset()) * item_size(t.dtype()) & ~size_t{15};
}

// The tensors of a call as meta tensors, of which those that share memory do so as well.
class MetaTensors {
 public:
  Tensor of(const Tensor& t, uint32_t slot) {
    if (!t.defined() || t.impl()->is_wrapped_number())
      return t;  // numbers keep their values, which are checked
    for (const auto& [original, copy] : tensors_) {
      if (original == t.impl()) return copy;
    }
    const auto known = std::ranges::find(slots_, slot);
    const auto index = static_cast<size_t>(known - slots_.begin());
    if (known == slots_.end()) {
      slots_.push_back(slot);
      storages_.push_back(Storage::allocate(t.storage().nbytes(), Device(kMetaBackend)));
    }
    const TensorImpl& impl = *t.impl();
    tensors_.emplace_back(&impl, Tensor(TensorImpl::make(storages_[index], impl.dtype(), impl.sizes(),
                                                         impl.strides(), impl.offset())));
    return tensors_.back().second;
  }
  bool made(const Storage& storage) const { return std::ranges::find(storages_, storage) != storages_.end(); }

 private:
  std::vector<std::pair<const TensorImpl*, Tensor>> tensors_;
  std::vector<uint32_t> slots_;
  std::vector<Storage> storages_;
};

bool unchanged(const Tensor& before, const Tensor& now, const Storage& storage) {
  return std::ranges::equal(before.sizes(), now.sizes()) &&
         std::ranges::equal(before.strides(), now.strides()) &&
         before.storage_offset() == now.storage_offset() && before.dtype() == now.dtype() &&
         now.storage() == storage;
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

TrieNode* Recorder::infer(const OperatorInfo& info, const Stack& stack, size_t first) {
  TrieNode* const node = trie_->add(cursor_, key_);
  node->info = &info;
  MetaTensors metas;
  Stack meta;
  struct Written {
    Tensor original, copy;
    Storage storage;
    size_t nbytes;
  };
  std::vector<Written> written;
  const auto add_operand = [&](const Tensor& t, size_t argument) {
    Operand o;
    if (t.defined()) {
      o = {.slot = slot_of(*t.storage()),
           .written = ((info.written >> argument) & 1u) != 0,
           .geometry = geometry_of(*t.impl())};
      o.geometry.offset -= segment_.slots[o.slot].begin_of(t.dtype());
    }
    node->operands.push_back(o);
    Tensor copy = metas.of(t, o.slot);
    if (o.written && t.defined()) written.push_back({t, copy, copy.storage(), copy.storage().nbytes()});
    return copy;
  };
  for (size_t i = 0; i < info.schema->arguments.size(); ++i) {
    const size_t at = first + i;
    ArgumentSource from{.tag = stack.tag(at), .first = static_cast<uint16_t>(node->operands.size())};
    if (from.tag == CellTag::Tensor) {
      from.kind = ArgumentSource::Kind::Tensor;
      meta.push(add_operand(stack.at<Tensor>(at), i));
    } else if (from.tag == CellTag::TensorList) {
      from.kind = ArgumentSource::Kind::TensorList;
      std::vector<Tensor> list;
      for (const Tensor& t : stack.at<std::vector<Tensor>>(at)) list.push_back(add_operand(t, i));
      from.count = static_cast<uint16_t>(list.size());
      meta.push(std::move(list));
    } else {
      const uint64_t numbers = info.numbers & ~special_arguments_;
      const bool number = ((numbers >> i) & 1u) != 0 && from.tag != CellTag::None;
      if (number) from.kind = ArgumentSource::Kind::Number;
      if (info.schema->arguments[i].type.base == schema::BaseType::Device)
        meta.push(Device(kMetaBackend));
      else
        meta.push_copy(stack, at);
    }
    if (from.kind == ArgumentSource::Kind::Attribute)
      node->prototype.push_copy(stack, at);
    else
      node->prototype.push_none();
    node->arguments.push_back(from);
  }
  const auto runs_now = [&](const char* why) {
    node->now = why;
    return node;
  };
  try {
    const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
    const ExcludeDispatchKeyGuard below(kRecord | kAutogradKeys);
    const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
    info.op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kMetaBackend), meta);
  } catch (const std::exception&) {
    // What is wrong with the call says the call itself; and what depends on values has none before it runs.
    return runs_now("the results' shapes depend on values, or the call fails");
  }
  for (const Written& w : written) {
    if (!unchanged(w.original, w.copy, w.storage) || w.storage.nbytes() != w.nbytes)
      return runs_now("it changes the shape of a tensor that it writes");
  }
  if (info.op.traits().equals.kind == EqualsTrait::Kind::Number) {
    for (const Written& w : written) node->filled = w.original.dtype();
    for (size_t i = 0; i < info.results.size(); ++i) {
      if (info.results[i] < 0) node->filled = meta.at<Tensor>(i).dtype();
    }
  }
  std::vector<std::pair<Storage, uint32_t>> made;
  auto next_slot = static_cast<uint32_t>(segment_.slots.size());
  for (size_t i = 0; i < info.results.size(); ++i) {
    if (info.results[i] >= 0) {
      node->results.push_back({Result::Kind::Argument, static_cast<uint16_t>(info.results[i])});
      continue;
    }
    const Tensor* const t = meta.tag(i) == CellTag::Tensor ? &meta.at<Tensor>(i) : nullptr;
    if (!t || !t->defined()) {
      node->results.push_back({Result::Kind::Undefined});
      continue;
    }
    if (metas.made(t->storage())) {
      node->passes = true;
      return node;
    }
    if (t->layout() != Layout::Strided || !t->is_meta())
      return runs_now("its result is no strided tensor of the host");
    const auto known = std::ranges::find(made, t->storage(), &std::pair<Storage, uint32_t>::first);
    const bool makes = known == made.end();
    const uint32_t slot = makes ? next_slot++ : known->second;
    if (makes) made.emplace_back(t->storage(), slot);
    node->outputs.push_back(
        {slot, t->storage().nbytes(), makes, t->storage().version(), geometry_of(*t->impl())});
    node->results.push_back({Result::Kind::Output});
  }
  return node;
}

}  // namespace tenon::record
