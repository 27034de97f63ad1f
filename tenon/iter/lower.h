// Lowering: the typed expression of one call of a pointwise operator, a copy or a fill, with the dtypes of
// its operands in its slots, as regions of recorded calls join them (tenon/expr/join.h). Gives the bits of
// the call. Used by what records; knows headers of tensors, no bytes.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "tenon/core/scalar.h"
#include "tenon/core/tensor_header.h"
#include "tenon/expr/expression.h"
#include "tenon/iter/pointwise.h"

namespace tenon {

struct OperatorEntry;

/// How a number slot of an expression takes one number of a call.
struct LoweredNumber {
  uint8_t scalar = 0;  ///< Which number of the call.
  expr::Type type = expr::Type::F32;
  expr::Part part = expr::Part::Whole;
  bool of_complex = false;         ///< Complex numbers are computed: any number has a value in them.
  bool fills = false;              ///< It becomes an element of `wanted`, as fill_ makes one.
  bool nonnegative = false;        ///< Must not be below zero where integers are computed.
  bool truncates = false;          ///< Where integers are computed, a fraction is cut off.
  bool nonzero = false;            ///< Must not be zero.
  bool nonnegative_float = false;  ///< Must not be below zero where floats are computed.
  bool as_operands = true;         ///< It has the operands' type, not one of its own; for messages.
  DType wanted = DType::Float32;
  const char* name = "";
};

namespace detail {

/// Stores a real number that is not beyond int64, or a complex one's real part. False if it does not fit
/// `type` exactly.
[[gnu::always_inline]] inline bool put_real(uint64_t& slot, const Scalar& s, expr::Type type) noexcept {
  const auto store = [&slot](auto value) {
    slot = 0;
    std::memcpy(&slot, &value, sizeof value);
    return true;
  };
  switch (type) {
    // Integers round once: to float, not to double and then to float.
    case expr::Type::F32:
      return store(s.is_integral() ? static_cast<float>(s.to_int()) : static_cast<float>(s.to_double()));
    case expr::Type::F64:
      return store(s.to_double());
    case expr::Type::I32:
      return s.is_integral() && s.to_int() == static_cast<int32_t>(s.to_int()) &&
             store(static_cast<int32_t>(s.to_int()));
    default:
      return s.is_integral() && store(s.to_int());
  }
}

}  // namespace detail

/// The 8 bytes of a number as its slot takes it. Throws what the call throws for a number that does not fit:
/// Error{Value}, or Error{Type} for a category that the type does not have.
void put_number(uint64_t& slot, const LoweredNumber& number, const Scalar& value, const char* op);

/// A call as a typed expression over flat elements.
struct Lowered {
  /// `operand` of an input slot is the tensor's place among those of the call, of an output slot the
  /// result's. Both parts of a complex tensor are slots of one operand.
  expr::ExpressionPtr expression;
  std::vector<DType> results;          ///< Of each result, before an `out` of another dtype converts it.
  std::vector<LoweredNumber> numbers;  ///< By number slot.
};

/// The kinds of a call's numbers; none for an absent one.
using NumberKinds = std::span<const std::optional<Scalar::Kind>>;

/// The call of `info` with these operands; undefined headers are absent ones. `outs` has an entry for each
/// result: the dtype of the tensor that it is written to, none for a new one; operands that the operator
/// writes need none. None if the call is not the expression's to run: it is not on the host, the host has a
/// function of its own for the operator, or a tensor is a number that must be looked at. Throws what the call
/// throws for dtypes.
std::optional<Lowered> lower_pointwise(const PointwiseInfo& info, std::span<const HeaderRef> tensors,
                                       NumberKinds numbers, std::span<const std::optional<DType>> outs,
                                       bool in_place = false);

/// The elements of `from`, converted as copies convert them. None for dtypes without arithmetic.
std::optional<Lowered> lower_copy(DType from, DType to);
/// One number in every element. None for dtypes without arithmetic.
std::optional<Lowered> lower_fill(DType dtype);

/// The pointwise operator of an entry's kernel for dense tensors of a backend; null if it is none, or if
/// a user has registered another kernel or function there.
const PointwiseInfo* pointwise_info_of(const OperatorEntry& entry, Backend backend = kCpuBackend);

}  // namespace tenon
