#include "tenon/core/dims.h"

namespace tenon {

std::string to_string(IntArrayRef values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) text += ", ";
    text += std::to_string(values[i]);
  }
  return text + "]";
}

}  // namespace tenon
