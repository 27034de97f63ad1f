// Row operators: an expression over rows, as constant data (RowsInfo), from which shapes, checks and the call
// follow. Used by generated operators, whose shape function and body are rows_shape and rows_run with their
// arguments put in place. Independent of particular operators.
#pragma once

#include <atomic>
#include <optional>
#include <span>

#include "tenon/core/scalar.h"
#include "tenon/core/tensor.h"
#include "tenon/expr/expression.h"
#include "tenon/iter/lower.h"
#include "tenon/iter/rows_launch.h"
#include "tenon/ops/forms/output_spec.h"

namespace tenon {

namespace detail {
struct RowsInstance;
}

/// Everything known of a row operator at build time. Its tensors are in the order of the schema; the first
/// one has the shape of the loop, to which other elements are broadcast.
struct RowsInfo {
  static constexpr size_t kMaxTensors = 12;
  static constexpr size_t kMaxNumbers = 8;

  const char* name;  ///< "_softmax"
  const char* text;  ///< The expression, with all its results.
  std::span<const char*const> tensor_names, scalar_names;
  const expr::Expression* written;
  /// Which dimensions a row is made of.
  enum class Over : uint8_t {
    Dims,      ///< The listed ones; none or an empty list: all.
    Last,      ///< The trailing ones, whose sizes are the list.
    All,       ///< All.
    Channels,  ///< All but dimension 1.
    Leading,   ///< All but the trailing ones, whose sizes are the list.
  };
  Over over = Over::Dims;
  bool keepdim = false;         ///< Results of rows keep the dimensions, with size 1.
  bool needs_elements = false;  ///< Rows without elements have no result (max).
  bool mixed = false;           ///< If the first operand has half precision, others may be float32.
  bool complex = false;         ///< The operand, the only one, may be of complex numbers.
  /// What is computed, and is the dtype of results.
  enum class Computes : uint8_t {
    Same,   ///< The operands' dtype.
    Float,  ///< The same, for integers and bool the default float type.
    Sum,    ///< The dtype that the call gives, or else the operand's, for integers and bool int64.
    Mean,   ///< The dtype that the call gives, or else the operand's: a floating or complex one.
  };
  Computes computes = Computes::Same;
  uint32_t refused_dtypes = 0;
  const char* refused_reason = "";
  /// What the arguments of the operator's schema are, in their order.
  enum class Role : uint8_t {
    Tensor,
    Number,
    Dims,         ///< RowsArguments::dims: a dimension, or a list; none where it is absent.
    KeepDim,      ///< RowsArguments::keepdim.
    DType,        ///< RowsArguments::dtype.
    Float32When,  ///< True: the same, float32.
    Other,        ///< Says nothing about what is computed.
  };
  std::span<const Role> roles;
  /// What was made of the expression at first calls; a list that only grows.
  mutable std::atomic<const detail::RowsInstance*> instances{nullptr};
};

namespace ops {

/// A call's arguments as all row operators take them.
struct RowsArguments {
  std::span<const HeaderRef> tensors;  ///< Undefined where an optional one is absent.
  std::span<const std::optional<Scalar>> numbers = {};
  std::optional<IntArrayRef> dims = {};
  bool keepdim = false;
  std::optional<DType> dtype = {};  ///< Of the results, where the call says so.
};

/// Checks the arguments and sets every output.
void rows_shape(const RowsInfo& info, const RowsArguments& arguments, OutputSpecs& out);
/// Computes `results`, which have the shapes that rows_shape gave them, from tensors that it has checked.
void rows_run(const RowsInfo& info, const RowsArguments& arguments, std::span<const Tensor* const> tensors,
              std::span<Tensor* const> results);

/// A row operator's call as a typed expression over rows.
struct LoweredRows : Lowered {
  Dims sizes;  ///< Of the loop.
  Dims over;   ///< 1 for the dimensions that make up a row, which is taken in their logical order.
  /// Whether results of rows have the dimensions of `over`, with size 1; else they are without them.
  bool keepdim = false;
};
/// What the call computes, with the dtypes of its operands in the slots. Of `arguments.numbers` only what is
/// there counts; `kinds` says what they are. None for a call that must be left to the operator: it would be
/// refused, or an operand is converted in a way of its own.
std::optional<LoweredRows> lower_rows(const RowsInfo& info, const RowsArguments& arguments,
                                      NumberKinds kinds);
/// The row operator of an entry's kernel for dense tensors of the host, in its functional form; null if
/// it is none, or if a user has registered another kernel.
const RowsInfo* rows_info_of(const OperatorEntry& entry);

/// A list of dimensions from what schemas have for one: int, int?, int[], int[]?.
inline std::optional<IntArrayRef> rows_dims(const int64_t& dim) { return IntArrayRef(dim); }
inline std::optional<IntArrayRef> rows_dims(const std::optional<int64_t>& dim) {
  return dim ? std::optional<IntArrayRef>(IntArrayRef(*dim)) : std::nullopt;
}
inline std::optional<IntArrayRef> rows_dims(IntArrayRef dims) { return dims; }
inline std::optional<IntArrayRef> rows_dims(const std::optional<IntArrayRef>& dims) { return dims; }

}  // namespace ops
}  // namespace tenon
