// RowsForm: an expression over rows of the YAML as a graph, with what its operator's arguments are to it.
// Used by the checks and by the printers. Independent of C++ and files.
#pragma once

#include <string>
#include <vector>

#include "tenon/expr/expr.h"
#include "tools/opgen/families.h"

namespace tenon::opgen {

struct RowsForm {
  std::vector<expr::Symbol> tensors;
  std::vector<std::string> scalars;
  expr::Builder graph;
  std::vector<expr::NodeId> roots;  ///< By result.
  std::string text;

  expr::ExpressionPtr written() const { return graph.finish(roots); }
};

/// The expression of an entry with `rows`. Throws Error{Value} or Error{Type} from the expression itself, or
/// for results without an expression.
RowsForm rows_form(const OpDef& def);
/// Whether a checked entry is a plain reduction: the stub `reduce` serves it.
bool is_plain_reduction(const OpDef& def);
/// Whether an argument says how the operator runs, and is nothing that the expression sees.
bool is_rows_setting(const Rows& rows, const schema::Argument& argument);

/// RowsInfo of a family's operators as data.
std::string rows_data(const Family& family);
/// A row operator's shape function and body, ROWS_shape and ROWS_body of its constant.
std::string rows_functions(const OpDef& def);
/// The operators of a family whose RowsInfo exists.
std::vector<const OpDef*> rows_of(const Family& family);

}  // namespace tenon::opgen
