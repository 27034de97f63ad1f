// Element types by the numbers that the standard gives them (TensorProto.DataType). Of this room alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/core/dtype.h"

namespace tenon::onnx {

/// "uint16"; "type 99" is not known.
std::string_view type_name(int64_t type) noexcept;
/// Absent for one that Tenon does not have.
std::optional<DType> type_of(int64_t type) noexcept;
/// Absent for one that the standard does not have.
std::optional<int64_t> number_of(DType dtype) noexcept;

}  // namespace tenon::onnx
