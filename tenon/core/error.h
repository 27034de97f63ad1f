// Error: the one exception type of Tenon, and its kinds.
// Used by every room and by callers. Knows nothing of tensors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tenon {

/// What went wrong, as a caller may want to tell apart. Python maps each kind to one of its own exceptions.
enum class ErrorKind : uint8_t {
  Value,           ///< ValueError: an argument of the right type has a value that is not allowed.
  Type,            ///< TypeError: wrong argument type or dtype.
  Index,           ///< IndexError: a dimension or position out of range.
  Shape,           ///< ValueError and RuntimeError: sizes or strides that do not fit.
  NotImplemented,  ///< NotImplementedError: no kernel, no derivative, or not supported on this device.
  OutOfMemory,     ///< MemoryError and RuntimeError.
  Device,          ///< RuntimeError: devices that do not fit, a device that is missing or failed.
  Runtime,         ///< RuntimeError: an operation that the state of its tensors forbids.
  Internal,        ///< RuntimeError: a mistake in Tenon itself.
};

/// Every exception that Tenon throws. `what()` names the operator, the argument, what was expected and what
/// came.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// Throws Error{kind, message}. Out of line, so that a check costs its caller one branch and one call.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& message);

}  // namespace tenon

/// Throws Error of the given kind (`Value`, `Shape`, ...) unless `condition` holds. The message is any
/// expression that makes a std::string, evaluated only on failure; inside the library use `fmt::format`.
#define TENON_CHECK(condition, kind, ...)                                       \
  do {                                                                          \
    if (!(condition)) [[unlikely]] {                                            \
      ::tenon::throw_error(::tenon::ErrorKind::kind, std::string(__VA_ARGS__)); \
    }                                                                           \
  } while (0)
