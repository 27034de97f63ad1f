// RowPlan: a row expression compiled for the CPU: its passes, each with a kernel over blocks of elements.
// Used by run_rows.cc. Knows no addresses and sizes.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/jit/compiled.h"
#include "tenon/expr/passes.h"

namespace tenon::cpu {

/// An expression as what runs it: the kernel with that key that was printed at build time, or a program.
/// Without an expression there is nothing to run.
class RowKernel {
 public:
  RowKernel(const expr::Key& key, const expr::Expression* typed);
  explicit RowKernel(const expr::RowStep& step)
      : RowKernel(step.flat ? step.flat->key : expr::Key(), step.flat.get()) {}
  explicit operator bool() const noexcept { return printed_ || program_; }
  bool is_printed() const noexcept { return printed_ != nullptr; }
  /// `repeated`: as PointwiseFn takes it; 0 where the kernel is not printed.
  void operator()(void* const* ptrs, size_t n, const void* numbers, uint32_t repeated = 0) const {
    if (printed_)
      printed_(ptrs, n, numbers, repeated);
    else
      program_->run(ptrs, n, numbers);
  }

 private:
  PointwiseFn printed_ = nullptr;
  std::unique_ptr<const Compiled> program_;
};

/// What computes chunks of a pass's elements in place of its kernel and adds up those that go to float32
/// sums: printed at build time where none goes elsewhere, or machine code. Most passes have neither.
class RowSums {
 public:
  RowSums() = default;
  RowSums(const expr::RowPass& pass, const RowKernel& elements);
  /// Of each output: the reducer whose sum it is, or kStored. Those of `elements` come first, in their order.
  std::span<const size_t> reducers() const { return reducers_; }
  static constexpr size_t kStored = ~size_t{0};
  explicit operator bool() const noexcept { return printed_ || code_; }
  /// Whether the next `rows` rows of `n` elements can be added up. Counts them as calls of `elements` are
  /// counted, so that machine code is made of one of the two.
  bool take(size_t rows, size_t n) const { return printed_ || (code_ && code_->get_for(rows * n, rows)); }
  void operator()(void* const* ptrs, size_t n, const void* numbers) const {
    if (printed_)
      printed_(ptrs, n, numbers, 0);
    else
      code_->get()->run(ptrs, n, numbers);
  }

 private:
  PointwiseFn printed_ = nullptr;
  std::unique_ptr<const MachineCode> code_;
  std::vector<size_t> reducers_;
};

struct RowPlan {
  RowPlan(const expr::Expression& e, expr::RowForm form, bool keep);

  expr::RowPasses cut;
  std::vector<RowKernel> elements, rows;  ///< Of each pass.
  std::vector<RowSums> sums;              ///< Of each pass.
  bool printed = false;                   ///< All kernels over elements are.
  /// Of each pass: it finds its rows in the first cache and stores no results, which leaves the memory idle.
  std::vector<bool> idle;
  /// How often panels go through their elements place by place. 0 where they cannot: values that are kept, or
  /// reduced two by two, are in memory of the panel.
  int rounds = 0;
  /// Later rounds compute again what is dear: a call, a division or a root.
  bool is_dear = false;
  /// By operand: whether all kernels that take its elements take one that is repeated instead.
  std::vector<bool> repeatable;
};

/// The plans of one expression, each made when it is first needed. An operator keeps its own for ever.
class RowPlans {
 public:
  explicit RowPlans(const expr::Expression& e) : e_(e) {}
  ~RowPlans() {
    for (auto& plan : plans_) delete plan.load(std::memory_order_acquire);
  }
  const RowPlan& get(expr::RowForm form, bool keep);

 private:
  const expr::Expression& e_;
  std::atomic<const RowPlan*> plans_[4] = {};
};

}  // namespace tenon::cpu
