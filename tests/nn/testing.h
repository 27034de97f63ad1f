// What the tests of this room share.
#pragma once

#include <string>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/nn.h"

namespace tenon::nn {

/// What f() throws.
inline std::string message_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// Of parameters and buffers.
inline std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, value] : module.state_dict()) names.push_back(name);
  return names;
}

}  // namespace tenon::nn
