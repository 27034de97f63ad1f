// What build of the library this is. Used by the plan cache: the same version number may be of many
// builds during development.
#pragma once

#include <string>

namespace tenon::cache {

/// The version, and the number that the linker gave to the file with the library's code, if it did.
std::string build_id();

}  // namespace tenon::cache
