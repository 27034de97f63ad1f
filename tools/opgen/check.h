// What makes an entry wrong beyond its single fields: names that do not exist, derivatives that were
// forgotten, expressions that do not parse or differentiate. Used by model.cc.
#pragma once

#include "tools/opgen/model.h"
#include "tools/opgen/yaml_fields.h"

namespace tenon::opgen {

/// Throws Error{Value} with the file and line of the field at fault.
void check_entry(const OpDef& def, const YamlEntry& entry);

}  // namespace tenon::opgen
