#include "backends/cpu/rows/run_rows.h"

#include "backends/cpu/ops/report.h"
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

}  // namespace

void run_rows(const RowsLaunch& launch) {
  report_kernel(launch.name, TENON_KERNEL_NAMES("rows"));
  RowCall call(launch);
  if (call.rows == 0 || call.geometry.lanes == 0) return;
  const RowPlan& plan = plans_of(launch).get(call.form, call.whole);
  call.repeat(plan.repeatable);
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / call.unit_elements());
  parallel_for(0, call.units(), grain,
               [&](int64_t begin, int64_t end) { run_row_units(call, plan, begin, end); });
}

}  // namespace tenon::cpu
