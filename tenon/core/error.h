// Error: the one exception type of Tenon, and its kinds.
// Used by every room and by callers. Independent of tensors.
#pragma once

#include "tenon/core/require_cxx20.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tenon {

/// The kinds of error that a caller may want to tell apart. Python maps each to one of its exceptions.
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

/// Every exception that Tenon throws: its kind, the operator that was called, and a message that names the
/// argument, what was expected and what was passed. `what()` is "operator: message".
class Error : public std::runtime_error {
 public:
  /// `text` may begin with an operator's name and a colon ("zeros: ..."), or with the colon alone, which
  /// is replaced by the called operator's name (kThisCall). Otherwise the whole text is the message.
  Error(ErrorKind kind, const std::string& text);

  ErrorKind kind() const noexcept { return kind_; }
  /// "zeros"; empty where none is to blame.
  std::string_view operator_name() const noexcept { return std::string_view(what()).substr(0, name_length_); }
  std::string_view message() const noexcept {
    return std::string_view(what()).substr(name_length_ > 0 ? name_length_ + 2 : 0);
  }

  /// Sets the operator that the user called, in place of an inner operator that it is made of: what the inner
  /// one refuses is a mistake in the outer call. Does nothing for classes derived from Error, whose text is
  /// their own, or for a text that names no operator and does not begin with a colon.
  void set_operator(std::string_view name);
  /// Adds to the end of the message. Does nothing for classes derived from Error.
  void append(std::string_view text);

 private:
  ErrorKind kind_;
  bool has_operator_ = false;  ///< Or a place for one.
  size_t name_length_ = 0;
};

/// A file that cannot be read or loaded, of kind Device: in Python an OSError too.
class FileError : public Error {
 public:
  explicit FileError(const std::string& text) : Error(ErrorKind::Device, text) {}
};

/// For a function that checks something on behalf of several operators and takes the operator's name:
/// replaced by the name of the called operator.
inline constexpr const char* kThisCall = "";

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
