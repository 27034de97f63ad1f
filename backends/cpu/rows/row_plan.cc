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

RowSums::RowSums(const expr::RowPass& pass, const RowKernel& elements) {
  const expr::RowStep& step = pass.elements;
  if (!step.flat) return;
  if (expr::is_summed(pass)) printed_ = find_printed_kernel(expr::summed(step.flat->key));
  if (!printed_ && elements.is_printed()) return;
  const auto is_sum = [](const expr::RowReducer& r) {
    return r.kind == expr::ReduceKind::Sum && r.type == expr::Type::F32;
  };
  for (const expr::RowPlace& to : step.outputs) {
    const bool reduced = to.kind == expr::RowPlace::Kind::Reducer;
    if (reduced && !is_sum(pass.reducers[to.index / 2])) return;
    reducers_.push_back(reduced ? to.index / 2 : kStored);
  }
  if (printed_) return;
  // What is kept for later passes is added up as well.
  expr::ExpressionParts parts = expr::parts_of(*step.flat);
  for (size_t r = 0; r < pass.reducers.size(); ++r) {
    const auto from = std::ranges::find(step.outputs, pass.reducers[r].from);
    const bool kept = from != step.outputs.end() && from->kind == expr::RowPlace::Kind::Kept;
    if (!kept || !is_sum(pass.reducers[r])) continue;
    parts.outputs.push_back(parts.outputs[static_cast<size_t>(from - step.outputs.begin())]);
    parts.outputs.back().operand = static_cast<uint16_t>(parts.outputs.size() - 1);
    reducers_.push_back(r);
  }
  uint32_t summed = 0;
  for (size_t o = 0; o < reducers_.size() && o < 32; ++o) summed |= uint32_t{reducers_[o] != kStored} << o;
  if (summed != 0 && reducers_.size() <= 32)
    code_ = std::make_unique<const MachineCode>(*expr::make_expression(parts), summed);
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

bool can_go_by_places(const expr::RowPasses& cut) {
  return cut.kept.empty() && std::ranges::all_of(cut.passes, [](const expr::RowPass& pass) {
           return std::ranges::all_of(
               pass.reducers, [](const expr::RowReducer& r) { return expr::num_operands(r.kind) == 1; });
         });
}

}  // namespace

RowPlan::RowPlan(const expr::Expression& e, expr::RowForm form, bool keep) : cut(cut_for(e, form, keep)) {
  printed = true;
  repeatable.assign(e.num_inputs, true);
  const auto refuse = [&](const expr::RowPlace& from) {
    if (from.kind == expr::RowPlace::Kind::Operand) repeatable[from.index] = false;
  };
  for (const expr::RowPass& pass : cut.passes) {
    elements.emplace_back(pass.elements);
    rows.emplace_back(pass.rows);
    sums.push_back(form == expr::RowForm::Along ? RowSums(pass, elements.back()) : RowSums());
    printed = printed && (!elements.back() || elements.back().is_printed());
    // PointwiseFn takes repeated inputs where there are several, as bits of 32.
    const size_t count = pass.elements.inputs.size();
    if (!elements.back().is_printed() || count < 2 || count + pass.elements.outputs.size() > 32)
      std::for_each(pass.elements.inputs.begin(), pass.elements.inputs.end(), refuse);
    for (const expr::RowReducer& r : pass.reducers) refuse(r.from), refuse(r.first);
  }
  const bool by_places = form == expr::RowForm::Across && can_go_by_places(cut);
  is_dear = by_places && !expr::cut_passes(e, form, expr::Keep::Dear).kept.empty();
  bool read_before = false;
  for (const expr::RowPass& pass : cut.passes) {
    const bool reads = pass.elements.flat || !pass.reducers.empty();
    const bool stores = std::ranges::any_of(pass.elements.outputs, [](const expr::RowPlace& to) {
      return to.kind == expr::RowPlace::Kind::Output;
    });
    idle.push_back(read_before && pass.elements.flat && !stores);
    read_before = read_before || reads;
    rounds += by_places && reads;
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
