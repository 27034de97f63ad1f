// How many cases a test tries: fewer as a rule, more where a variable of the environment asks for it.
#pragma once

#include <cstdlib>

namespace tenon::testing {

/// What the variable `name` says, or `usually`.
inline int count_of(const char* name, int usually) {
  const char* const asked = std::getenv(name);
  return asked ? std::atoi(asked) : usually;
}

}  // namespace tenon::testing
