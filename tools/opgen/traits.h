// The field `traits` of an entry: its checks, and the OperatorTraits that it becomes
// (tenon/dispatch/traits.h). Used by the checks and by what prints tables of operators.
#pragma once

#include <string>

#include "tools/opgen/model.h"
#include "tools/opgen/yaml_fields.h"

namespace tenon::opgen {

/// Throws an Error{Value} that names the file and line where a trait contradicts the schema.
void check_traits(const OpDef& def, const YamlEntry& entry);

/// The initialiser of one form's traits; empty: it has none.
std::string traits_of(const OpDef& def, const Operator& op);

}  // namespace tenon::opgen
