#include "backends/cpu/rows/row_plan.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/pointwise/printed_kernels.h"

namespace tenon::cpu {

RowKernel::RowKernel(const expr::Key& key, const expr::Expression* typed) {
  if (!typed) return;
  printed_ = find_printed_kernel(key);
  if (!printed_) program_ = std::make_unique<const Compiled>(*typed);
}

namespace {

// The passes of an operator are cut as the build cut them when it printed their kernels. Of others, as a
// fused region has them, what is reduced is kept: with it in place of an operand, later passes are often an
// operator's, and have its kernels.
expr::RowPasses cut_for(const expr::Expression& e, expr::RowForm form, bool keep) {
  if (!keep) return expr::cut_passes(e, form, expr::Keep::Nothing);
  expr::RowPasses cut = expr::cut_passes(e, form, expr::Keep::Dear);
  const bool printed = std::all_of(cut.passes.begin(), cut.passes.end(), [](const expr::RowPass& pass) {
    return !pass.elements.flat || find_printed_kernel(pass.elements.flat->key);
  });
  return printed ? std::move(cut) : expr::cut_passes(e, form, expr::Keep::Reduced);
}

}  // namespace

RowPlan::RowPlan(const expr::Expression& e, expr::RowForm form, bool keep) : cut(cut_for(e, form, keep)) {
  printed = true;
  repeatable.assign(e.num_inputs, form == expr::RowForm::Along);
  const auto refuse = [&](const expr::RowPlace& from) {
    if (from.kind == expr::RowPlace::Kind::Operand) repeatable[from.index] = false;
  };
  for (const expr::RowPass& pass : cut.passes) {
    elements.emplace_back(pass.elements);
    rows.emplace_back(pass.rows);
    const bool summed = form == expr::RowForm::Along && expr::is_summed(pass);
    sums.push_back(summed ? find_printed_kernel(expr::summed(pass.elements.flat->key)) : nullptr);
    printed = printed && (!elements.back() || elements.back().is_printed());
    // PointwiseFn takes repeated inputs where there are several, as bits of 32.
    const size_t count = pass.elements.inputs.size();
    if (!elements.back().is_printed() || count < 2 || count + pass.elements.outputs.size() > 32)
      std::for_each(pass.elements.inputs.begin(), pass.elements.inputs.end(), refuse);
    for (const expr::RowReducer& r : pass.reducers) refuse(r.from), refuse(r.first);
  }
}

const RowPlan& RowPlans::get(expr::RowForm form, bool keep) {
  auto& slot = plans_[2 * static_cast<size_t>(form) + static_cast<size_t>(keep)];
  if (const RowPlan* known = slot.load(std::memory_order_acquire)) return *known;
  auto fresh = std::make_unique<const RowPlan>(e_, form, keep);
  const RowPlan* present = nullptr;
  if (slot.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *present;  // another thread was first
}

}  // namespace tenon::cpu
