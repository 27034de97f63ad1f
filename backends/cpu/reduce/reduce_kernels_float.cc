// Block reductions of float32 and float64, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/reduce_kernels_float.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/reduce/reduce_kernels-inl.h"
#include "backends/cpu/reduce/reduce_kernels.h"
#include "hwy/highway.h"

#if HWY_ONCE
namespace tenon::cpu {

template const ReduceKernels<float>& reduce_kernels(CpuTarget, ReduceOp);
template const ReduceKernels<double>& reduce_kernels(CpuTarget, ReduceOp);

}  // namespace tenon::cpu
#endif
