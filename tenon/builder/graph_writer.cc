#include "tenon/builder/graph_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tenon/core/error.h"

namespace tenon::builder {
namespace {

using graph::OperatorInfo;

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

tenon::Tensor GraphWriter::add(DType dtype, const Dims& sizes, const Dims& strides, bool is_input) {
  const auto [offset, nbytes] = extent(dtype, sizes, strides);
  storages_.push_back(Storage::allocate(nbytes, Device(kMetaBackend)));
  has_bytes_.push_back(is_input);
  program.storages.push_back({.nbytes = nbytes, .device = device_, .is_input = is_input});
  return tenon::Tensor(TensorImpl::make(storages_.back(), dtype, sizes, strides, offset));
}

graph::StorageId GraphWriter::add_constant(const tenon::Tensor& t) {
  storages_.push_back(t.storage());
  has_bytes_.push_back(true);
  program.storages.push_back({.nbytes = t.storage().nbytes(), .device = device_, .is_input = true});
  return static_cast<graph::StorageId>(storages_.size() - 1);
}

tenon::Tensor GraphWriter::result(const graph::Output& output) {
  if (output.makes_storage) {
    storages_.push_back(Storage::allocate(output.nbytes, Device(kMetaBackend)));
    has_bytes_.push_back(true);
    program.storages.push_back({.nbytes = output.nbytes, .device = device_});
  }
  const graph::Geometry& g = output.geometry;
  auto impl = TensorImpl::make(storages_[output.storage], g.dtype, g.sizes, g.strides, g.offset);
  impl->set_wrapped_number(g.wrapped_number);
  return tenon::Tensor(std::move(impl));
}

graph::StorageId GraphWriter::storage_of(const tenon::Tensor& t) const {
  const auto found = std::ranges::find(storages_, t.storage());
  return found == storages_.end() ? graph::kNone : static_cast<graph::StorageId>(found - storages_.begin());
}

void GraphWriter::replace_storage(const tenon::Tensor& result, const Storage& to) {
  const graph::StorageId made = storage_of(result);
  const auto constant = std::ranges::find(storages_, to);
  std::swap(*constant, storages_[made]);
}

bool GraphWriter::is_made(const tenon::Tensor& t) const {
  const graph::StorageId id = storage_of(t);
  return id != graph::kNone && !program.storages[id].is_input && has_bytes_[id];
}

std::pair<graph::StorageId, int64_t> GraphWriter::place_of(const tenon::Tensor& t) const {
  const graph::StorageId id = storage_of(t);
  TENON_CHECK(id != graph::kNone, Internal,
              "an operator got a tensor that no call of this program made: one without values, kept from "
              "another one");
  return {id, 0};
}

GraphWriter::Pending::iterator GraphWriter::pending(const OperatorInfo& info, size_t argument) {
  return std::ranges::find(pending_, info.schema->arguments[argument].name, &Pending::value_type::first);
}

/// Those of a call that each run brings.
uint64_t GraphWriter::numbers_of(const OperatorInfo& info, const Stack& stack, size_t first) {
  uint64_t numbers = 0;
  for (size_t i = 0; i < info.schema->arguments.size(); ++i) {
    const std::optional<Scalar> number = number_at(stack, first + i);
    if (!number || ((info.numbers >> i) & 1u) == 0) continue;
    // A cheaper expression is a plan of its own, as where it is recorded.
    const bool special = !number->is_complex() && pending(info, i) == pending_.end() &&
                         std::ranges::find(info.special, number->to_double()) != info.special.end();
    if (!special) numbers |= uint64_t{1} << i;
  }
  return numbers;
}

void GraphWriter::take_numbers(const graph::Call& call, const Stack& stack, size_t first) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (call.arguments[i].kind != graph::ArgumentSource::Kind::Number) continue;
    numbers.push_back(*number_at(stack, first + i));
    program.numbers.push_back(numbers.back().kind());
    const auto found = pending(*call.info, i);
    if (found == pending_.end()) continue;
    bound.emplace_back(static_cast<uint32_t>(numbers.size() - 1), found->second);
    pending_.erase(found);
  }
}

void GraphWriter::call(const OperatorInfo& info, Stack& stack) {
  const size_t count = info.schema->arguments.size(), first = stack.size() - count;
  const auto refuse = [&](const char* why) {
    throw_error(ErrorKind::NotImplemented,
                fmt::format("{} cannot be part of a graph: {}", info.op.full_name(), why));
  };
  if (info.kind != OperatorInfo::Kind::Recorded) refuse(info.reason);
  graph::Call made;
  std::exception_ptr error;
  const graph::CallKind kind =
      graph::describe_call(made, info, stack, first, numbers_of(info, stack, first), *this, device_, &error);
  if (error) std::rethrow_exception(error);
  if (kind.now) refuse(kind.now);
  if (kind.passes) {
    const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
    const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) |
                                                         kAutogradKeys};
    return info.op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kMetaBackend), stack);
  }
  program.calls.push_back({&calls_.emplace_back(std::move(made)), static_cast<uint32_t>(numbers.size()),
                           note_source(stack.caller())});
  const graph::Call& call = calls_.back();
  take_numbers(call, stack, first);
  for (const graph::Operand& o : call.operands) {
    if (o.written) has_bytes_[o.storage] = true;
  }
  size_t next = 0;
  for (const graph::Result& r : call.results) {
    if (r.kind == graph::Result::Kind::Output)
      stack.push(result(call.outputs[next++]));
    else if (r.kind == graph::Result::Kind::Argument)
      stack.push_copy(stack, first + r.argument);
    else
      stack.push(tenon::Tensor());
  }
  stack.erase(first, count);
}

}  // namespace tenon::builder
