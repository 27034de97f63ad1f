// OperatorTraits: what an operator promises besides its schema. opgen prints the traits of the built-in
// operators from their YAML entries; an operator of a user has tags alone. Used by what records, plans,
// lowers and replays calls, which therefore need not know any operator by name. Plain data.
#pragma once

#include <cstdint>

#include "tenon/schema/tags.h"

namespace tenon {

/// What a call joins other calls to a region around.
struct AnchorTrait {
  enum class Kind : uint8_t { None, Matmul, Convolution };
  Kind kind = Kind::None;
  /// Of a product, the argument that is the left matrix. The right one follows; what comes before is added.
  uint8_t left = 0;
};

/// What each element of the result, or of the tensor that is written, equals.
struct EqualsTrait {
  enum class Kind : uint8_t {
    None,      ///< Something that is computed.
    Tensor,    ///< The element of tensor argument `argument`, converted to the result's dtype.
    Number,    ///< Number argument `argument`, likewise.
    Constant,  ///< `constant`.
  };
  Kind kind = Kind::None;
  uint8_t argument = 0;
  int8_t constant = 0;
};

/// The arguments that place a call in a generator's stream; -1: absent.
struct StreamTrait {
  int8_t seed = -1;
  int8_t offset = -1;
  /// A number; where it is 0, the call draws nothing.
  int8_t unless_zero = -1;

  bool is_given() const noexcept { return seed >= 0; }
};

struct OperatorTraits {
  /// Bit i: all of argument i is written, and nothing of it is read.
  uint64_t writes_only = 0;
  Tags tags;
  EqualsTrait equals;
  StreamTrait stream;
  AnchorTrait anchor;
  /// A call may throw for what is in its tensors: positions out of range, negative weights.
  bool value_errors = false;
  /// The sizes of the results follow from the values of numbers.
  bool shape_numbers = false;
  /// The results' elements are whatever their memory held.
  bool uninitialized = false;
};

inline constexpr OperatorTraits kNoTraits{};

/// The traits of an operator that has these tags and nothing else; they live as long as the process.
const OperatorTraits& traits_of(Tags tags);

}  // namespace tenon
