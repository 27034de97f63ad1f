// Operations on uint64 in the registers of int64: what of them depends on the sign, as nodes that know only
// signed numbers. Every machine and printer runs those, so that uint64 needs no kernels of its own.
// Used by what makes typed expressions.
#pragma once

#include "tenon/expr/builder.h"

namespace tenon::expr {

/// What elements of a dtype are as numbers: its carrier, but U64 of uint64, whose carrier holds the bits
/// alone.
constexpr Type number_type(DType t) noexcept { return t == DType::UInt64 ? Type::U64 : carrier(t); }
/// What a number is held in: I64 for U64, else itself.
constexpr Type register_type(Type t) noexcept { return t == Type::U64 ? Type::I64 : t; }

/// Adds `n`, whose operands are unsigned numbers. Its type may be U64; what is added has the register's.
NodeId add_unsigned(Builder& g, Node n);
/// An unsigned number as another type. A float is the nearest one, with one rounding; narrower integers wrap.
NodeId convert_from_unsigned(Builder& g, NodeId value, Type to);
/// A value as an unsigned number. Integers wrap; a float between -2^63 and 2^64 is truncated.
NodeId convert_to_unsigned(Builder& g, NodeId value);

}  // namespace tenon::expr
