#include "backends/cpu/copy/copy.h"

#include <fmt/core.h>

#include <cstring>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/copy/row_kernels.h"
#include "tenon/core/kernel_report.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::cpu {
namespace {

// Rows of `dst` are dense where those of `src` are columns: turned in a block that stays in the cache, then
// converted.
void convert_transposed(ConvertFn convert, char* dst, BlockStrides ds, int64_t dst_item, const char* src,
                        BlockStrides ss, int64_t src_item, int64_t n0, int64_t n1) {
  constexpr int64_t kRows = 32, kColumns = 64;
  alignas(64) char turned[kRows * kColumns * 16];
  const auto transpose = row_kernels().transpose[element_size_index(src_item)];
  for (int64_t j = 0; j < n1; j += kRows) {
    const int64_t rows = std::min(kRows, n1 - j);
    for (int64_t i = 0; i < n0; i += kColumns) {
      const int64_t columns = std::min(kColumns, n0 - i);
      transpose(turned, columns * src_item, src + i * ss.inner + j * src_item, ss.inner,
                static_cast<size_t>(columns), static_cast<size_t>(rows));
      convert(dst + i * dst_item + j * ds.outer, ds, turned, {src_item, columns * src_item}, columns, rows);
    }
  }
}

bool plain_copy(const Tensor& dst, const Tensor& src) {
  return dst.dtype() == src.dtype() && dst.is_contiguous() && src.is_contiguous() &&
         dst.sizes() == src.sizes() && dst.storage() != src.storage() && dst.layout() == Layout::Strided &&
         src.layout() == Layout::Strided && static_cast<int64_t>(dst.nbytes()) <= kGrainSize * 4;
}

}  // namespace

void copy_strided(const Tensor& dst, const Tensor& src, const char* op) {
  TENON_CHECK(dst.device().is_cpu() && src.device().is_cpu(), Device,
              fmt::format("{}: expected host tensors, got {} and {}", op, to_string(dst.device()),
                          to_string(src.device())));
  report_kernel(op, "copy");
  if (plain_copy(dst, src)) {
    if (dst.numel() != 0) std::memcpy(dst.data_ptr(), src.data_ptr(), dst.nbytes());
    return;
  }
  const ConvertFn convert = convert_fn(src.dtype(), dst.dtype());
  TENON_CHECK(convert, NotImplemented,
              fmt::format("{}: no conversion from {} to {}", op, name(src.dtype()), name(dst.dtype())));
  static constexpr const char* kNames[] = {"self", "src"};
  const TensorIterator iter = TensorIteratorConfig()
                                  .set_op_name(op)
                                  .set_names(std::span(kNames).first(1), std::span(kNames).last(1))
                                  .check_all_same_dtype(false)
                                  .resize_outputs(false)
                                  .add_borrowed_output(dst)
                                  .add_borrowed_input(src)
                                  .build();
  const auto dst_item = static_cast<int64_t>(dst.itemsize()), src_item = static_cast<int64_t>(src.itemsize());
  const bool same_dtype = dst.dtype() == src.dtype();
  iter.for_each_2d([&](char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) {
    const BlockStrides ds{strides[0], strides[2]}, ss{strides[1], strides[3]};
    const bool turns = n0 > 1 && n1 > 1 && ds.inner == dst_item && ss.outer == src_item &&
                       ss.inner != src_item && ss.inner != 0;
    if (turns && same_dtype) {
      row_kernels().transpose[element_size_index(src_item)](ptrs[0], ds.outer, ptrs[1], ss.inner,
                                                            static_cast<size_t>(n0), static_cast<size_t>(n1));
    } else if (turns) {
      convert_transposed(convert, ptrs[0], ds, dst_item, ptrs[1], ss, src_item, n0, n1);
    } else {
      convert(ptrs[0], ds, ptrs[1], ss, n0, n1);
    }
  });
}

}  // namespace tenon::cpu
