#include "tenon/builder/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"

namespace tenon::builder {
namespace {

/// Of element [0, ..., 0], where strides go backwards from it; and how many bytes all take.
std::pair<int64_t, size_t> extent(DType dtype, const Dims& sizes, const Dims& strides) {
  int64_t before = 0, behind = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return {0, 0};
    const int64_t reach = (sizes[d] - 1) * strides[d];
    (reach < 0 ? before : behind) += std::abs(reach);
  }
  return {before, static_cast<size_t>(before + behind + 1) * item_size(dtype)};
}

bool writes_only(OperatorHandle op, size_t argument) {
  return ((op.traits().writes_only >> argument) & 1u) != 0;
}

std::optional<Scalar> number_at(const Stack& stack, size_t at) {
  switch (stack.tag(at)) {
    case CellTag::Scalar:
      return stack.at<Scalar>(at);
    case CellTag::Float:
      return Scalar(stack.at<double>(at));
    case CellTag::Int:
      return Scalar(stack.at<int64_t>(at));
    default:
      return std::nullopt;
  }
}

}  // namespace

Trace::Slot* Trace::find(const Storage& storage) {
  const auto found = std::ranges::find(slots_, storage, &Slot::storage);
  return found == slots_.end() ? nullptr : &*found;
}

uint32_t Trace::add(const Storage& storage, bool is_input) {
  const graph::StorageId id =
      graph.add_storage({.nbytes = storage->nbytes(), .device = device_, .is_input = is_input});
  slots_.push_back({storage, is_input ? graph.add_input_value(id) : graph::kNone});
  return id;
}

tenon::Tensor Trace::input(DType dtype, const Dims& sizes, const Dims& strides) {
  const auto [offset, nbytes] = extent(dtype, sizes, strides);
  const Storage storage = Storage::allocate(nbytes, Device(kMetaBackend));
  add(storage, true);
  return tenon::Tensor(TensorImpl::make(storage, dtype, sizes, strides, offset));
}

tenon::Tensor Trace::fresh(DType dtype, const Dims& sizes, const Dims& strides) {
  const auto [offset, nbytes] = extent(dtype, sizes, strides);
  const Storage storage = Storage::allocate(nbytes, Device(kMetaBackend));
  add(storage, false);
  return tenon::Tensor(TensorImpl::make(storage, dtype, sizes, strides, offset));
}

graph::StorageId Trace::storage_of(const tenon::Tensor& t) const {
  const Slot* const slot = const_cast<Trace*>(this)->find(t.storage());
  return slot ? static_cast<graph::StorageId>(slot - slots_.data()) : graph::kNone;
}

bool Trace::is_made(const tenon::Tensor& t) const {
  const graph::StorageId id = storage_of(t);
  return id != graph::kNone && !graph.storages[id].is_input && slots_[id].now != graph::kNone;
}

graph::GeometryId Trace::geometry(const tenon::Tensor& t) {
  return graph.add_geometry({t.dtype(), t.impl()->is_wrapped_number(), t.storage_offset(),
                             t.sizes().to_dims(), t.strides().to_dims()});
}

graph::Use Trace::use(const tenon::Tensor& t, bool written_only) {
  if (!t.defined()) return {};
  const Slot* const slot = find(t.storage());
  TENON_CHECK(slot, Internal, "an operator got a tensor that is not the graph's");
  return {written_only ? graph::kNone : slot->now, geometry(t)};
}

Trace::Pending::iterator Trace::pending(const record::OperatorInfo& info, size_t argument) {
  return std::ranges::find(pending_, info.schema->arguments[argument].name, &Pending::value_type::first);
}

void Trace::add_number(const record::OperatorInfo& info, size_t argument, const Scalar& value) {
  const uint32_t number = graph.add_number(value.kind());
  numbers.push_back(value);
  graph.add_number_use(number);
  const auto found = pending(info, argument);
  if (found == pending_.end()) return;
  bound.emplace_back(number, found->second);
  pending_.erase(found);
}

void Trace::add_arguments(const record::OperatorInfo& info, const Stack& stack, size_t first) {
  for (size_t i = 0; i < info.schema->arguments.size(); ++i) {
    const size_t at = first + i;
    const bool written = ((info.written >> i) & 1u) != 0;
    if (info.schema->arguments[i].type.base == schema::BaseType::Device && !device_.is_cpu()) {
      Stack own;
      own.push(device_);
      graph.add_attribute(own, 0);
    } else if (stack.tag(at) == CellTag::Tensor) {
      const tenon::Tensor& t = stack.at<tenon::Tensor>(at);
      if (t.defined())
        graph.add_use(use(t, written && writes_only(info.op, i)));
      else
        graph.add_none();
    } else if (stack.tag(at) == CellTag::TensorList) {
      std::vector<graph::Use> uses;
      for (const tenon::Tensor& t : stack.at<std::vector<tenon::Tensor>>(at)) uses.push_back(use(t, false));
      graph.add_uses(uses);
    } else if (stack.is_none(at)) {
      graph.add_none();
    } else {
      const std::optional<Scalar> number = number_at(stack, at);
      const bool runtime = number && ((info.numbers >> i) & 1u) != 0;
      // A cheaper expression is a plan of its own, as where it is recorded.
      const bool special = runtime && !number->is_complex() && pending(info, i) == pending_.end() &&
                           std::ranges::find(info.special, number->to_double()) != info.special.end();
      if (runtime && !special)
        add_number(info, i, *number);
      else
        graph.add_attribute(stack, at);
    }
  }
}

void Trace::call(const record::OperatorInfo& info, Stack& stack) {
  const size_t count = info.schema->arguments.size(), first = stack.size() - count;
  TENON_CHECK(info.kind == record::OperatorInfo::Kind::Recorded, NotImplemented,
              fmt::format("{} cannot be part of a graph: {}", info.op.full_name(), info.reason));
  Stack meta;
  for (size_t i = 0; i < count; ++i) {
    if (info.schema->arguments[i].type.base == schema::BaseType::Device)
      meta.push(Device(kMetaBackend));
    else
      meta.push_copy(stack, first + i);
  }
  {
    const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
    const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) |
                                                         kAutogradKeys};
    info.op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kMetaBackend), meta);
  }
  const auto is_view = [&](size_t i) {
    return info.results[i] < 0 && meta.tag(i) == CellTag::Tensor && meta.at<tenon::Tensor>(i).defined() &&
           find(meta.at<tenon::Tensor>(i).storage());
  };
  bool passes = !info.results.empty();
  for (size_t i = 0; i < info.results.size(); ++i) passes = passes && is_view(i);
  if (!passes) {
    add_arguments(info, stack, first);
    for (size_t i = 0; i < info.results.size(); ++i) {
      if (info.results[i] >= 0 || meta.tag(i) != CellTag::Tensor) continue;
      const tenon::Tensor& t = meta.at<tenon::Tensor>(i);
      if (!t.defined()) continue;
      const uint32_t id = add(t.storage(), false);
      slots_[id].now = graph.add_def(id, geometry(t), graph::kNone);
    }
    for (size_t i = 0; i < count; ++i) {
      if (((info.written >> i) & 1u) == 0 || stack.tag(first + i) != CellTag::Tensor) continue;
      const tenon::Tensor& t = stack.at<tenon::Tensor>(first + i);
      const graph::StorageId id = storage_of(t);
      const bool whole = writes_only(info.op, i) && t.nbytes() == t.storage().nbytes();
      slots_[id].now = graph.add_def(id, geometry(t), whole ? graph::kNone : slots_[id].now);
    }
    graph.add_node(info.op);
  }
  // Written arguments are those that were passed.
  for (size_t i = 0; i < info.results.size(); ++i) {
    if (info.results[i] >= 0)
      stack.push_copy(stack, first + static_cast<size_t>(info.results[i]));
    else
      stack.push_copy(meta, i);
  }
  stack.erase(first, count);
}

}  // namespace tenon::builder
