#include "tenon/record/running.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/core/kernel_report.h"

namespace tenon::record {

std::exception_ptr Failures::inherited(const TrieNode& call) const {
  if (by_slot_.empty()) return nullptr;
  for (const Operand& o : call.operands) {
    if (o.storage != kNoSlot && by_slot_[o.storage]) return by_slot_[o.storage];
  }
  return nullptr;
}

void Failures::fail(uint32_t slot, const std::exception_ptr& error) {
  by_slot_.resize(num_slots_);
  by_slot_[slot] = error;
}

void Failures::fail(const TrieNode& call, const std::exception_ptr& error) {
  for (const Output& o : call.outputs) fail(o.storage, error);
  for (const Operand& o : call.operands) {
    if (o.written && o.storage != kNoSlot) fail(o.storage, error);
  }
}

std::exception_ptr explained(std::exception_ptr error, const RecordedCall& call) {
  if (!call.line) return error;
  try {
    std::rethrow_exception(error);
  } catch (Error& e) {
    e.append(fmt::format(" (recorded at {})", describe_source(call.line)));
    return std::current_exception();
  } catch (...) {
    return error;
  }
}

void call_kernel(const OperatorHandle& op, Stack& stack) {
  if (detail::dispatch_trace_enabled.load(std::memory_order_relaxed)) [[unlikely]]
    return op.redispatch_boxed(kHostKeys, stack);
  const Kernel& kernel = detail::find_kernel(op.entry(), kHostKeys);
  kernel.boxed(kernel, op, kHostKeys, stack);
}

bool lies_as_recorded(const OperatorInfo& info, const Output& promised, const Tensor& result) {
  const Geometry& g = promised.geometry;
  TENON_CHECK(result.defined() && result.dtype() == g.dtype &&
                  std::ranges::equal(result.sizes(), IntArrayRef(g.sizes)),
              Internal, fmt::format("{}: the result is not what was recorded", info.op.name()));
  return std::ranges::equal(result.strides(), IntArrayRef(g.strides)) &&
         result.storage_offset() == g.offset && result.storage().nbytes() == promised.nbytes;
}

void report_region(std::span<const RecordedCall> calls, std::span<const uint32_t> members, const char* region,
                   std::string_view engine) {
  const char* const text = lasting_text(fmt::format("{}:{}:{}", region, engine, kHost.target()));
  for (const uint32_t call : members) report_kernel(calls[call].node->info->schema->name.c_str(), text);
}

}  // namespace tenon::record
