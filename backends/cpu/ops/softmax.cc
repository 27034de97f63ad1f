// softmax, log_softmax and their gradients: rows along one dimension, each shifted by its maximum.
//
// Rows are packed into a block of the compute type, several short ones at a time. Maxima and sums follow the
// fixed tree of reductions, exp and log are the expressions' own: the same bits for every stride, instruction
// set and thread count.
#include <vector>

#include "backends/cpu/ops/block_expr.h"
#include "backends/cpu/ops/report.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/reduce/reduce.h"
#include "tenon/core/half.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/softmax/kernels.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kBlock = 1024;

/// Rows of a tensor along `dim`.
template <class T>
struct Rows {
  StridedDims kept, along;
  char* base;
  ConvertFn to_compute, from_compute;
  int64_t item;

  Rows(const Tensor& t, int64_t dim, const char* op)
      : base(static_cast<char*>(t.data_ptr())),
        to_compute(convert_from(t.dtype(), dtype_of<T>, op)),
        from_compute(convert_from(dtype_of<T>, t.dtype(), op)),
        item(static_cast<int64_t>(t.itemsize())) {
    Dims mask(t.sizes().size(), 0);
    if (!mask.empty()) mask[static_cast<size_t>(wrap_dim(dim, t.dim(), op))] = 1;
    kept = dims_where(t, mask, false);
    along = dims_where(t, mask, true);
  }
  int64_t count() const { return kept.numel(); }
  int64_t length() const { return along.numel(); }
  void read(int64_t row, T* into) const {
    for_each_tile<T>(base + kept.offset(row), along, to_compute, [&](const T* p, int64_t n) {
      std::copy(p, p + n, into);
      into += n;
    });
  }
  void write(int64_t row, const T* from) const {
    scatter(base + kept.offset(row), along, from_compute, from);
  }
};

/// Repeats each row's number over its elements.
template <class T>
void spread(const T* numbers, int64_t rows, int64_t length, T* out) {
  for (int64_t r = 0; r < rows; ++r) std::fill(out + r * length, out + (r + 1) * length, numbers[r]);
}

template <class T>
void reduce_rows(ReduceOp op, const T* block, int64_t rows, int64_t length, T* out) {
  for (int64_t r = 0; r < rows; ++r)
    out[r] = reduce_contiguous(op, block + r * length, static_cast<size_t>(length));
}

/// Blocks of rows over threads: body(first, rows, scratch, numbers), where scratch has `buffers` times
/// rows * length elements, and numbers one for each row.
template <class T, class F>
void for_row_blocks(int64_t count, int64_t length, size_t buffers, F&& body) {
  if (count == 0 || length == 0) return;
  const int64_t at_once = std::min(std::max<int64_t>(kBlock / length, 1), count);
  const int64_t blocks = (count + at_once - 1) / at_once;
  const size_t numbers = buffers * static_cast<size_t>(at_once * length),
               total = numbers + static_cast<size_t>(at_once);
  parallel_for(0, blocks, std::max<int64_t>((1 << 14) / (at_once * length), 1),
               [&](int64_t begin, int64_t end) {
                 // A few short rows need no allocation.
                 constexpr size_t kSmall = 512;
                 alignas(64) T small[kSmall];
                 std::vector<T> large(total > kSmall ? total : 0);
                 T* scratch = total > kSmall ? large.data() : small;
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t first = b * at_once;
                   body(first, std::min(at_once, count - first), scratch, scratch + numbers);
                 }
               });
}

template <class T>
void softmax_rows(const Tensor& self, int64_t dim, bool log, Tensor& out, const char* op) {
  static const BlockExpr exp_shifted("exp(x - m)", {"x", "m"});
  static const BlockExpr divide("e / s", {"e", "s"});
  static const BlockExpr minus_log("(x - m) - log(s)", {"x", "m", "s"});
  const Rows<T> in(self, dim, op), to(out, dim, op);
  const int64_t n = in.length();
  for_row_blocks<T>(in.count(), n, 3, [&](int64_t first, int64_t rows, T* x, T* numbers) {
    const int64_t size = rows * n;
    T *m = x + size, *e = m + size;
    const auto all = static_cast<size_t>(size);
    for (int64_t r = 0; r < rows; ++r) in.read(first + r, x + r * n);
    reduce_rows(ReduceOp::Max, x, rows, n, numbers);
    spread(numbers, rows, n, m);
    exp_shifted.run<T>(e, all, nullptr, x, m);
    reduce_rows(ReduceOp::Sum, e, rows, n, numbers);
    if (log) {
      T* s = e;  // exponentials are not needed any more
      spread(numbers, rows, n, s);
      minus_log.run<T>(x, all, nullptr, x, m, s);
    } else {
      spread(numbers, rows, n, m);
      divide.run<T>(x, all, nullptr, e, m);
    }
    for (int64_t r = 0; r < rows; ++r) to.write(first + r, x + r * n);
  });
}

template <class T>
void backward_rows(const Tensor& grad_output, const Tensor& output, int64_t dim, bool log, Tensor& out,
                   const char* op) {
  static const BlockExpr product("g * y", {"g", "y"});
  static const BlockExpr gradient("y * (g - s)", {"g", "y", "s"});
  static const BlockExpr log_gradient("g - exp(y) * s", {"g", "y", "s"});
  const Rows<T> grads(grad_output, dim, op), results(output, dim, op), to(out, dim, op);
  const int64_t n = results.length();
  for_row_blocks<T>(results.count(), n, 3, [&](int64_t first, int64_t rows, T* g, T* numbers) {
    const int64_t size = rows * n;
    T *y = g + size, *s = y + size;
    const auto all = static_cast<size_t>(size);
    for (int64_t r = 0; r < rows; ++r) {
      grads.read(first + r, g + r * n);
      results.read(first + r, y + r * n);
    }
    if (log) {
      reduce_rows(ReduceOp::Sum, g, rows, n, numbers);
    } else {
      product.run<T>(s, all, nullptr, g, y);
      reduce_rows(ReduceOp::Sum, s, rows, n, numbers);
    }
    spread(numbers, rows, n, s);
    (log ? log_gradient : gradient).run<T>(g, all, nullptr, g, y, s);
    for (int64_t r = 0; r < rows; ++r) to.write(first + r, g + r * n);
  });
}

template <class F>
void with_compute(DType type, const char* op, F&& f) {
  report_kernel(op, TENON_KERNEL_NAMES("rows"));
  if (type == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

}  // namespace

void softmax(const Tensor& self, int64_t dim, bool, Tensor& out) {
  with_compute(self.dtype(), "softmax",
               [&]<class T>() { softmax_rows<T>(self, dim, false, out, "softmax"); });
}
void log_softmax(const Tensor& self, int64_t dim, bool, Tensor& out) {
  with_compute(self.dtype(), "log_softmax",
               [&]<class T>() { softmax_rows<T>(self, dim, true, out, "log_softmax"); });
}
void softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, DType, Tensor& out) {
  with_compute(output.dtype(), "softmax_backward", [&]<class T>() {
    backward_rows<T>(grad_output, output, dim, false, out, "softmax_backward");
  });
}
void log_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, DType, Tensor& out) {
  with_compute(output.dtype(), "log_softmax_backward", [&]<class T>() {
    backward_rows<T>(grad_output, output, dim, true, out, "log_softmax_backward");
  });
}

}  // namespace tenon::cpu
