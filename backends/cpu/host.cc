#include "tenon/iter/host.h"

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/cpu_target.h"
#include "backends/cpu/jit/compiled.h"
#include "backends/cpu/pointwise/printed_kernels.h"
#include "backends/cpu/pointwise/streaming.h"
#include "backends/cpu/rows/row_plan.h"
#include "backends/cpu/rows/run_rows.h"

namespace tenon {

namespace {

std::unique_ptr<const HostProgram> compile(const expr::Expression& e, const HostProgramOptions& options) {
  return std::make_unique<const cpu::Compiled>(e, options);
}

void free_rows(void* made) { delete static_cast<cpu::RowPlans*>(made); }

void split_pairs(void* first, void* second, const void* src, size_t n, size_t item) {
  cpu::row_kernels().split_pairs[item == 8](first, second, src, n);
}

void join_pairs(void* dst, const void* first, const void* second, size_t n, size_t item) {
  cpu::row_kernels().join_pairs[item == 8](dst, first, second, n);
}

void transpose(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, size_t rows,
               size_t columns, size_t item) {
  const size_t size = cpu::element_size_index(static_cast<int64_t>(item));
  cpu::row_kernels().transpose[size](dst, dst_stride, src, src_stride, rows, columns);
}

}  // namespace

constinit const HostBackend kHost{&cpu::convert_fn,
                                  &cpu::find_printed_kernel,
                                  &compile,
                                  &cpu::makes_machine_code,
                                  &cpu::cpu_target_name,
                                  &cpu::streams_from,
                                  &cpu::run_streaming,
                                  &split_pairs,
                                  &join_pairs,
                                  &transpose,
                                  &cpu::prepare_rows,
                                  &free_rows};

}  // namespace tenon
