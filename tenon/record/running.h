// What running a plan is made of: which results have failed, calls of kernels, and reports. Used by
// instances.
#pragma once

#include <bit>
#include <complex>
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

  void note(const std::exception_ptr& error) {
    if (!first_) first_ = error;
  }
  void fail(uint32_t slot, const std::exception_ptr& error);
  /// Runs `compute`, which computes a call, unless something that the call depends on has failed, and notes
  /// what it throws.
  template <class F>
  void run_call(const RecordedCall& call, F&& compute);

 private:
  /// That of an operand of a call; null if there is none.
  std::exception_ptr inherited(const TrieNode& call) const;
  /// A call that has failed: its results, and what it writes, as what follows would see other bytes than it
  /// should. Afterwards, a tensor whose write has failed is as it was before, as in a program that stops
  /// there.
  void fail(const TrieNode& call, const std::exception_ptr& error);

  size_t num_slots_;
  std::vector<std::exception_ptr> by_slot_;  // empty until something fails
  std::exception_ptr first_;
};

/// The error with the line of the call, if that is known.
std::exception_ptr explained(std::exception_ptr error, const RecordedCall& call);

template <class F>
void Failures::run_call(const RecordedCall& call, F&& compute) {
  std::exception_ptr error = inherited(*call.node);
  if (!error) {
    try {
      compute();
    } catch (...) {
      error = explained(std::current_exception(), call);
      note(error);
    }
  }
  if (error) fail(*call.node, error);
}

/// Puts the arguments of a call onto a stack; `operand(o)` makes a tensor of an Operand.
template <class F>
void push_arguments(const RecordedCall& call, std::span<const Scalar> numbers, Stack& stack, F&& operand) {
  const TrieNode& node = *call.node;
  uint32_t number = call.first_number;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const ArgumentSource& from = node.arguments[i];
    switch (from.kind) {
      case ArgumentSource::Kind::Attribute:
        stack.push_copy(node.attributes, i);
        break;
      case ArgumentSource::Kind::Tensor:
        stack.push(operand(node.operands[from.first]));
        break;
      case ArgumentSource::Kind::TensorList: {
        std::vector<Tensor> list;
        for (uint16_t k = 0; k < from.count; ++k) list.push_back(operand(node.operands[from.first + k]));
        stack.push(std::move(list));
        break;
      }
      case ArgumentSource::Kind::Number: {
        const Scalar& value = numbers[number++];
        if (from.tag == CellTag::Scalar) stack.push(value);
        if (from.tag == CellTag::Float) stack.push(value.to_double());
        if (from.tag == CellTag::Int) stack.push(value.to_int());
        break;
      }
    }
  }
}

/// The keys by which recorded calls find their kernels.
inline constexpr DispatchKeySet kHostKeys{Functionality::Dense, kCpuBackend};
/// Calls an operator's kernel on arguments that were checked when they were recorded.
void call_kernel(const OperatorHandle& op, Stack& stack);
/// Whether a call's new result lies in its storage as was said when it was recorded. Throws Error{Internal}
/// for another dtype or shape.
bool lies_as_recorded(const OperatorInfo& info, const Output& promised, const Tensor& result);

/// Whether two numbers are of the same kind and have the same bits: zeros of both signs differ.
inline bool same_bits(const Scalar& a, const Scalar& b) noexcept {
  if (a.kind() != b.kind()) return false;
  if (a.is_integral()) return a.to_int() == b.to_int();
  const auto bits = [](double v) { return std::bit_cast<uint64_t>(v); };
  const std::complex<double> x = a.to_complex(), y = b.to_complex();
  return bits(x.real()) == bits(y.real()) && bits(x.imag()) == bits(y.imag());
}

/// Reports each call by its name, with the region that it is part of and what ran that.
void report_region(std::span<const RecordedCall> calls, std::span<const uint32_t> members, const char* region,
                   std::string_view engine);

}  // namespace tenon::record
