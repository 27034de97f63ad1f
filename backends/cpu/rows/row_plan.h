// RowPlan: a row expression compiled for the CPU: its passes, each with a kernel over blocks of elements.
// Used by run_rows.cc. Knows no addresses and sizes.
#pragma once

#include <atomic>
#include <memory>
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

struct RowPlan {
  RowPlan(const expr::Expression& e, expr::RowForm form, bool keep);

  expr::RowPasses cut;
  std::vector<RowKernel> elements, rows;  ///< Of each pass.
  /// Of each pass: adds up a chunk of what `elements` stores for reducers; null where the build printed none.
  std::vector<PointwiseFn> sums;
  bool printed = false;  ///< All kernels over elements are.
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
