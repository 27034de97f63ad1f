// Checks of an entry beyond its single fields: names that do not exist, missing derivatives, expressions that
// do not parse or cannot be differentiated. Used by model.cc.
#pragma once

#include "tools/opgen/model.h"
#include "tools/opgen/yaml_fields.h"

namespace tenon::opgen {

/// Throws an Error{Value} that names the file and line of the wrong field.
void check_entry(const OpDef& def, const YamlEntry& entry);

}  // namespace tenon::opgen
