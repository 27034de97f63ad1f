#include "tenon/iter/cpu_kernel.h"

#include <fmt/core.h>

#include "tenon/core/kernel_report.h"

namespace tenon::detail {

KernelConversions::KernelConversions(const TensorIterator& iter, const DType* dtypes, int count) {
  TENON_CHECK(iter.ntensors() == count && iter.noutputs() == 1, Value,
              fmt::format("{}: the kernel takes {} inputs and has one output, the iterator has {} and {}",
                          iter.op_name(), count - 1, iter.ninputs(), iter.noutputs()));
  TENON_CHECK(iter.device().is_cpu(), Device,
              fmt::format("{}: cpu_kernel got tensors on {}", iter.op_name(), to_string(iter.device())));
  for (int i = 0; i < count; ++i) {
    const DType have = iter.dtype(i);
    if (have == dtypes[i]) continue;
    TENON_CHECK(iter.promotes(), Type,
                fmt::format("{}: {} {} is {}, the kernel's is {}", iter.op_name(), i ? "input" : "output",
                            i ? i - 1 : 0, name(have), name(dtypes[i])));
    convert_[i] = i ? kHost.convert(have, dtypes[i]) : kHost.convert(dtypes[i], have);
    TENON_CHECK(
        convert_[i], NotImplemented,
        fmt::format("{}: no conversion between {} and {}", iter.op_name(), name(have), name(dtypes[i])));
    any_ = true;
  }
  report_kernel(iter.op_name(), "cpu_kernel");
}

}  // namespace tenon::detail
