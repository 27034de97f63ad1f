// What running a plan is made of, on a recorded segment (run_plan.cc) as on one that is replayed
// (bound_plan.h): which results have failed, calls of kernels, and reports.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/record/plan.h"
#include "tenon/record/segment.h"

namespace tenon::record {

/// What has failed in a run, by slot: calls that depend on it are left out, and inherit its error.
class Failures {
 public:
  explicit Failures(size_t num_slots) noexcept : num_slots_(num_slots) {}

  /// The first error; null if there is none.
  const std::exception_ptr& first() const noexcept { return first_; }
  bool any() const noexcept { return !by_slot_.empty(); }
  bool has(uint32_t slot) const noexcept { return !by_slot_.empty() && by_slot_[slot]; }
  const std::exception_ptr& of(uint32_t slot) const noexcept { return by_slot_[slot]; }
  /// That of an operand of a call; null if there is none.
  std::exception_ptr inherited(const TrieNode& call) const;

  void note(const std::exception_ptr& error) {
    if (!first_) first_ = error;
  }
  void fail(uint32_t slot, const std::exception_ptr& error);
  /// A call that has failed: its results, and what it writes, as what follows would see other bytes than it
  /// should. Afterwards, a tensor whose write has failed is as it was before, as in a program that stops
  /// there.
  void fail(const TrieNode& call, const std::exception_ptr& error);

 private:
  size_t num_slots_;
  std::vector<std::exception_ptr> by_slot_;  // empty until something fails
  std::exception_ptr first_;
};

/// The error with the line of the call, if that is known.
std::exception_ptr explained(std::exception_ptr error, const RecordedCall& call);

/// The keys by which recorded calls find their kernels.
inline constexpr DispatchKeySet kHostKeys{Functionality::Dense, kCpuBackend};
/// Calls an operator's kernel on arguments that were checked when they were recorded.
void call_kernel(const OperatorHandle& op, Stack& stack);
/// Whether a call's new result lies in its storage as was said when it was recorded. Throws Error{Internal}
/// for another dtype or shape.
bool lies_as_recorded(const OperatorInfo& info, const Output& promised, const Tensor& result);

/// Reports each call by its name, with the region that it is part of and what ran that.
void report_region(const std::vector<RecordedCall>& calls, std::span<const uint32_t> members,
                   const char* region, std::string_view engine);

}  // namespace tenon::record
