#include "backends/cpu/copy/copy.h"

#include <fmt/core.h>

#include <cstring>

#include "backends/cpu/copy/convert.h"
#include "tenon/core/kernel_report.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::cpu {
namespace {

// Rows of `dst` are dense where those of `src` are columns: a block at a time, so that every cache line that
// is fetched is used whole before it leaves.
constexpr int64_t kTransposeBlock = 32;

void copy_transposed(ConvertFn convert, char* dst, BlockStrides ds, const char* src, BlockStrides ss,
                     int64_t n0, int64_t n1) {
  for (int64_t j = 0; j < n1; j += kTransposeBlock) {
    const int64_t rows = std::min(kTransposeBlock, n1 - j);
    for (int64_t i = 0; i < n0; i += kTransposeBlock) {
      convert(dst + i * ds.inner + j * ds.outer, ds, src + i * ss.inner + j * ss.outer, ss,
              std::min(kTransposeBlock, n0 - i), rows);
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
  static constexpr const char* kNames[] = {"src"};
  const TensorIterator iter = TensorIteratorConfig()
                                  .set_op_name(op)
                                  .set_names("self", kNames)
                                  .check_all_same_dtype(false)
                                  .resize_outputs(false)
                                  .add_borrowed_output(dst)
                                  .add_borrowed_input(src)
                                  .build();
  const auto dst_item = static_cast<int64_t>(dst.itemsize()), src_item = static_cast<int64_t>(src.itemsize());
  iter.for_each_2d([&](char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) {
    const BlockStrides ds{strides[0], strides[2]}, ss{strides[1], strides[3]};
    if (n1 > 1 && ds.inner == dst_item && ss.outer == src_item && ss.inner != src_item) {
      copy_transposed(convert, ptrs[0], ds, ptrs[1], ss, n0, n1);
    } else {
      convert(ptrs[0], ds, ptrs[1], ss, n0, n1);
    }
  });
}

}  // namespace tenon::cpu
