#include "tenon/core/dispatch_dtype.h"

#include <fmt/core.h>

#include "tenon/core/error.h"

namespace tenon::detail {

void throw_unsupported_dtype(const char* op, DType got, const char* supported) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: not implemented for {}, only for {}", op, name(got), supported));
}

}  // namespace tenon::detail
