// Error: the one exception type of Tenon, and its kinds.
// Used by every room and by callers. Knows nothing of tensors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

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

/// Every exception that Tenon throws: its kind, the operator that was called, and what is wrong, which names
/// the argument, what was expected and what came. `what()` is "operator: message".
class Error : public std::runtime_error {
 public:
  /// `text` may begin with an operator's name and a colon, "zeros: ...", or with the colon alone, for the
  /// operator that is called (kThisCall). A text without is all message.
  Error(ErrorKind kind, const std::string& text);

  ErrorKind kind() const noexcept { return kind_; }
  /// "zeros"; empty where none is to blame.
  std::string_view operator_name() const noexcept { return std::string_view(what()).substr(0, name_length_); }
  std::string_view message() const noexcept {
    return std::string_view(what()).substr(name_length_ > 0 ? name_length_ + 2 : 0);
  }

  /// Fills in the operator that was called, or puts it in place of one that it is made of: what that refuses
  /// is its caller's mistake. Leaves alone what callers derive from Error, whose text is theirs, and a text
  /// that has no place for an operator.
  void set_operator(std::string_view name);

 private:
  ErrorKind kind_;
  bool has_operator_ = false;  ///< Or a place for one.
  size_t name_length_ = 0;
};

/// For functions that check something on behalf of several operators and take the name of one: that which is
/// called.
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
