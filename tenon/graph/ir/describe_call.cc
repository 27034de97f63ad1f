#include "tenon/graph/ir/describe_call.h"

#include <algorithm>

#include "tenon/core/thread_state.h"

namespace tenon::graph {
namespace {

Geometry geometry_of(const TensorImpl& t) {
  return {t.dtype(), t.is_wrapped_number(), t.offset(), t.sizes().to_dims(), t.strides().to_dims()};
}

// The tensors of a call as meta tensors; those that share memory do so as well.
class MetaTensors {
 public:
  Tensor of(const Tensor& t, StorageId storage) {
    if (!t.defined() || t.impl()->is_wrapped_number())
      return t;  // numbers keep their values, which are checked
    for (const auto& [original, copy] : tensors_) {
      if (original == t.impl()) return copy;
    }
    const auto known = std::ranges::find(numbers_, storage);
    const auto index = static_cast<size_t>(known - numbers_.begin());
    if (known == numbers_.end()) {
      numbers_.push_back(storage);
      storages_.push_back(tenon::Storage::allocate(t.storage().nbytes(), Device(kMetaBackend)));
    }
    const TensorImpl& impl = *t.impl();
    tensors_.emplace_back(&impl, Tensor(TensorImpl::make(storages_[index], impl.dtype(), impl.sizes(),
                                                         impl.strides(), impl.offset())));
    return tensors_.back().second;
  }
  bool made(const tenon::Storage& storage) const {
    return std::ranges::find(storages_, storage) != storages_.end();
  }

 private:
  std::vector<std::pair<const TensorImpl*, Tensor>> tensors_;
  std::vector<StorageId> numbers_;
  std::vector<tenon::Storage> storages_;
};

bool unchanged(const Tensor& before, const Tensor& now, const tenon::Storage& storage) {
  return std::ranges::equal(before.sizes(), now.sizes()) &&
         std::ranges::equal(before.strides(), now.strides()) &&
         before.storage_offset() == now.storage_offset() && before.dtype() == now.dtype() &&
         now.storage() == storage;
}

class Describer {
 public:
  Describer(Call& made, const OperatorInfo& info, const CallStorages& storages)
      : made_(made), info_(info), storages_(storages) {}

  void add_arguments(const Stack& stack, size_t first, uint64_t numbers, Device device) {
    for (size_t i = 0; i < info_.schema->arguments.size(); ++i) {
      const size_t at = first + i;
      ArgumentSource from{.tag = stack.tag(at), .first = static_cast<uint16_t>(made_.operands.size())};
      if (from.tag == CellTag::Tensor) {
        from.kind = ArgumentSource::Kind::Tensor;
        meta_.push(add_operand(stack.at<Tensor>(at), i));
      } else if (from.tag == CellTag::TensorList) {
        from.kind = ArgumentSource::Kind::TensorList;
        std::vector<Tensor> list;
        for (const Tensor& t : stack.at<std::vector<Tensor>>(at)) list.push_back(add_operand(t, i));
        from.count = static_cast<uint16_t>(list.size());
        meta_.push(std::move(list));
      } else if (info_.schema->arguments[i].type.base == schema::BaseType::Device) {
        meta_.push(Device(kMetaBackend));
        if (!device.is_cpu()) {
          made_.attributes.push(device);
          from.tag = made_.attributes.tag(i);
          made_.arguments.push_back(from);
          continue;
        }
      } else {
        if (((numbers >> i) & 1u) != 0 && from.tag != CellTag::None) from.kind = ArgumentSource::Kind::Number;
        meta_.push_copy(stack, at);
      }
      if (from.kind == ArgumentSource::Kind::Attribute)
        made_.attributes.push_copy(stack, at);
      else
        made_.attributes.push_none();
      made_.arguments.push_back(from);
    }
  }

  CallKind call(std::exception_ptr* error) {
    try {
      const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
      const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) |
                                                           kAutogradKeys};
      const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
      info_.op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kMetaBackend), meta_);
    } catch (const std::exception&) {
      // What is wrong with the call says the call itself; and what depends on values has none before it runs.
      if (error) *error = std::current_exception();
      return {.now = "the results' shapes depend on values, or the call fails"};
    }
    for (const Written& w : written_) {
      if (!unchanged(w.original, w.copy, w.storage) || w.storage.nbytes() != w.nbytes)
        return {.now = "it changes the shape of a tensor that it writes"};
    }
    if (info_.op.traits().equals.kind == EqualsTrait::Kind::Number) {
      for (const Written& w : written_) made_.filled = w.original.dtype();
      for (size_t i = 0; i < info_.results.size(); ++i) {
        if (info_.results[i] < 0) made_.filled = meta_.at<Tensor>(i).dtype();
      }
    }
    return add_results();
  }

 private:
  struct Written {
    Tensor original, copy;
    tenon::Storage storage;
    size_t nbytes;
  };

  Tensor add_operand(const Tensor& t, size_t argument) {
    Operand o;
    if (t.defined()) {
      const auto [storage, begin] = storages_.place_of(t);
      o = {storage, ((info_.written >> argument) & 1u) != 0, geometry_of(*t.impl())};
      o.geometry.offset -= begin;
    }
    Tensor copy = metas_.of(t, o.storage);
    if (o.written) written_.push_back({t, copy, copy.storage(), copy.storage().nbytes()});
    made_.operands.push_back(std::move(o));
    return copy;
  }

  CallKind add_results() {
    std::vector<std::pair<tenon::Storage, StorageId>> new_storages;
    StorageId next = storages_.next();
    for (size_t i = 0; i < info_.results.size(); ++i) {
      if (info_.results[i] >= 0) {
        made_.results.push_back({Result::Kind::Argument, static_cast<uint16_t>(info_.results[i])});
        continue;
      }
      const Tensor* const t = meta_.tag(i) == CellTag::Tensor ? &meta_.at<Tensor>(i) : nullptr;
      if (!t || !t->defined()) {
        made_.results.push_back({Result::Kind::Undefined});
        continue;
      }
      if (metas_.made(t->storage())) return {.passes = true};
      if (t->layout() != Layout::Strided || !t->is_meta())
        return {.now = "its result is no strided tensor of the host"};
      const auto known =
          std::ranges::find(new_storages, t->storage(), &std::pair<tenon::Storage, StorageId>::first);
      const bool makes = known == new_storages.end();
      const StorageId storage = makes ? next++ : known->second;
      if (makes) new_storages.emplace_back(t->storage(), storage);
      made_.outputs.push_back(
          {storage, t->storage().nbytes(), makes, t->storage().version(), geometry_of(*t->impl())});
      made_.results.push_back({Result::Kind::Output});
    }
    return {};
  }

  Call& made_;
  const OperatorInfo& info_;
  const CallStorages& storages_;
  MetaTensors metas_;
  Stack meta_;
  std::vector<Written> written_;
};

}  // namespace

CallKind describe_call(Call& made, const OperatorInfo& info, const Stack& stack, size_t first,
                       uint64_t numbers, const CallStorages& storages, Device device,
                       std::exception_ptr* error) {
  made.info = &info;
  Describer describer(made, info, storages);
  describer.add_arguments(stack, first, numbers, device);
  return describer.call(error);
}

}  // namespace tenon::graph
