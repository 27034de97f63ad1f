// The default of an argument: read as a literal, then fitted to the argument's type.
// Used by the schema parser only.
#pragma once

#include "tenon/schema/cursor.h"
#include "tenon/schema/schema.h"

namespace tenon::schema {

/// Reads what follows `=`. Throws Error{Value} where the literal is malformed or does not fit `type`.
DefaultValue parse_default(Cursor& cursor, const Type& type);

}  // namespace tenon::schema
