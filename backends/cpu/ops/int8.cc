// _int8_pack and _int8_product: tensors to products of integers of 8 bits.
#include "backends/cpu/gemm/int8.h"

#include <vector>

#include "backends/cpu/report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/matmul/kernels.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

constexpr KernelNames kKernel = TENON_KERNEL_NAMES("int8");

/// A tensor's zeros as int32.
struct Zeros {
  Tensor values;
  explicit Zeros(const Tensor& zero)
      : values(zero.defined() ? ops::as_contiguous(ops::as_dtype(zero, DType::Int32)) : zero) {}
  Int8Zeros get() const {
    if (!values.defined()) return {};
    return {static_cast<const int32_t*>(values.data_ptr()), values.numel() == 1 ? 0 : 1};
  }
};

/// The first matrix of a batch.
Int8Matrix matrix_of(const Tensor& t, const Zeros& zeros) {
  const IntArrayRef strides = t.strides();
  return {static_cast<const uint8_t*>(t.data_ptr()), strides[strides.size() - 2], strides.back(),
          t.dtype() == DType::Int8, zeros.get()};
}
/// Bytes between the matrices of a batch; 0 of one for all.
int64_t batch_step(const Tensor& t, size_t rank) { return t.sizes().size() == rank ? t.strides()[0] : 0; }

/// Where the elements of dimensions [first, last) are, in order.
std::vector<int64_t> places(IntArrayRef sizes, IntArrayRef strides, size_t first, size_t last) {
  std::vector<int64_t> all{0};
  for (size_t d = first; d < last; ++d) {
    std::vector<int64_t> next;
    next.reserve(all.size() * static_cast<size_t>(sizes[d]));
    for (const int64_t place : all) {
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(place + i * strides[d]);
    }
    all = std::move(next);
  }
  return all;
}

/// Calls f for each entry of a batch, on several threads where each of them gets an entry.
template <class F>
void for_entries(int64_t count, int64_t work, const F& f) {
  constexpr int64_t kParallelWork = int64_t{1} << 18;
  const auto entries = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  };
  if (count < num_threads()) return entries(0, count);
  parallel_for(0, count, std::max<int64_t>(1, kParallelWork / std::max<int64_t>(work, 1)), entries);
}

}  // namespace

void pack_int8(const Tensor& matrix, const Tensor& zero, Tensor& out) {
  const Zeros zeros(zero);
  const IntArrayRef sizes = matrix.sizes(), strides = matrix.strides();
  const size_t rank = sizes.size(), batched = rank > 2 ? 1 : 0, columns_at = rank - (rank == 6 ? 2 : 1);
  const std::vector<int64_t> rows = places(sizes, strides, batched, columns_at),
                             columns = places(sizes, strides, columns_at, rank);
  const Int8Right b{static_cast<const uint8_t*>(matrix.data_ptr()), rows.data(), columns.data(),
                    matrix.dtype() == DType::Int8, zeros.get()};
  const auto k = static_cast<int64_t>(rows.size()), n = static_cast<int64_t>(columns.size());
  const int64_t step = batched ? strides[0] : 0, bytes = int8_panels(n) * int8_panel_bytes(k);
  // An out= of another order is written by way of one in order.
  const Tensor packed = out.is_contiguous() ? out : make_empty(out.sizes(), out.dtype());
  for_entries(batched ? sizes[0] : 1, bytes, [&](int64_t i) {
    Int8Right entry = b;
    entry.data += i * step;
    int8_pack(entry, k, n, static_cast<std::byte*>(packed.data_ptr()) + i * bytes);
  });
  if (packed.impl() != out.impl()) ops::copy_elements(out, packed, "_int8_pack");
  report_kernel("_int8_pack", kKernel);
}

void multiply_int8(const Tensor& matrix, const Tensor& packed, int64_t columns, const Tensor& zero,
                   Tensor& out) {
  const Zeros zeros(zero);
  const Tensor panels = ops::as_contiguous(packed);
  const Tensor sums = out.is_contiguous() ? out : make_empty(out.sizes(), out.dtype());
  const size_t rank = out.sizes().size();
  Int8Product one{.m = out.sizes()[rank - 2],
                  .n = columns,
                  .k = matrix.sizes().back(),
                  .a = matrix_of(matrix, zeros),
                  .packed = static_cast<const std::byte*>(panels.data_ptr()),
                  .c = static_cast<int32_t*>(sums.data_ptr()),
                  .c_row = columns};
  int64_t count = rank == 3 ? out.sizes()[0] : 1;
  const int64_t a_step = batch_step(matrix, 3), b_step = batch_step(panels, 4), c_step = one.m * columns;
  // Rows that continue from entry to entry are those of one matrix.
  if (b_step == 0 && a_step == one.m * one.a.row && one.a.zeros.step == 0) {
    one.m *= count;
    count = 1;
  }
  for_entries(count, one.m * one.n * one.k, [&](int64_t i) {
    Int8Product entry = one;
    entry.a.data += i * a_step;
    entry.packed += i * b_step;
    entry.c += i * c_step;
    int8_product(entry);
  });
  if (sums.impl() != out.impl()) ops::copy_elements(out, sums, "_int8_product");
  report_kernel("_int8_product", kKernel);
}

}  // namespace tenon::cpu
