#include "tenon/core/error.h"

namespace tenon {

void throw_error(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

}  // namespace tenon
