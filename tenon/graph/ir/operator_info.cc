#include "tenon/graph/ir/operator_info.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/lower.h"

namespace tenon::graph {
namespace {

using schema::BaseType;

bool is_number(const schema::Argument& a) {
  return !a.type.list && (a.type.base == BaseType::Scalar || a.type.base == BaseType::Float);
}

void describe_arguments(OperatorInfo& info) {
  const schema::FunctionSchema& schema = *info.schema;
  const OperatorTraits& traits = info.op.traits();
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const schema::Argument& a = schema.arguments[i];
    const uint64_t bit = uint64_t{1} << i;
    if (a.is_write()) info.written |= bit;
    if (a.type.base == BaseType::Tensor) info.has_tensors = true;
    const auto place = static_cast<int>(i);
    const bool of_stream = place == traits.stream.seed || place == traits.stream.offset;
    if (is_number(a) || of_stream) info.numbers |= bit;
  }
  if (traits.shape_numbers) info.numbers = 0;
  for (const schema::Return& r : schema.returns) {
    int16_t argument = -1;
    for (size_t i = 0; r.alias && i < schema.arguments.size(); ++i) {
      const auto& alias = schema.arguments[i].alias;
      if (alias && alias->is_write && alias->before == r.alias->before) argument = static_cast<int16_t>(i);
    }
    info.results.push_back(argument);
  }
}

const char* reason_to_run_now(const OperatorInfo& info) {
  const schema::FunctionSchema& schema = *info.schema;
  if (!Dispatcher::singleton().runs_builtin_code(info.op))
    return "the operator, or a kernel of it, is the user's";
  if (schema.arguments.size() > 64) return "it has more than 64 arguments";
  const OperatorTraits& traits = info.op.traits();
  if (info.written != 0 && traits.uninitialized) return "it leaves what it writes as it is";
  // Where it throws, the stream gets its part back.
  if (traits.stream.is_given() && traits.value_errors) return "it looks at its probabilities";
  if (traits.tags.has(Tag::data_dependent_output))
    return "a number is made of it: item(), bool(), float(), if";
  for (const schema::Return& r : schema.returns) {
    if (!r.type.is_tensor()) return "it returns something else than tensors";
  }
  const bool writes_list = std::ranges::any_of(
      schema.arguments, [](const auto& a) { return a.is_write() && !a.type.is_tensor(); });
  if (writes_list) return "it writes a list of tensors";
  const bool has_storage =
      std::ranges::any_of(schema.arguments, [](const auto& a) { return a.type.base == BaseType::Storage; });
  return has_storage ? "it takes a storage" : nullptr;
}

std::unique_ptr<OperatorInfo> make_info(const OperatorHandle& op) {
  auto info = std::make_unique<OperatorInfo>(OperatorInfo{.op = op, .schema = &op.schema()});
  describe_arguments(*info);
  // An operator of a device may have no kernel for the host.
  const bool builtin = Dispatcher::singleton().runs_builtin_code(op);
  const PointwiseInfo* const pointwise = builtin ? pointwise_info_of(op.entry()) : nullptr;
  if (pointwise) {
    for (const PointwiseSpecial& s : pointwise->special) info->special.push_back(s.value);
  }
  const OperatorTraits& traits = op.traits();
  const bool is_loop = pointwise || traits.equals.kind != EqualsTrait::Kind::None || traits.uninitialized;
  info->scale = is_loop ? 1 : 4;
  const bool may_be_view =
      std::ranges::any_of(info->schema->returns, [](const auto& r) { return r.alias && !r.alias->is_write; });
  if (const char* reason = reason_to_run_now(*info)) {
    info->kind = OperatorInfo::Kind::Now;
    info->reason = reason;
  } else if (traits.tags.has(Tag::nondeterministic_seeded) || may_be_view) {
    // A random operator takes its part of the stream at once, and passes it on as numbers.
    info->kind = OperatorInfo::Kind::Transparent;
  }
  return info;
}

}  // namespace

const OperatorInfo& operator_info(const OperatorHandle& op) {
  std::atomic<const void*>& place = op.entry().record_info;
  if (const void* known = place.load(std::memory_order_acquire)) [[likely]]
    return *static_cast<const OperatorInfo*>(known);
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<const OperatorInfo>>;
  auto info = make_info(op);
  const std::lock_guard lock(mutex);
  all.push_back(std::move(info));
  op.entry().record_scale.store(all.back()->scale, std::memory_order_release);
  place.store(all.back().get(), std::memory_order_release);
  return *all.back();
}

}  // namespace tenon::graph
