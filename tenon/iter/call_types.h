// What follows from the operands of a pointwise call before anything is computed: which operands are refused,
// the dtypes, and each number in the type that the expression takes it in. One text for calls that run
// (pointwise_call.cc) and for calls that are recorded (lower.cc), whose tensors have no bytes yet. Internal
// to tenon/iter.
#pragma once

#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/dispatch_dtype.h"
#include "tenon/iter/lower.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/promotion.h"

namespace tenon::detail {

/// The tensors of a call that runs, as headers.
class HeadersOfTensors {
 public:
  explicit HeadersOfTensors(std::span<const Tensor* const> list) : list_(list) {}
  size_t size() const noexcept { return list_.size(); }
  bool defined(size_t i) const noexcept { return list_[i]->defined(); }
  const TensorHeader& operator[](size_t i) const noexcept { return *list_[i]->impl(); }

 private:
  std::span<const Tensor* const> list_;
};
/// Those of a recorded one.
class BorrowedHeaders {
 public:
  explicit BorrowedHeaders(std::span<const HeaderRef> list) : list_(list) {}
  size_t size() const noexcept { return list_.size(); }
  bool defined(size_t i) const noexcept { return list_[i].defined(); }
  const TensorHeader& operator[](size_t i) const { return list_[i].checked(); }

 private:
  std::span<const HeaderRef> list_;
};

inline DType number_dtype(const Scalar* s) noexcept { return s->dtype(); }
inline DType number_dtype(Scalar::Kind kind) noexcept { return Scalar::dtype_of(kind); }
inline bool is_complex_number(const Scalar* s) noexcept { return s->is_complex(); }
inline bool is_complex_number(Scalar::Kind kind) noexcept { return kind == Scalar::Kind::Complex; }

template <class Headers>
void check_operands(const PointwiseInfo& info, const char* op, const Headers& tensors, size_t num_scalars) {
  TENON_CHECK(tensors.size() == info.tensor_names.size() && num_scalars == info.scalar_names.size(), Value,
              fmt::format("{}: expected {} tensors and {} numbers, got {} and {}", op,
                          info.tensor_names.size(), info.scalar_names.size(), tensors.size(), num_scalars));
  TENON_CHECK(tensors.size() > 0 && tensors.size() <= PointwiseInfo::kMaxTensors &&
                  num_scalars <= PointwiseInfo::kMaxScalars,
              Value,
              fmt::format("{}: a pointwise operator takes 1 to {} tensors and at most {} numbers", op,
                          PointwiseInfo::kMaxTensors, PointwiseInfo::kMaxScalars));
  for (size_t i = 0; i < tensors.size(); ++i) {
    TENON_CHECK(tensors.defined(i), Value, fmt::format("{}: `{}` is undefined", op, info.tensor_names[i]));
    const DType t = tensors[i].dtype();
    if ((info.mask_tensors >> i) & 1u) {
      TENON_CHECK(t == DType::Bool, Type,
                  fmt::format("{}: `{}` must be bool, got {}", op, info.tensor_names[i], name(t)));
      continue;
    }
    TENON_CHECK(!info.refuses(t), Type,
                fmt::format("{}: `{}` is {}, which is not supported; {}", op, info.tensor_names[i], name(t),
                            info.refused_reason));
  }
}

struct Types {
  DType common;     // of the operands
  DType computed;   // what the results would be, were they not bool
  expr::Type type;  // of complex operands, that of their parts

  bool complex() const noexcept { return is_complex(computed); }
};

template <class Headers, class Numbers>
Types decide_types(const PointwiseInfo& info, const char* op, const Headers& tensors,
                   const Numbers& scalars) {
  Promotion promotion;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!((info.mask_tensors >> i) & 1u)) promotion.add(tensors[i]);
  }
  for (size_t i = 0; i < scalars.size(); ++i) {
    if ((info.promoting_scalars >> i) & 1u) promotion.add_number(number_dtype(scalars[i]));
  }
  const DType operands = promotion.common();
  TENON_CHECK(!info.refuses_common(operands), Type,
              fmt::format("{}: the operands are {}, which is not supported; {}", op, name(operands),
                          info.refused_reason));
  DType common = operands;
  if (info.compute == ComputeRule::Float && is_integral(common, true)) common = default_dtype();
  const std::optional<expr::Type> type = expr::compute_type(common);
  if (!type) [[unlikely]] {
    Device device = kCPU;
    for (size_t i = tensors.size(); i-- > 0;) {
      if (!tensors[i].device().is_cpu()) device = tensors[i].device();
    }
    throw_error(ErrorKind::NotImplemented, fmt::format("{}: {}", op, not_implemented_for(common, device)));
  }
  return {operands, common, *type};
}

template <class Headers, class Numbers>
Binding binding_of(const Types& types, const Headers& tensors, const Numbers& scalars) {
  Binding b{.type = types.type, .computed = types.computed};
  for (size_t i = 0; i < tensors.size(); ++i) b.inputs[i] = tensors[i].dtype();
  for (size_t i = 0; i < scalars.size(); ++i)
    b.complex_numbers |= is_complex_number(scalars[i]) ? 1u << i : 0u;
  return b;
}

/// What is written in place must be able to hold the result.
inline void check_in_place(const PointwiseInfo& info, const char* op, const Types& types, bool in_place) {
  TENON_CHECK(!types.complex() || !in_place || info.result != ResultRule::Real, NotImplemented,
              fmt::format("{}: not implemented in place for complex tensors; the result is real", op));
}
/// Whether an output of `out` may take the result. The real result of complex operands follows PyTorch: any
/// real dtype takes it, and the operands' own dtype.
inline bool can_store(const PointwiseInfo& info, const Types& types, DType result, DType out) noexcept {
  if (info.out_rule == OutRule::Same && info.result == ResultRule::Real && types.complex())
    return !is_complex(out) || out == types.common;
  return tenon::can_store(info.out_rule, result, out);
}
inline void check_out(const PointwiseInfo& info, const char* op, const Types& types, bool in_place,
                      DType result, const char* name_of, DType out) {
  TENON_CHECK(can_cast(result, out), Type,
              fmt::format("{}: the result is {}, which cannot be stored in `{}` of {}", op, name(result),
                          name_of, name(out)));
  TENON_CHECK(in_place || can_store(info, types, result, out), Type,
              fmt::format("{}: expected `{}` of {}, the dtype of the result, got {}", op, name_of,
                          name(result), name(out)));
}

/// How number `i` of the call is taken in `type`.
inline LoweredNumber number_of(const PointwiseInfo& info, const Types& types, size_t i,
                               expr::Type type) noexcept {
  return {.scalar = static_cast<uint8_t>(i),
          .type = type,
          .nonnegative = ((info.nonnegative_scalars >> i) & 1u) != 0,
          .truncates = ((info.truncated_scalars >> i) & 1u) != 0,
          .nonzero = ((info.nonzero_scalars >> i) & 1u) != 0,
          .nonnegative_float = info.nonnegative_floats && ((info.nonnegative_scalars >> i) & 1u) != 0,
          .as_operands = type == types.type,
          .wanted = type == types.type ? types.computed : dtype(type),
          .name = info.scalar_names[i]};
}
/// And for the number slot `slot` of an instance.
inline LoweredNumber number_of(const PointwiseInfo& info, const Types& types,
                               const expr::Slot& slot) noexcept {
  LoweredNumber n = number_of(info, types, slot.operand, expr::carrier(slot.dtype));
  n.of_complex = types.complex() && n.type == types.type;
  n.part = slot.part;
  return n;
}

}  // namespace tenon::detail
