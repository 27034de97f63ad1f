// Which C++ signatures have code of their own where a shared path over cells would do: see
// docs/decisions/0010.
#pragma once

#include <string>

namespace tenon::opgen {

/// Whether a signature, spelled as the dispatcher's C++ type, is on the list.
bool has_typed_code(const std::string& signature);
/// Whether the C++ functions of an operator of this name have the call inline, instead of calling what
/// operators of their signature share.
bool has_inline_call(const std::string& name);

}  // namespace tenon::opgen
