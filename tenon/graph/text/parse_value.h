// The values of arguments in a graph's text, of all types but tensors: read by the argument's type. Used by
// the parser of graphs.
#pragma once

#include "tenon/dispatch/stack.h"
#include "tenon/graph/text/lexer.h"
#include "tenon/schema/schema.h"

namespace tenon::graph {

/// Reads a value of the type and pushes it. Fails where another comes next, and for types that have no text.
void push_value(Lexer& lexer, const schema::Type& type, Stack& stack);

Device device_value(Lexer& lexer);

}  // namespace tenon::graph
