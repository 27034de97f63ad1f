// The names of backward nodes: "MulBackward0". Used by the printers of derivatives and of the index.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/opgen/model.h"

namespace tenon::opgen {

/// The operator in camel case, and its number among the overloads that have a derivative. One that takes a
/// number where another takes a tensor counts as that one: PyTorch wraps the number, so its users know one
/// name.
std::map<const OpDef*, std::string> node_names(const std::vector<OpDef>& defs);

}  // namespace tenon::opgen
