// The stubs that hand-written operators call: a device fills them in to get copying, filling, random numbers
// and indexing. Used by tenon/ops; filled in by backends/cpu/ops and by other devices. The stubs of
// structured operators are generated. A function queues its work on the current stream of its device
// (core/stream.h); one that writes to host memory or returns a value returns only when that is done.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/stub.h"
#include "tenon/iter/rows_launch.h"
#include "tenon/ops/window/axis.h"

namespace tenon::detail {
/// Boxed: twelve numbers for each axis: taps, inputs, outputs, kernel, stride, pad, dilation, and how many it
/// has of begins, places, weights, divisors and input_divisors; then these five, those of all axes one after
/// the other.
template <>
struct StubArg<std::span<const Axis>> {
  static constexpr std::array<StubType, 6> types{
      {{"int", true}, {"int", true}, {"int", true}, {"float", true}, {"float", true}, {"float", true}}};
  static void push(Stack& s, std::span<const Axis> axes);
};
/// Not boxed: what runs row expressions reads an expression and addresses in our own types.
template <>
struct StubArg<const RowsLaunch&> {};
/// A launch has addresses in place of tensors: an operator without rows_stub falls back as a whole.
template <>
struct HostArgument<const RowsLaunch&> {
  const RowsLaunch& value;
  explicit HostArgument(const RowsLaunch& launch) : value(launch) {}
  [[noreturn]] void add(HostCopies& copies, Access);
  const RowsLaunch& get() { return value; }
};
}  // namespace tenon::detail

namespace tenon::expr {
struct PlainReduction;
}
namespace tenon::ops {
struct IndexedCall;
struct RowsCall;

/// A call of a row operator whose expression only reduces one tensor.
struct ReduceCall {
  const char* name;  ///< Of the operator, for reports.
  const expr::PlainReduction& what;
  const Tensor& self;
  const Dims& over;                  ///< 1 for the dimensions that are reduced, in their logical order.
  std::span<Tensor* const> results;  ///< Contiguous, in the order of the schema; no memory of self's.
  const RowsCall* rows;              ///< The same call as rows_stub gets it.
};
}  // namespace tenon::ops

namespace tenon::detail {
template <>
struct StubArg<const ops::IndexedCall&> {
  static constexpr std::array<StubType, 15> types{{{"str"},
                                                   {"str"},
                                                   {"int", true},
                                                   {"int"},
                                                   {"Scalar"},
                                                   {"bool"},
                                                   {"bool"},
                                                   {"Tensor"},
                                                   {"int", true},
                                                   {"Tensor", true},
                                                   {"int", true},
                                                   {"Tensor"},
                                                   {"int", true},
                                                   {"Tensor", true},
                                                   {"int", true}}};
  static void push(Stack& s, const ops::IndexedCall& call);
};
template <>
struct StubArg<const ops::ReduceCall&> {
  static constexpr std::array<StubType, 7> types{
      {{"Tensor"}, {"str"}, {"bool"}, {"bool"}, {"int", true}, {"Tensor"}, {"Tensor"}}};
  static void push(Stack& s, const ops::ReduceCall& call);
};
template <>
struct HostArgument<const ops::ReduceCall&> {
  const ops::ReduceCall& given;
  Tensor self, results[2];
  Tensor* places[2] = {};
  std::optional<ops::ReduceCall> made = {};
  explicit HostArgument(const ops::ReduceCall& call) : given(call) {}
  void add(HostCopies& copies, Access);
  const ops::ReduceCall& get();
};
template <>
struct HostArgument<const ops::IndexedCall&> {
  std::shared_ptr<ops::IndexedCall> value;
  explicit HostArgument(const ops::IndexedCall& call);
  void add(HostCopies& copies, Access);
  const ops::IndexedCall& get() { return *value; }
};
}  // namespace tenon::detail

namespace tenon::ops {

/// Runs a row operator: sums, softmax, norms.
extern Stub<void(const RowsLaunch& launch)> rows_stub;

/// Runs a plain reduction, with the bits of its expression. Where a device has none, rows_stub gets that. A
/// boxed function finds self, the kind ("sum", "argmax", ...), whether sums are divided by their number,
/// whether ArgMax and ArgMin give the elements, too, `over`, and two results, the second undefined where
/// there is one.
extern Stub<void(const ReduceCall& call)> reduce_stub;

/// dst[...] = src[...] for tensors of equal sizes with any strides and dtypes that share no memory. With
/// `non_blocking`, a copy from or to the host may still be running after the function returns.
extern Stub<void(const Tensor& dst, const Tensor& src, bool non_blocking)> copy_stub;
/// Sets every element of dst to `value`, which its dtype can hold. Elements may share memory.
extern Stub<void(const Tensor& dst, const Scalar& value)> fill_stub;
/// Contiguous dst[i] = start + i * step, rounded once from float64, or exact for integers (wrapping).
extern Stub<void(const Tensor& dst, const Scalar& start, const Scalar& step)> arange_stub;
/// Contiguous dst[i], evenly spaced over [start, end], symmetric about the middle.
extern Stub<void(const Tensor& dst, double start, double end)> linspace_stub;
/// Whether two tensors of equal sizes and dtype are equal element by element.
extern Stub<bool(const Tensor& a, const Tensor& b)> equal_stub;
/// The positions of nonzero elements in order, as int64 [count, ndim].
extern Stub<Tensor(const Tensor& self)> nonzero_stub;
/// The elements of `self` where `mask`, bool and of the same sizes, is true: a vector, in logical order.
/// Optional: what nonzero_stub finds can be read instead.
extern Stub<Tensor(const Tensor& self, const Tensor& mask)> masked_select_stub;
/// Reads and writes by position: see indexing/indexed.h. A boxed function finds op, argument, sizes, combine
/// (0 Set, 1 Add, 2 Mul, 3 Min, 4 Max, 5 Div), alpha, wraps, fresh; then for `to` and for `from`: the tensor,
/// its strides, the list of tensors of positions, and a list of numbers for them: dim, how many sizes, the
/// sizes, the steps, the strides over the loop, one after the other.
extern Stub<void(const IndexedCall& call)> indexed_stub;

// The axes (window/axis.h) of the following are the last dimensions of self and out, three at most. All other
// dimensions are equal. Strides are arbitrary; out shares no memory with self.

/// Every output is the weighted sum of its taps, floating or complex: over the first axis first, ascending,
/// then over the others; half types in float32. With `accumulate` it is added to what `out` has, and without
/// it replaces that.
extern Stub<void(const Tensor& self, std::span<const Axis> axes, bool accumulate, Tensor& out)> axes_sum_stub;
/// The largest of each output's taps, and its place in the axes of self, in logical order, as int64. NaN is
/// larger than all. Of equal values the first counts, of several NaNs the last.
extern Stub<void(const Tensor& self, std::span<const Axis> axes, Tensor& values, Tensor& indices)>
    axes_max_stub;
/// The largest of each output's taps alone, of windows that affine axes have: the values of axes_max. A
/// device without it computes both.
extern Stub<void(const Tensor& self, std::span<const Axis> axes, Tensor& out)> axes_max_values_stub;
/// The tap of each output, which has one along each axis or none; `otherwise`, which the dtype can hold,
/// where there is none.
extern Stub<void(const Tensor& self, std::span<const Axis> axes, const Scalar& otherwise, Tensor& out)>
    axes_copy_stub;

/// How attention is computed: 1 by attention_forward, 0 by operators, which keep all weights; see
/// ops/attention. Where a device has none, it is 1.
extern Stub<int64_t(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                    double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa)>
    _fused_sdp_choice_stub;

/// Fills contiguous dst with numbers of a distribution, from the given position in the stream on; see
/// tenon/core/philox.h.
extern Stub<void(const Tensor& dst, double from, double to, PhiloxState state)> uniform_stub;
extern Stub<void(const Tensor& dst, double mean, double std, PhiloxState state)> normal_stub;
extern Stub<void(const Tensor& dst, int64_t low, uint64_t range, PhiloxState state)> randint_stub;
/// `p` has contiguous float64 probabilities: one, or as many as dst has elements. Throws Error{Value} for a
/// probability outside [0, 1] before it writes anything.
extern Stub<void(const Tensor& dst, const Tensor& p, PhiloxState state)> bernoulli_stub;
extern Stub<void(const Tensor& dst, PhiloxState state)> randperm_stub;

}  // namespace tenon::ops
