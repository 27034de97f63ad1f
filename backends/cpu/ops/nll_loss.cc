// nll_loss and its gradient. Targets are checked before anything is written; sums follow the fixed tree.
#include <fmt/core.h>

#include <vector>

#include "backends/cpu/ops/strided.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/report.h"
#include "tenon/core/half.h"
#include "tenon/generated/softmax/kernels.h"

namespace tenon::cpu {
namespace {

/// A call's arguments, converted and checked: row r has class targets[r] and weight weights[r], 0 where
/// ignored.
template <class T>
struct Loss {
  int64_t rows, classes;
  std::vector<int64_t> targets;
  std::vector<uint8_t> ignored;
  std::vector<T> weights;

  Loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t ignore_index)
      : rows(target.numel()), classes(self.sizes().back()) {
    read(target, targets);
    std::vector<T> by_class;
    if (weight.defined()) read(weight, by_class);
    weights.resize(targets.size());
    ignored.resize(targets.size());
    for (size_t r = 0; r < targets.size(); ++r) {
      const int64_t t = targets[r];
      ignored[r] = t == ignore_index;
      if (ignored[r]) {
        weights[r] = T(0);
        continue;
      }
      TENON_CHECK(t >= 0 && t < classes, Index,
                  fmt::format("nll_loss: Target {} is out of bounds (row {}, {} classes)", t, r, classes));
      weights[r] = by_class.empty() ? T(1) : by_class[static_cast<size_t>(t)];
    }
  }

  template <class U>
  static void read(const Tensor& t, std::vector<U>& into) {
    into.reserve(static_cast<size_t>(t.numel()));
    for_each_tile<U>(static_cast<const char*>(t.data_ptr()), dims_of(t),
                     convert_from(t.dtype(), dtype_of<U>, "nll_loss"),
                     [&](const U* p, int64_t n) { into.insert(into.end(), p, p + n); });
  }
};

template <class T>
void store(const T* from, Tensor& to) {
  if (to.numel() == 0) return;  // the memory of nothing may have no address
  const ConvertFn f = convert_fn(dtype_of<T>, to.dtype());
  f(to.data_ptr(), {static_cast<int64_t>(to.itemsize()), 0}, from, {sizeof(T), 0}, to.numel(), 1);
}

template <class T>
void forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
             int64_t ignore_index, Tensor& output, Tensor& total_weight) {
  const Loss<T> loss(self, target, weight, ignore_index);
  const ConvertFn convert = convert_fn(self.dtype(), dtype_of<T>);
  const auto item = static_cast<int64_t>(self.itemsize());
  const int64_t row_stride = self.dim() == 2 ? self.strides()[0] * item : 0,
                class_stride = self.strides().back() * item;
  const auto* base = static_cast<const char*>(self.data_ptr());
  std::vector<T> losses(loss.targets.size());
  for (size_t r = 0; r < losses.size(); ++r) {
    if (loss.ignored[r]) continue;
    T x{};
    convert(&x, {sizeof(T), 0}, base + static_cast<int64_t>(r) * row_stride + loss.targets[r] * class_stride,
            {item, 0}, 1, 1);
    losses[r] = -loss.weights[r] * x;
  }
  const T total = reduce_contiguous(ReduceOp::Sum, loss.weights.data(), loss.weights.size());
  T zero = 0;
  if (reduction == 0) {
    store(losses.data(), output);
    store(&zero, total_weight);
    return;
  }
  T sum = reduce_contiguous(ReduceOp::Sum, losses.data(), losses.size());
  if (reduction == 1) sum = sum / total;
  store(&sum, output);
  store(&total, total_weight);
}

template <class T>
void backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor& weight,
              int64_t reduction, int64_t ignore_index, const Tensor& total_weight, Tensor& out) {
  const Loss<T> loss(self, target, weight, ignore_index);
  std::vector<T> grads, total;
  Loss<T>::read(grad_output, grads);
  Loss<T>::read(total_weight, total);
  const ConvertFn convert = convert_fn(dtype_of<T>, out.dtype());
  const auto item = static_cast<int64_t>(out.itemsize());
  auto* base = static_cast<char*>(out.data_ptr());
  std::fill(base, base + out.nbytes(), char{0});
  for (size_t r = 0; r < loss.targets.size(); ++r) {
    if (loss.ignored[r]) continue;
    T g = -loss.weights[r] * (reduction == 0 ? grads[r] : grads[0]);
    if (reduction == 1) g = g / total[0];
    convert(base + (static_cast<int64_t>(r) * loss.classes + loss.targets[r]) * item, {item, 0}, &g,
            {sizeof(T), 0}, 1, 1);
  }
}

}  // namespace

void nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                      int64_t ignore_index, Tensor& out0, Tensor& out1) {
  report_kernel("nll_loss_forward", TENON_KERNEL_NAMES("rows"));
  const auto run = self.dtype() == DType::Float64 ? &forward<double> : &forward<float>;
  run(self, target, weight, reduction, ignore_index, out0, out1);
}

void nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignore_index,
                       const Tensor& total_weight, Tensor& out) {
  report_kernel("nll_loss_backward", TENON_KERNEL_NAMES("rows"));
  const auto run = self.dtype() == DType::Float64 ? &backward<double> : &backward<float>;
  run(grad_output, self, target, weight, reduction, ignore_index, total_weight, out);
}

}  // namespace tenon::cpu
