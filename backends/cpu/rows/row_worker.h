// The work of one thread on a row call. Used by run_rows.cc.
#pragma once

#include "backends/cpu/rows/row_call.h"
#include "backends/cpu/rows/row_plan.h"

namespace tenon::cpu {

/// Runs units [begin, end) of the call: groups of rows, or panels.
void run_row_units(const RowCall& call, const RowPlan& plan, int64_t begin, int64_t end);

}  // namespace tenon::cpu
