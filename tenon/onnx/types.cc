#include "tenon/onnx/types.h"

#include <array>

namespace tenon::onnx {
namespace {

struct Type {
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr std::array<Type, 27> kTypes{{
    {"undefined", {}},
    {"float32", kFloat32},
    {"uint8", kUInt8},
    {"int8", kInt8},
    {"uint16", kUInt16},
    {"int16", kInt16},
    {"int32", kInt32},
    {"int64", kInt64},
    {"string", {}},
    {"bool", kBool},
    {"float16", kFloat16},
    {"float64", kFloat64},
    {"uint32", kUInt32},
    {"uint64", kUInt64},
    {"complex64", kComplex64},
    {"complex128", kComplex128},
    {"bfloat16", kBFloat16},
    {"float8e4m3fn", {}},
    {"float8e4m3fnuz", {}},
    {"float8e5m2", {}},
    {"float8e5m2fnuz", {}},
    {"uint4", {}},
    {"int4", {}},
    {"float4e2m1", {}},
    {"float8e8m0", {}},
    {"uint2", {}},
    {"int2", {}},
}};

}  // namespace

std::string_view type_name(int64_t type) noexcept {
  return type >= 0 && type < std::ssize(kTypes) ? kTypes[static_cast<size_t>(type)].name : "an unknown type";
}
std::optional<DType> type_of(int64_t type) noexcept {
  return type >= 0 && type < std::ssize(kTypes) ? kTypes[static_cast<size_t>(type)].dtype : std::nullopt;
}
std::optional<int64_t> number_of(DType dtype) noexcept {
  for (int64_t type = 0; type < std::ssize(kTypes); ++type)
    if (type_of(type) == dtype) return type;
  return std::nullopt;
}

}  // namespace tenon::onnx
