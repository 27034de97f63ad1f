// Small pieces of C++ text that several printers share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/opgen/model.h"

namespace tenon::opgen {

/// Whether a character may be part of an identifier.
bool is_word(char c);
/// The first line of every generated file.
std::string banner(std::string_view what);
/// A C++ string literal.
std::string quote(std::string_view text);
/// One parameter of the C++ API: several schema arguments may be one (TensorOptions).
struct Parameter {
  std::string type;
  std::string name;
  std::string default_value;  ///< Empty: none, or later parameters have none.
};
/// Parameters of the C++ function: out arguments first, `dtype, layout, device, pin_memory` as `TensorOptions
/// options`. `skip_self` leaves out the argument `self` (methods).
std::vector<Parameter> parameters(const Operator& op, bool skip_self);
/// "const Tensor& self, int64_t dim = 0", with defaults or without.
std::string parameter_list(const std::vector<Parameter>& parameters, bool defaults);
/// What the function passes to the operator, in schema order. `self` replaces the argument of that name where
/// not empty.
std::string call_arguments(const FunctionSchema& schema, const std::string& self);
/// The parameters of a kernel or a body: the arguments, then `Tensor& out` for each result that is no
/// argument.
std::string kernel_parameters(const FunctionSchema& schema, bool names);
/// The parameters of a structured operator's `body`, or of its `update`: `Tensor& self`, then the other
/// arguments.
std::string body_parameters(const OpDef& def, bool names);
/// The name of a pointwise operator's stub: "abs", "add_Scalar"; of an overload for tensors without it,
/// "add", unless another entry of its family has that name.
std::string pointwise_stub_name(const OpDef& def, const std::vector<const OpDef*>& family);
/// The signature of a kernel's stub: "(Tensor self, int dim, Tensor(a!) out) -> ()".
std::string kernel_signature(const FunctionSchema& schema);
/// The type that a shape function takes an argument by: tensors are headers there.
std::string shape_type(const schema::Argument& argument);
/// The free function's names: "add", "add_out"; its aliases follow.
std::vector<std::string> function_names(const Operator& op);
/// The method's names, followed by its aliases.
std::vector<std::string> method_names(const Operator& op);

/// A signature as an identifier: "Tensor_of_Tensor_Tensor_Scalar".
std::string signature_word(const FunctionSchema& schema);
/// FNV-1a, which is the same on every machine. It decides which of several files holds an entry, so that a
/// new entry changes one file.
uint64_t stable_hash(std::string_view text);

/// Pieces of a list in order, `count` of them, as equal in length as can be; some may be empty.
template <class T>
std::vector<std::vector<T>> split(const std::vector<T>& items, size_t count) {
  std::vector<std::vector<T>> pieces(count);
  for (size_t i = 0; i < items.size(); ++i) pieces[i * count / items.size()].push_back(items[i]);
  return pieces;
}

/// All operators with the entry each is of, by index.
struct OperatorOf {
  const OpDef* def;
  const Operator* op;
};
std::vector<OperatorOf> all_operators(const std::vector<OpDef>& defs);

}  // namespace tenon::opgen
