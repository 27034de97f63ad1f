// One direction of a recurrent layer and its gradients: a small product and one expression for each step.
//
// The bits are those of the matrix product (gemm.h) and of expressions, so they depend on neither threads nor
// the instruction set, nor on other sequences.
#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/ops/recurrent_cells.h"
#include "backends/cpu/report.h"
#include "tenon/core/parallel.h"
#include "tenon/core/tensor.h"
#include "tenon/generated/recurrent/kernels.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/matmul/panels.h"
#include "tenon/ops/recurrent/geometry.h"

namespace tenon::cpu {
namespace {

using ops::Cell;
using ops::RecurrenceShape;
using ops::RecurrenceStep;

constexpr const char* kName = "_recurrence";

/// Multiplications that each further thread must bring.
constexpr double kParallelWork = 1 << 20;

/// A matrix as a product reads it. Strides count elements.
struct Operand {
  const void* data;
  int64_t row, column;
  int64_t panel = 0;  // GemmArgs::b_panel
};

template <class T>
void multiply_as(int64_t m, int64_t n, int64_t k, Operand a, Operand b, RowSpan c, bool adds) {
  GemmArgs<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = static_cast<const T*>(a.data), g.a_row = a.row, g.a_col = a.column;
  g.b = static_cast<const T*>(b.data), g.b_row = b.row, g.b_col = b.column, g.b_panel = b.panel;
  g.c = reinterpret_cast<T*>(c.data), g.c_row = c.row / static_cast<int64_t>(sizeof(T)), g.c_col = 1;
  g.beta = adds ? T(1) : T(0);
  gemm(g);
}

/// What both passes share: the sizes, and operands in the type that computes, contiguous.
class Recurrence {
 public:
  /// `like`: the input or the output.
  Recurrence(const Tensor& like, const Tensor& hx, const Tensor& cx, const Tensor& weight, const Tensor& bias,
             const Tensor& projection, const Tensor& batch_sizes, int64_t cell, bool reverse)
      : shape_(ops::recurrence_shape(like, hx, cx, weight, bias, projection, batch_sizes, cell)),
        steps_(ops::recurrence_steps(shape_, batch_sizes, reverse)),
        type_(ops::recurrence_dtype(like.dtype())),
        item_(type_ == DType::Float64 ? 8 : 4),
        state_bytes_(shape_.size * item_),
        hidden_bytes_(shape_.hidden * item_),
        gate_bytes_(shape_.gates * hidden_bytes_),
        hx_(dense(hx)),
        cx_(dense(cx)),
        weight_(dense(weight)),
        projection_(dense(projection)) {}

 protected:
  Tensor dense(const Tensor& t) const {
    return t.defined() ? ops::as_contiguous(ops::as_dtype(t, type_)) : t;
  }
  Tensor scratch(int64_t rows, int64_t columns) const {
    const Dims sizes{rows, columns};
    return make_empty(sizes, type_);
  }
  Tensor make_zeros(int64_t columns) const {
    const Tensor t = scratch(1, columns);
    ops::zero_elements(t);
    return t;
  }
  static RowSpan rows_of(const Tensor& t, int64_t row_bytes) {
    return {static_cast<std::byte*>(t.data_ptr()), row_bytes};
  }
  /// Row-major rows as the left operand of a product.
  Operand left(RowSpan rows) const { return {rows.data, rows.row / item_, 1}; }

  void multiply(int64_t m, int64_t n, int64_t k, Operand a, Operand b, RowSpan c, bool adds = false) const {
    if (type_ == DType::Float64)
      multiply_as<double>(m, n, k, a, b, c, adds);
    else
      multiply_as<float>(m, n, k, a, b, c, adds);
  }
  /// Adjacent rows.
  static void copy_rows(RowSpan to, RowSpan from, int64_t rows) {
    if (rows > 0) std::memcpy(to.data, from.data, static_cast<size_t>(rows * from.row));
  }

  const HostProgram& program(CellPart part) const {
    return cell_program(shape_.cell, shape_.onnx_order, part, type_);
  }

  /// Calls f(first, last) for ranges of sequences, on several threads where that pays.
  template <class F>
  void for_sequences(const F& f) const {
    if (shape_.batch == 0) return;
    const double work = static_cast<double>(shape_.rows) * static_cast<double>(weight_.numel());
    const auto most = static_cast<int64_t>(work / kParallelWork);
    const int64_t threads = std::clamp<int64_t>(std::min<int64_t>(num_threads(), most), 1, shape_.batch);
    parallel_for(0, shape_.batch, (shape_.batch + threads - 1) / threads, f);
  }
  /// How many of the sequences [first, last) have a step.
  static int64_t count(const RecurrenceStep& step, int64_t first, int64_t last) {
    return std::min(step.rows, last) - first;
  }

  const RecurrenceShape shape_;
  const std::vector<RecurrenceStep> steps_;
  const DType type_;
  const int64_t item_, state_bytes_, hidden_bytes_, gate_bytes_;
  const Tensor hx_, cx_, weight_, projection_;
};

/// A result in the type that computes: the tensor itself, or one that is converted in the end.
class Result {
 public:
  Result(Tensor& out, DType type)
      : out_(out), computed_(out.dtype() == type ? out : make_empty(out.sizes(), type)) {}
  const Tensor& tensor() const { return computed_; }
  void finish() {
    if (computed_.impl() != out_.impl()) ops::copy_elements(out_, computed_, kName);
  }

 private:
  Tensor& out_;
  const Tensor computed_;
};

class Forward : Recurrence {
 public:
  Forward(const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& weight, const Tensor& bias,
          const Tensor& projection, const Tensor& batch_sizes, int64_t cell, bool reverse)
      : Recurrence(input, hx, cx, weight, bias, projection, batch_sizes, cell, reverse),
        input_(dense(input)),
        bias_(bias.defined() ? dense(bias) : make_zeros(shape_.gates * shape_.hidden)) {}

  void run(const Tensor& output, const Tensor& hy, const Tensor& cy, const Tensor& kept, bool keep) {
    output_ = rows_of(output, state_bytes_);
    h_ = rows_of(hy, state_bytes_), c_ = rows_of(cy, hidden_bytes_);
    copy_rows(h_, rows_of(hx_, state_bytes_), shape_.batch);
    if (cx_.defined()) copy_rows(c_, rows_of(cx_, hidden_bytes_), shape_.batch);
    keep_ = keep && shape_.kept_gates > 0;
    kept_ = rows_of(kept, shape_.kept_gates * hidden_bytes_);
    pack_weight();
    for_sequences([this](int64_t first, int64_t last) { run(first, last); });
  }

 private:
  /// The transposed weight in panels, as the product reads them: every step reads all of it. Few steps do
  /// not pay for the copy.
  void pack_weight() {
    constexpr size_t kFewSteps = 4;
    if (shape_.is_packed) {
      packed_ = weight_;
      return;
    }
    if (steps_.size() < kFewSteps) return;
    const int64_t n = shape_.gates * shape_.hidden, k = shape_.size, width = ops::panel_width(type_);
    packed_ = scratch(ops::panel_count(n, type_), k * width);
    for (int64_t j = 0; j < n; j += width) {
      kHost.transpose(rows_of(packed_, k * item_).from(j).data, width * item_,
                      rows_of(weight_, k * item_).from(j).data, k * item_,
                      static_cast<size_t>(std::min(width, n - j)), static_cast<size_t>(k),
                      static_cast<size_t>(item_));
    }
  }

  /// The products of states with the weight.
  void multiply_states(RowSpan states, int64_t rows, RowSpan products) const {
    const int64_t n = shape_.gates * shape_.hidden, k = shape_.size, width = ops::panel_width(type_);
    const Operand right = packed_.defined() ? Operand{packed_.data_ptr(), width, 1, k * width}
                                            : Operand{weight_.data_ptr(), 1, k};
    multiply(rows, n, k, left(states), right, products);
  }

  void run(int64_t first, int64_t last) {
    const Tensor products = scratch(last - first, shape_.gates * shape_.hidden);
    const Tensor unscaled = scratch(projection_.defined() ? last - first : 0, shape_.hidden);
    const RowSpan m = rows_of(products, gate_bytes_), raw = rows_of(unscaled, hidden_bytes_);
    const HostProgram& step_program = program(keep_ ? CellPart::KeptStep : CellPart::Step);
    for (const RecurrenceStep& step : steps_) {
      const int64_t rows = count(step, first, last), row = step.first + first;
      if (rows <= 0) continue;
      check_stop();
      multiply_states(h_.from(first), rows, m);
      const RowSpan out = output_.from(row);
      RowSlots slots;
      slots.add(projection_.defined() ? raw : out);
      if (shape_.cell == Cell::Lstm) slots.add(c_.from(first));
      if (keep_) slots.add(kept_.from(row), shape_.kept_gates, hidden_bytes_);
      slots.add(rows_of(input_, gate_bytes_).from(row), shape_.gates, hidden_bytes_);
      slots.add(m, shape_.gates, hidden_bytes_);
      slots.add(rows_of(bias_, 0), shape_.gates, hidden_bytes_);
      if (shape_.cell == Cell::Lstm) slots.add(c_.from(first));
      if (shape_.cell == Cell::Gru) slots.add(h_.from(first));
      slots.run(step_program, rows, shape_.hidden);
      if (projection_.defined())
        multiply(rows, shape_.size, shape_.hidden, left(raw), {projection_.data_ptr(), 1, shape_.hidden},
                 out);
      copy_rows(h_.from(first), out, rows);
    }
  }

  const Tensor input_, bias_;
  Tensor packed_;
  RowSpan output_, h_, c_, kept_;
  bool keep_ = false;
};

class Backward : Recurrence {
 public:
  using Recurrence::Recurrence;

  struct Gradients {
    const Tensor &output, &hy, &cy;
  };
  /// By input, hx, cx, weight, bias, projection.
  void run(const Gradients& gradients, const Tensor& output, const Tensor& kept,
           std::span<const Tensor* const> by) {
    const int64_t n = shape_.gates * shape_.hidden;
    const Tensor grad = dense(gradients.output), states = dense(output), gates = ops::as_contiguous(kept);
    const Tensor grad_hy = dense(gradients.hy), grad_cy = dense(gradients.cy);
    grad_ = rows_of(grad, state_bytes_), states_ = rows_of(states, state_bytes_);
    kept_ = rows_of(gates, shape_.kept_gates * hidden_bytes_);
    by_input_ = rows_of(*by[0], gate_bytes_);
    h_ = rows_of(*by[1], state_bytes_), c_ = rows_of(*by[2], hidden_bytes_);
    copy_rows(h_, rows_of(grad_hy, state_bytes_), shape_.batch);
    if (cx_.defined()) copy_rows(c_, rows_of(grad_cy, hidden_bytes_), shape_.batch);
    // The gradients by the products with the state, and what each product had.
    const Tensor products = shape_.cell == Cell::Gru ? scratch(shape_.rows, n) : *by[0];
    const Tensor before = scratch(shape_.rows, shape_.size);
    by_product_ = rows_of(products, gate_bytes_), before_ = rows_of(before, state_bytes_);
    const bool projected = projection_.defined();
    const Tensor totals = scratch(projected ? shape_.rows : 0, shape_.size);
    total_ = rows_of(totals, state_bytes_);
    zeros_ = make_zeros(shape_.hidden);
    for_sequences([this](int64_t first, int64_t last) { run(first, last); });

    multiply(n, shape_.size, shape_.rows, {products.data_ptr(), 1, n}, left(before_),
             rows_of(*by[3], state_bytes_));
    if (by[4]->numel() > 0) {
      const Tensor one = scratch(1, 1);
      ops::fill_elements(one, 1, kName);
      multiply(1, n, shape_.rows, {one.data_ptr(), 0, 0}, {products.data_ptr(), n, 1},
               rows_of(*by[4], gate_bytes_));
    }
    if (!projected) return;
    const Tensor raw = scratch(shape_.rows, shape_.hidden);
    RowSlots slots;
    slots.add(rows_of(raw, hidden_bytes_));
    slots.add(kept_.shifted(3 * hidden_bytes_), 2, hidden_bytes_);
    slots.run(program(CellPart::Unscaled), shape_.rows, shape_.hidden);
    multiply(shape_.size, shape_.hidden, shape_.rows, {totals.data_ptr(), 1, shape_.size},
             {raw.data_ptr(), shape_.hidden, 1}, rows_of(*by[5], hidden_bytes_));
  }

 private:
  void run(int64_t first, int64_t last) {
    const Tensor unscaled = scratch(projection_.defined() ? last - first : 0, shape_.hidden);
    for (size_t i = steps_.size(); i-- > 0;) {
      const RecurrenceStep& step = steps_[i];
      const int64_t rows = count(step, first, last), row = step.first + first;
      if (rows <= 0) continue;
      check_stop();
      // Sequences that the step before had, which come first, and those that begin here.
      const int64_t old = i > 0 ? std::clamp<int64_t>(count(steps_[i - 1], first, last), 0, rows) : 0;
      const int64_t row_before = i > 0 ? steps_[i - 1].first + first : 0;
      copy_rows(before_.from(row), states_.from(row_before), old);
      copy_rows(before_.from(row + old), rows_of(hx_, state_bytes_).from(first + old), rows - old);
      RowSpan grad = grad_.from(row), later = h_.from(first);
      if (projection_.defined()) {
        scale_back(rows, row, first, rows_of(unscaled, hidden_bytes_));
        grad = rows_of(unscaled, hidden_bytes_), later = rows_of(zeros_, 0);
      }
      const RowSpan cells =
          shape_.cell == Cell::Lstm ? kept_.from(row_before).shifted(4 * hidden_bytes_) : RowSpan{};
      gates(old, row, first, cells, grad, later);
      gates(rows - old, row + old, first + old,
            shape_.cell == Cell::Lstm ? rows_of(cx_, hidden_bytes_).from(first + old) : RowSpan{},
            grad.from(old), later.from(old));
      multiply(rows, shape_.size, shape_.gates * shape_.hidden, left(by_product_.from(row)),
               {weight_.data_ptr(), shape_.size, 1}, h_.from(first), shape_.cell == Cell::Gru);
    }
  }

  /// The gradients by the state before the projection.
  void scale_back(int64_t rows, int64_t row, int64_t first, RowSpan unscaled) {
    RowSlots slots;
    slots.add(total_.from(row));
    slots.add(grad_.from(row));
    slots.add(h_.from(first));
    slots.run(program(CellPart::Sum), rows, shape_.size);
    multiply(rows, shape_.hidden, shape_.size, left(total_.from(row)),
             {projection_.data_ptr(), shape_.hidden, 1}, unscaled);
  }

  /// The pointwise part of some rows; `cells` are the cell states before the step.
  void gates(int64_t rows, int64_t row, int64_t sequence, RowSpan cells, RowSpan grad, RowSpan later) {
    RowSlots slots;
    slots.add(by_input_.from(row), shape_.gates, hidden_bytes_);
    if (shape_.cell == Cell::Gru) {
      slots.add(by_product_.from(row), shape_.gates, hidden_bytes_);
      slots.add(h_.from(sequence));
    }
    if (shape_.cell == Cell::Lstm) slots.add(c_.from(sequence));
    if (shape_.kept_gates > 0)
      slots.add(kept_.from(row), shape_.kept_gates, hidden_bytes_);
    else
      slots.add(states_.from(row));
    if (shape_.cell == Cell::Lstm) slots.add(cells);
    if (shape_.cell == Cell::Gru) slots.add(before_.from(row));
    slots.add(grad);
    slots.add(later);
    if (shape_.cell == Cell::Lstm) slots.add(c_.from(sequence));
    slots.run(program(CellPart::Gradient), rows, shape_.hidden);
  }

  Tensor zeros_;
  RowSpan grad_, states_, kept_, by_input_, by_product_, before_, total_, h_, c_;
};

}  // namespace

void recurrence(const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& weight,
                const Tensor& bias, const Tensor& projection, const Tensor& batch_sizes, int64_t cell,
                bool reverse, bool keep, Tensor& output, Tensor& hy, Tensor& cy, Tensor& kept) {
  report_kernel(kName, TENON_KERNEL_NAMES("recurrence"));
  Forward forward(input, hx, cx, weight, bias, projection, batch_sizes, cell, reverse);
  const DType type = ops::recurrence_dtype(input.dtype());
  Result results[] = {{output, type}, {hy, type}, {cy, type}};
  forward.run(results[0].tensor(), results[1].tensor(), results[2].tensor(), kept, keep);
  for (Result& r : results) r.finish();
}

void recurrence_backward(const Tensor& grad_output, const Tensor& grad_hy, const Tensor& grad_cy,
                         const Tensor& hx, const Tensor& cx, const Tensor& weight, const Tensor& bias,
                         const Tensor& projection, const Tensor& batch_sizes, const Tensor& output,
                         const Tensor& kept, int64_t cell, bool reverse, Tensor& by_input, Tensor& by_hx,
                         Tensor& by_cx, Tensor& by_weight, Tensor& by_bias, Tensor& by_projection) {
  report_kernel(kName, TENON_KERNEL_NAMES("recurrence_backward"));
  Backward backward(output, hx, cx, weight, bias, projection, batch_sizes, cell, reverse);
  const DType type = ops::recurrence_dtype(output.dtype());
  Result results[] = {{by_input, type},  {by_hx, type},   {by_cx, type},
                      {by_weight, type}, {by_bias, type}, {by_projection, type}};
  const Tensor* by[6];
  for (size_t i = 0; i < 6; ++i) by[i] = &results[i].tensor();
  backward.run({grad_output, grad_hy, grad_cy}, output, kept, by);
  for (Result& r : results) r.finish();
}

}  // namespace tenon::cpu
