// The in-place and out forms of a functional schema. Used by model.cc only.
#pragma once

#include <string>

#include "tools/opgen/model.h"

namespace tenon::opgen {

/// Which form a schema is.
Form form_of(const FunctionSchema& schema);
/// `add.Tensor(Tensor self, ...) -> Tensor` as `add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)`. Throws
/// Error{Value} unless the first argument is `Tensor self` and the result one tensor. An empty overload is
/// the schema's.
FunctionSchema inplace_form(const FunctionSchema& schema, const std::string& overload);
/// The same as `add.OVERLOAD(..., *, Tensor(a!) out) -> Tensor(a!)`; an empty overload is made from the
/// schema's. Several results have their own names for arguments, or those of `names`. The options of a
/// factory (options_position) are left out: they are those of `out`. Throws Error{Value} unless all results
/// are tensors, and for a number of names that is not theirs.
FunctionSchema out_form(const FunctionSchema& schema, const std::string& overload,
                        const std::vector<std::string>& names = {});

}  // namespace tenon::opgen
