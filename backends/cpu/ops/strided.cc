#include "backends/cpu/ops/strided.h"

#include <string>

#include "tenon/core/error.h"

namespace tenon::cpu {

ConvertFn convert_from(DType dtype, DType compute, const char* op) {
  if (dtype == compute) return nullptr;
  const ConvertFn f = convert_fn(dtype, compute);
  TENON_CHECK(f, NotImplemented, std::string(op) + ": not implemented for " + std::string(name(dtype)));
  return f;
}

}  // namespace tenon::cpu
