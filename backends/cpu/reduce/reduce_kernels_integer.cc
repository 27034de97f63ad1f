// Block reductions of int32, int64 and bool, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/reduce_kernels_integer.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/reduce/reduce_kernels-inl.h"
#include "backends/cpu/reduce/reduce_kernels.h"
#include "hwy/highway.h"

#if HWY_ONCE
namespace tenon::cpu {

template const ReduceKernels<int32_t>& reduce_kernels(CpuTarget, ReduceOp);
template const ReduceKernels<int64_t>& reduce_kernels(CpuTarget, ReduceOp);
template const ReduceKernels<uint8_t>& reduce_kernels(CpuTarget, ReduceOp);

}  // namespace tenon::cpu
#endif
