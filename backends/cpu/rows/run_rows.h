// Runs row expressions on the CPU.
#pragma once

#include "tenon/iter/host.h"
#include "tenon/iter/rows_launch.h"

namespace tenon::cpu {

/// Computes the outputs of one call. Rows go one at a time where their elements are side by side, and
/// otherwise in panels of neighbouring rows: the same bits, as every sum follows the tree of reduce.h, and as
/// no result depends on what is kept, what is computed again, and how rows are split over threads.
void run_rows(const RowsLaunch& launch);
/// The same in two steps: what does not depend on addresses is decided here.
std::unique_ptr<const HostRows> prepare_rows(const RowsLaunch& launch);

}  // namespace tenon::cpu
