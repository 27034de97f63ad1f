// The shape of an unpickled value: how its nodes hang together. Refuses what neither Value nor Python can
// show, and what takes them without end. Of this room alone.
#pragma once

#include <cstdint>
#include <string>

#include "tenon/io/node.h"

namespace tenon::io {

constexpr uint32_t kMostDepth = 1000;
[[noreturn]] void refuse_depth();

/// "a list", "the name torch.FloatStorage": for error messages.
std::string name_of(const Node& node);

/// Checks a value and marks its nodes as reached. Throws PickleError for names and stored bytes where values
/// are expected, for values that nest more than 1,000 deep, for keys that cannot be hashed or take too many
/// steps to hash (tuples that hold one tuple many times), and for attributes without a name.
void check_shape(Node* root, Nodes& nodes);

}  // namespace tenon::io
