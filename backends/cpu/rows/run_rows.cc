#include "backends/cpu/rows/run_rows.h"

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/report.h"
#include "backends/cpu/rows/row_call.h"
#include "backends/cpu/rows/row_plan.h"
#include "backends/cpu/rows/row_worker.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

RowPlans& plans_of(const RowsLaunch& launch) {
  if (void* known = launch.made.load(std::memory_order_acquire)) return *static_cast<RowPlans*>(known);
  auto fresh = std::make_unique<RowPlans>(launch.expression);
  void* present = nullptr;
  if (launch.made.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *static_cast<RowPlans*>(present);  // another thread was first
}

/// The plan that a call is run by, and what the call takes from its kernels.
const RowPlan& fit(RowCall& call, RowPlans& plans) {
  if (call.across()) {
    const RowPlan& plan = plans.get(call.form, false);
    // AVX-512 computes an exponential in less time than it takes to copy the operand and keep the result.
    const bool pays = plan.rounds == 1 || !plan.is_dear || cpu_target() == CpuTarget::Avx3;
    if (plan.rounds > 0 && pays && call.go_by_places(plan.repeatable, plan.rounds)) return plan;
  }
  const RowPlan& plan = plans.get(call.form, call.whole);
  call.repeat(plan.repeatable);
  return plan;
}

/// Calls units(begin, end) for all of the call, on several threads where that pays.
template <class F>
void for_units(const RowCall& call, F&& units) {
  report_kernel(call.launch.name, TENON_KERNEL_NAMES("rows"));
  if (call.rows == 0 || call.geometry.lanes == 0) return;
  parallel_for(0, call.units(), std::max<int64_t>(1, (1 << 14) / call.unit_elements()), units);
}

class PreparedRows final : public HostRows {
 public:
  explicit PreparedRows(const RowsLaunch& launch)
      : launch_(launch), call_(launch_), plan_(fit(call_, plans_of(launch_))) {}

  void run(char* const* data, const uint64_t* numbers) const final {
    const RowAddresses at{data, numbers};
    if (!call_.is_aligned(data)) [[unlikely]]
      return run_unaligned(at);
    for_units(call_, [&](int64_t begin, int64_t end) { worker_.run(call_, plan_, at, begin, end); });
  }

 private:
  // The call was made for aligned elements.
  void run_unaligned(const RowAddresses& at) const {
    SmallVector<RowsOperand, 8> operands;
    for (size_t i = 0; i < call_.operands(); ++i) {
      operands.push_back(call_.operand(i));
      operands.back().data = at.data[i];
    }
    RowsLaunch launch = launch_;
    launch.inputs = {operands.data(), launch_.inputs.size()};
    launch.outputs = {operands.data() + launch_.inputs.size(), launch_.outputs.size()};
    launch.numbers = at.numbers;
    run_rows(launch);
  }

  const RowsLaunch launch_;
  RowCall call_;
  const RowPlan& plan_;
  mutable SpareRowWorker worker_;
};

}  // namespace

void run_rows(const RowsLaunch& launch) {
  RowCall call(launch);
  const RowPlan& plan = fit(call, plans_of(launch));
  SmallVector<char*, 8> data;
  for (size_t i = 0; i < call.operands(); ++i) data.push_back(call.operand(i).data);
  const RowAddresses at{data.data(), launch.numbers};
  for_units(call, [&](int64_t begin, int64_t end) { run_row_units(call, plan, at, begin, end); });
}

std::unique_ptr<const HostRows> prepare_rows(const RowsLaunch& launch) {
  return std::make_unique<const PreparedRows>(launch);
}

}  // namespace tenon::cpu
