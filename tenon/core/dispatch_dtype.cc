#include "tenon/core/dispatch_dtype.h"

#include <fmt/core.h>

#include "tenon/core/error.h"

namespace tenon {

std::string not_implemented_for(DType dtype, Device device) {
  std::string text = fmt::format("not implemented for {}", name(dtype));
  if (!device.is_cpu() && !device.is_meta())
    text += fmt::format(", neither on {} nor on cpu", to_string(device));
  return text;
}

namespace detail {

void throw_unsupported_dtype(const char* op, DType got, const char* supported) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: not implemented for {}, only for {}", op, name(got), supported));
}

}  // namespace detail
}  // namespace tenon
