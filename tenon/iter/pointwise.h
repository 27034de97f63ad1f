// Pointwise operators: constant data (PointwiseInfo) for each, and one call path for each C++ signature. Used
// by generated registrations, by autograd (derivatives are pointwise too) and by run-time expressions. Knows
// nothing of the dispatcher's tables, whose slots jump here.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <optional>
#include <span>
#include <tuple>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/kernel.h"
#include "tenon/expr/expr.h"

namespace tenon {

class StubBase;

namespace detail {
struct PointwiseState;
struct PointwiseOperator;
}  // namespace detail

/// How the dtype that a pointwise operator computes in follows from its operands' common dtype.
enum class ComputeRule : uint8_t {
  Same,   ///< The common dtype as it is (add, mul); bool computes as integers and becomes bool again.
  Float,  ///< Integers and bool promote to the default float dtype (exp, div).
};
/// How the result's dtype follows from the dtype that was computed in.
enum class ResultRule : uint8_t {
  Compute,  ///< The dtype that was computed in.
  Bool,     ///< bool (comparisons, isnan).
  Real,     ///< As Compute; of complex operands the dtype of their parts (abs, angle).
};

/// One of several outputs.
struct PointwiseOutput {
  const char* name;                   ///< "mask", or the operand that is written
  int8_t operand = kNew;              ///< The tensor operand that is written in place.
  bool truth = false;                 ///< bool, whatever the others are.
  static constexpr int8_t kNew = -1;  ///< A result, or what the call gave as `out`.
};

/// A value of a number of the call for which another expression gives the same bits at less cost.
struct PointwiseSpecial {
  int8_t scalar;
  double value;
  const struct PointwiseInfo* info;
};

/// Everything known about a pointwise operator at build time, or about a run-time expression after it was
/// parsed. Operands are the tensors in the order of `tensor_names`; `scalar_names` are the numbers of the
/// call.
struct PointwiseInfo {
  static constexpr int kMaxTensors = 8;
  static constexpr int kMaxScalars = 8;
  static constexpr int kMaxOutputs = 8;

  const char* name;  ///< "add", or "mul_backward_self" for a derived one
  const char* text;  ///< The expression, in the language of tenon/expr
  std::span<const char* const> tensor_names;
  std::span<const char* const> scalar_names;
  /// The expression in `text`, if it was parsed at build time; null if it is parsed at the first call that
  /// needs it.
  const expr::Expression* written = nullptr;
  /// Bit i: scalar i takes part in type promotion, as a Python number does (mul.Scalar's other, not add's
  /// alpha).
  uint32_t promoting_scalars = 0;
  /// Bit i: scalar i must not be negative: when integers are computed (pow's exponent), and when floats are
  /// (softshrink's lambd) if nonnegative_floats says so.
  uint32_t nonnegative_scalars = 0;
  bool nonnegative_floats = false;
  uint32_t nonzero_scalars = 0;  ///< Bit i: scalar i must not be zero (celu's alpha).
  /// Whether calls in that type look at the value of a number.
  bool checks_value(bool floating) const noexcept {
    return nonzero_scalars != 0 || (nonnegative_scalars != 0 && (!floating || nonnegative_floats));
  }
  /// Bit i: where integers are computed, scalar i may have a fraction, which is cut off (addcmul's value).
  uint32_t truncated_scalars = 0;
  /// Bit i: tensor i is a truth value (where's condition): it must be bool, and takes no part in type
  /// promotion.
  uint32_t mask_tensors = 0;
  ComputeRule compute = ComputeRule::Same;
  OutRule out_rule = OutRule::Cast;
  ResultRule result = ResultRule::Compute;
  /// For complex operands. Bit i: the expression gets the conjugate of tensor i. kConjugatedResult: the
  /// result is conjugated. A gradient is grad * conj(slope), which is conj(conj(grad) * slope).
  uint32_t conjugates = 0;
  static constexpr uint32_t kConjugatedResult = 1u << 31;
  /// Whether the derivative for complex operands is the formal derivative of the expression.
  bool holomorphic = true;
  /// dtypes that are refused, as a bit mask over their codes, with the reason for the message ("use
  /// logical_not instead").
  uint32_t refused_dtypes = 0;
  /// The same of the dtype that the operands promote to.
  uint32_t refused_common = 0;
  static_assert(kNumDTypes <= 32);
  bool refuses(DType t) const noexcept {
    return is_known(t) && ((refused_dtypes >> static_cast<uint8_t>(t)) & 1u);
  }
  bool refuses_common(DType t) const noexcept {
    return is_known(t) && ((refused_common >> static_cast<uint8_t>(t)) & 1u);
  }
  const char* refused_reason = "";
  /// Whether every number is converted to the type that the call computes in; false if the text has
  /// float64(p).
  bool numbers_as_computed = true;
  /// Whether the expression depends on the call's dtypes: stored(x), wide(x).
  bool asks_dtypes = false;
  /// Whether a call of dense host operands goes to the expression's kernel at once. Not where the host has a
  /// function of its own for the operator (iter/pointwise_stub.h).
  mutable std::atomic<bool> direct{may_be_direct()};
  constexpr bool may_be_direct() const noexcept {
    return result == ResultRule::Compute && mask_tensors == 0 && numbers_as_computed;
  }
  /// The derivative with respect to each tensor operand, or null if there is none. The derivative's operands
  /// are `grad`, then those of this operator's operands and `result` that it uses.
  std::span<const struct PointwiseDerivative* const> derivatives = {};
  /// What runs instead when the operands' common dtype is bool (bitwise_not); null: the expression itself.
  const PointwiseInfo* bool_form = nullptr;
  /// The outputs, new ones first, where there are several or operands are written; empty: one new result.
  std::span<const PointwiseOutput> outputs = {};
  std::span<const PointwiseSpecial> special = {};
  /// Bit i: tensor (number) i may be absent.
  uint32_t optional_tensors = 0, optional_scalars = 0;
  /// The same operator over the operands that are there, by the set of the absent ones: bit i of an index is
  /// the i-th optional tensor, or after those number. [0] is this operator. Null: such a call is refused.
  std::span<const PointwiseInfo* const> without = {};
  const char* refused_absence = "";  ///< "`min` and `max` are both None; give at least one of them"
  /// Of an operator: where a device puts a function of its own for it (iter/pointwise_stub.h). Null: there is
  /// no such place.
  const StubBase* stub = nullptr;
  size_t num_outputs() const noexcept { return outputs.empty() ? 1 : outputs.size(); }
  /// What is computed at the first calls: typed expressions, what each backend compiled them to, derivatives.
  /// Only tenon/iter uses it.
  mutable std::atomic<detail::PointwiseState*> state{nullptr};
  /// For a derivative or a run-time expression: the operator that calls it, set at the first call. Only
  /// tenon/autograd uses it.
  mutable std::atomic<detail::PointwiseOperator*> op{nullptr};
};

/// d(result)/d(one operand) * grad as another pointwise operation.
struct PointwiseDerivative {
  const PointwiseInfo* info;
  /// Which of the forward operator's values become the tensors of `info`: operand i, or kGrad, kResult.
  std::span<const int8_t> tensors;
  /// Which of its scalars, in order.
  std::span<const int8_t> scalars;
  /// The factor of the gradient; a factor of 1 passes the gradient on unchanged.
  expr::Factor factor = expr::Factor::Other;
  static constexpr int8_t kGrad = -1;
  static constexpr int8_t kResult = -2;
};

/// Runs `info` on tensors and numbers: broadcasts, promotes, allocates on the operands' device, computes. For
/// meta tensors it computes the shape only. Throws Error{Shape}, Error{Type} or Error{Device}, which name the
/// operator and the operand.
Tensor pointwise(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                 std::span<const Scalar* const> scalars);
/// Runs `info` and writes the result to `out`, which is resized if it has no elements, and may have another
/// dtype that can hold the result. `in_place` means that `out` is also operand 0 and must not be resized.
/// Throws Error{Runtime} for overlapping writes.
void pointwise_out(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                   std::span<const Scalar* const> scalars, Tensor& out, bool in_place);

/// As `pointwise` and `pointwise_out`, for an operator whose info lists outputs. `results` gets the new ones,
/// in order; they are written to `outs` where that is not empty. Operands that are outputs are written in
/// place.
void pointwise_outputs(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars, std::span<Tensor> results,
                       std::span<const Tensor* const> outs = {});

/// Which of an operator's infos runs, of those for calls without some optional operands. Bit i of `absent_*`:
/// tensor (number) i is not there. Throws Error{Value} where that is refused.
const PointwiseInfo& info_without(const PointwiseInfo& info, uint32_t absent_tensors,
                                  uint32_t absent_scalars);

/// The derivative of `info` with respect to a tensor operand, or null if it is zero. It is derived from the
/// expression if the build has not compiled one, and cached for the process.
const PointwiseDerivative* derivative_of(const PointwiseInfo& info, int operand);

/// Makes a pointwise operator at run time from `text`, an expression over `tensors` and `scalars`. Cached for
/// the process by its text. Numbers take part in promotion as Python's do. Throws an Error{Value} that names
/// the column if the text does not parse.
const PointwiseInfo& make_pointwise(std::string_view text, std::span<const std::string_view> tensors,
                                    std::span<const std::string_view> scalars, ComputeRule compute,
                                    ResultRule result);

namespace detail {

/// Splits a call's arguments into tensors and numbers, in order. An absent number is null.
template <class... A>
struct PointwiseArguments {
  const Tensor* tensors[sizeof...(A) + 1];
  const Scalar* scalars[sizeof...(A) + 1];
  Scalar converted[sizeof...(A) + 1];
  uint32_t num_tensors = 0, num_scalars = 0;

  explicit PointwiseArguments(const std::remove_reference_t<A>&... args) { (add(args), ...); }

 private:
  void add(const Tensor& t) { tensors[num_tensors++] = &t; }
  void add(const Scalar& s) { scalars[num_scalars++] = &s; }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(const T& value) {
    converted[num_scalars] = Scalar(value);
    scalars[num_scalars] = &converted[num_scalars];
    ++num_scalars;
  }
  template <class T>
  void add(const std::optional<T>& value) {
    if (value)
      add(*value);
    else
      scalars[num_scalars++] = nullptr;
  }
};

/// A call without its absent operands, and the operator over the others.
class PresentOperands {
 public:
  PresentOperands(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                  std::span<const Scalar* const> scalars);

  const PointwiseInfo& info() const noexcept { return *info_; }
  std::span<const Tensor* const> tensors() const noexcept { return {tensors_, num_tensors_}; }
  std::span<const Scalar* const> scalars() const noexcept { return {scalars_, num_scalars_}; }

 private:
  const PointwiseInfo* info_;
  const Tensor* tensors_[PointwiseInfo::kMaxTensors];
  const Scalar* scalars_[PointwiseInfo::kMaxScalars];
  size_t num_tensors_ = 0, num_scalars_ = 0;
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// The kernel entries of pointwise operators by canonical signature; `data` is the operator's PointwiseInfo.
template <class Sig>
struct PointwiseCall;
template <class... A>
struct PointwiseCall<Tensor(A...)> {
  static Tensor call(const Kernel& kernel, DispatchKeySet, A... args) {
    const auto& info = *static_cast<const PointwiseInfo*>(kernel.data);
    const PointwiseArguments<A...> split(args...);
    const std::span tensors(split.tensors, split.num_tensors);
    const std::span scalars(split.scalars, split.num_scalars);
    // An absent tensor shows itself to the plain path; an absent number must not come that far.
    if constexpr ((kIsOptional<A> || ...)) {
      const PresentOperands present(info, tensors, scalars);
      return pointwise(present.info(), present.tensors(), present.scalars());
    } else {
      return pointwise(info, tensors, scalars);
    }
  }
};
/// In-place (`Tensor& self` first) and out (`Tensor& out` last) forms.
template <class... A>
struct PointwiseCall<Tensor&(A...)> {
  static constexpr bool kInPlace = std::is_same_v<std::tuple_element_t<0, std::tuple<A...>>, Tensor&>;

  static Tensor& call(const Kernel& kernel, DispatchKeySet, A... args) {
    const auto& info = *static_cast<const PointwiseInfo*>(kernel.data);
    const PointwiseArguments<A...> split(args...);
    // The out argument comes last and is no operand.
    const uint32_t operands = kInPlace ? split.num_tensors : split.num_tensors - 1;
    Tensor& out = const_cast<Tensor&>(*split.tensors[kInPlace ? 0 : operands]);
    const std::span tensors(split.tensors, operands);
    const std::span scalars(split.scalars, split.num_scalars);
    if constexpr ((kIsOptional<A> || ...)) {
      const PresentOperands present(info, tensors, scalars);
      pointwise_out(present.info(), present.tensors(), present.scalars(), out, kInPlace);
    } else {
      pointwise_out(info, tensors, scalars, out, kInPlace);
    }
    return out;
  }
};
/// Several results, or none: operands that the call writes are outputs as well.
template <class... A>
struct PointwiseCall<void(A...)> {
  static void call(const Kernel& kernel, DispatchKeySet, A... args) {
    const PointwiseArguments<A...> split(args...);
    pointwise_outputs(*static_cast<const PointwiseInfo*>(kernel.data), {split.tensors, split.num_tensors},
                      {split.scalars, split.num_scalars}, {});
  }
};
template <std::same_as<Tensor>... R, class... A>
struct PointwiseCall<std::tuple<R...>(A...)> {
  static std::tuple<R...> call(const Kernel& kernel, DispatchKeySet, A... args) {
    const PointwiseArguments<A...> split(args...);
    std::array<Tensor, sizeof...(R)> results;
    pointwise_outputs(*static_cast<const PointwiseInfo*>(kernel.data), {split.tensors, split.num_tensors},
                      {split.scalars, split.num_scalars}, results);
    return std::tuple_cat(std::move(results));
  }
};
/// The out form of several results: the outs come last and are no operands.
template <std::same_as<Tensor&>... R, class... A>
struct PointwiseCall<std::tuple<R...>(A...)> {
  static std::tuple<R...> call(const Kernel& kernel, DispatchKeySet, A... args) {
    const PointwiseArguments<A...> split(args...);
    constexpr size_t kOuts = sizeof...(R);
    const std::span outs(split.tensors + split.num_tensors - kOuts, kOuts);
    std::array<Tensor, kOuts> results;
    pointwise_outputs(*static_cast<const PointwiseInfo*>(kernel.data),
                      {split.tensors, split.num_tensors - kOuts}, {split.scalars, split.num_scalars}, results,
                      outs);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<R...>(const_cast<Tensor&>(*outs[I])...);
    }
    (std::index_sequence_for<R...>());
  }
};

}  // namespace detail
}  // namespace tenon
