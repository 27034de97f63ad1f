// Which C++ signatures have code of their own where a shared path over cells would do: see
// docs/decisions/0010.
#pragma once

#include <string>

namespace tenon::opgen {

/// Whether a signature, spelled as the dispatcher's C++ type, is on the list.
bool has_typed_code(const std::string& signature);

}  // namespace tenon::opgen
