// mm, addmm, bmm, mv, dot, products of packed matrices: tensors to matrix products, operands in place.
#include <type_traits>

#include "backends/cpu/copy/copy.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/report.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/generated/matmul/kernels.h"
#include "tenon/iter/pointwise.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

/// Our own kernel, as reports name it.
constexpr KernelNames kOwnKernel = TENON_KERNEL_NAMES("gemm");

/// A matrix of a product: a 2-d tensor, or the last two dimensions of one.
struct Matrix {
  int64_t row, column, batch;
  explicit Matrix(const Tensor& m)
      : row(m.strides()[m.strides().size() - 2]),
        column(m.strides().back()),
        batch(m.sizes().size() == 3 ? m.strides()[0] : 0) {}
};

/// c = alpha * a b + beta * c; elements are T.
template <class T>
void product(const char* op, BatchedGemmArgs<T> args, const Scalar& alpha, const Scalar& beta) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    gemm_batched(args, {static_cast<float>(alpha.to_double()), static_cast<float>(beta.to_double())});
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      args.one.alpha = static_cast<T>(alpha.to_double());
      args.one.beta = static_cast<T>(beta.to_double());
    } else {
      // Not by way of double, which holds integers to 2^53 only.
      args.one.alpha = static_cast<T>(alpha.to_int());
      args.one.beta = static_cast<T>(beta.to_int());
    }
    gemm_batched(args);
  }
  report_kernel(op, kOwnKernel);
}

/// The dtypes that gemm computes in; narrower integers are widened first.
template <class F>
void switch_gemm_dtype(DType dtype, const char* op, F&& f) {
  TENON_DISPATCH_SWITCH(
      dtype, op, "the integers, float16, bfloat16, float32, float64",
      TENON_CASES_FLOATING([&] { f.template operator()<scalar_t>(); })
          TENON_DISPATCH_CASE(DType::Int32, [&] { f.template operator()<scalar_t>(); })
              TENON_DISPATCH_CASE(DType::Int64, [&] { f.template operator()<scalar_t>(); })
                  TENON_DISPATCH_CASE(DType::Float16, [&] { f.template operator()<scalar_t>(); })
                      TENON_DISPATCH_CASE(DType::BFloat16, [&] { f.template operator()<scalar_t>(); }));
}

bool is_widened(DType t) { return is_integral(t, false) && t != DType::Int32 && t != DType::Int64; }

const PointwiseInfo& pointwise_of(std::string_view text) {
  static constexpr std::string_view kTensors[] = {"sum", "out"}, kScalars[] = {"alpha", "beta"};
  const size_t n = text.find("out") == std::string_view::npos ? 1 : 2;
  return make_pointwise(text, std::span(kTensors).first(n), std::span(kScalars).first(n), ComputeRule::Same,
                        ResultRule::Compute);
}

void multiply(const char* op, const Tensor& a, const Tensor& b, Tensor& out, const Scalar& alpha,
              const Scalar& beta, const void* bias = nullptr);

/// Of complex numbers: four products of their parts, in place, with twice the stride.
void multiply_complex(const char* op, const Tensor& a, const Tensor& b, Tensor& out, const Scalar& alpha,
                      const Scalar& beta) {
  const bool plain = !alpha.is_complex() && alpha.to_double() == 1 && beta.to_complex() == 0.0;
  Tensor sum = plain ? out : make_empty(out.sizes(), out.dtype());
  Tensor re = ops::part_of(sum, 0), im = ops::part_of(sum, 1);
  const Tensor ar = ops::part_of(a, 0), ai = ops::part_of(a, 1);
  const Tensor br = ops::part_of(b, 0), bi = ops::part_of(b, 1);
  multiply(op, ar, br, re, 1, 0);
  multiply(op, ai, bi, re, -1, 1);
  multiply(op, ar, bi, im, 1, 0);
  multiply(op, ai, br, im, 1, 1);
  if (plain) return;
  // alpha * sum + beta * out by the pointwise product; a beta of 0 leaves `out` unread.
  static const PointwiseInfo& both = pointwise_of("alpha * sum + beta * out");
  static const PointwiseInfo& one = pointwise_of("alpha * sum");
  const Tensor* tensors[] = {&sum, &out};
  const Scalar* scalars[] = {&alpha, &beta};
  if (beta.to_bool())
    pointwise_out(both, tensors, scalars, out, false);
  else
    pointwise_out(one, std::span(tensors).first(1), std::span(scalars).first(1), out, false);
}

/// [m, k] x [k, n] into out, or a batch of them; integers that gemm lacks go through int64, which wraps to
/// the same values. `bias`: GemmArgs::bias.
void multiply(const char* op, const Tensor& a, const Tensor& b, Tensor& out, const Scalar& alpha,
              const Scalar& beta, const void* bias) {
  if (a.is_complex()) return multiply_complex(op, a, b, out, alpha, beta);
  if (is_widened(a.dtype())) {
    Tensor wide = ops::as_dtype(out, DType::Int64);
    multiply(op, ops::as_dtype(a, DType::Int64), ops::as_dtype(b, DType::Int64), wide, alpha, beta);
    ops::copy_elements(out, wide, op);
    return;
  }
  const Matrix ma(a), mb(b), mc(out);
  switch_gemm_dtype(a.dtype(), op, [&]<class T>() {
    const IntArrayRef left = a.sizes();
    BatchedGemmArgs<T> all{.batch = left.size() == 3 ? left[0] : 1,
                           .a_batch = ma.batch,
                           .b_batch = mb.batch,
                           .c_batch = mc.batch};
    GemmArgs<T>& args = all.one;
    args.m = left[left.size() - 2];
    args.n = b.sizes().back();
    args.k = left.back();
    args.a = static_cast<const T*>(a.data_ptr());
    args.a_row = ma.row;
    args.a_col = ma.column;
    args.b = static_cast<const T*>(b.data_ptr());
    args.b_row = mb.row;
    args.b_col = mb.column;
    args.c = static_cast<T*>(out.data_ptr());
    args.c_row = mc.row;
    args.c_col = mc.column;
    args.bias = static_cast<const T*>(bias);
    if (args.m > 0 && args.n > 0 && all.batch > 0) product(op, all, alpha, beta);
  });
}

/// Whether the product can add `self` to its rows: one row for all, which the result does not overwrite.
bool is_bias(const Tensor& self, const Scalar& beta, const Tensor& out) {
  const IntArrayRef sizes = self.sizes();
  const bool one_row = sizes.size() == 1 || (sizes.size() == 2 && (sizes[0] == 1 || self.strides()[0] == 0));
  return one_row && !beta.is_complex() && beta.to_double() == 1 &&
         (out.dtype() == DType::Float32 || out.dtype() == DType::Float64) && out.sizes()[1] > 1 &&
         sizes.back() == out.sizes()[1] && self.strides().back() == 1 && out.strides()[1] == 1 &&
         self.storage() != out.storage();
}

Tensor view_2d(const Tensor& t, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  const Dims sizes{rows, columns}, strides{row_stride, column_stride};
  return make_view(t, sizes, strides, t.storage_offset());
}

}  // namespace

void mm(const Tensor& self, const Tensor& mat2, Tensor& out) { multiply("mm", self, mat2, out, 1, 0); }

void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha, Tensor& out) {
  if (is_bias(self, beta, out)) return multiply("addmm", mat1, mat2, out, alpha, 0, self.data_ptr());
  if (beta.to_bool()) ops::copy_elements(out, self, "addmm");
  multiply("addmm", mat1, mat2, out, alpha, beta);
}

void bmm(const Tensor& self, const Tensor& mat2, Tensor& out) { multiply("bmm", self, mat2, out, 1, 0); }

void mv(const Tensor& self, const Tensor& vec, Tensor& out) {
  Tensor column = view_2d(out, out.numel(), 1, 1, 1);
  multiply("mv", self, view_2d(vec, vec.numel(), 1, vec.strides()[0], 1), column, 1, 0);
}

void dot(const Tensor& self, const Tensor& tensor, Tensor& out) {
  Tensor one = view_2d(out, 1, 1, 1, 1);
  const int64_t k = self.numel();
  multiply("dot", view_2d(self, 1, k, 1, self.strides()[0]), view_2d(tensor, k, 1, tensor.strides()[0], 1),
           one, 1, 0);
}

void packed_product(const Tensor& matrix, const Tensor& panels, int64_t columns, const Tensor& bias,
                    Tensor& out) {
  const Tensor packed = ops::as_contiguous(panels);
  const Tensor last = bias.defined() ? ops::as_contiguous(bias) : bias;
  const bool in_place = out.strides()[1] == 1 || columns <= 1;  // columns of C are adjacent
  Tensor result = in_place ? out : make_empty(out.sizes(), out.dtype());
  TENON_DISPATCH_SWITCH(matrix.dtype(), "_packed_product", "float32, float64", TENON_CASES_FLOATING([&] {
                          GemmArgs<scalar_t> g;
                          g.m = out.sizes()[0], g.n = columns, g.k = matrix.sizes()[1];
                          g.a = static_cast<const scalar_t*>(matrix.data_ptr());
                          g.a_row = matrix.strides()[0], g.a_col = matrix.strides()[1];
                          g.b = static_cast<const scalar_t*>(packed.data_ptr());
                          g.b_row = kGemmPanel<scalar_t>, g.b_col = 1, g.b_panel = g.k * kGemmPanel<scalar_t>;
                          g.c = static_cast<scalar_t*>(result.data_ptr());
                          g.c_row = result.strides()[0], g.c_col = 1;
                          if (last.defined()) g.bias = static_cast<const scalar_t*>(last.data_ptr());
                          gemm(g);
                        }));
  report_kernel("_packed_product", kOwnKernel);
  if (!in_place) ops::copy_elements(out, result, "_packed_product");
}

}  // namespace tenon::cpu
