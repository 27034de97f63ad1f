// The operators as the generator sees them: one OpDef for each YAML entry, which has one Operator for each
// form in the dispatcher (functional, in-place, out). Read by every printer. Independent of what is
// printed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/expr/print_simd.h"
#include "tenon/schema/schema.h"
#include "tenon/schema/tags.h"

namespace tenon::opgen {

using expr::GeneratedFile;
using schema::FunctionSchema;

/// What an operator does with its first argument or its `out` arguments. Found from the schema, so that an
/// entry with the schema `copy_(Tensor(a!) self, ...)` has the same form as one made by `variants:
/// [inplace]`.
enum class Form : uint8_t { Functional, Inplace, Out };

/// One operator of the dispatcher: one OperatorEntry.
struct Operator {
  FunctionSchema schema;
  Form form = Form::Functional;
  /// Its position among the operators of its file, in `tenon::detail::FAMILY_entries`.
  size_t index = 0;
  /// The name of its constant in `tenon::operators`: "add_Tensor", "add__Tensor", "add_out", "silu".
  std::string constant;
  /// A free function `tenon::NAME` (`NAME_out` for an out form) exists.
  bool function = false;
  /// A method `Tensor::NAME` exists. Its object is the argument `self`, even if that is not the first
  /// (where.self).
  bool method = false;
  /// Arguments whose defaults C++ does not have, because calls would be ambiguous (arange.start_step's step).
  std::vector<std::string> cpp_no_default;
  /// Further names of the function and the method: "subtract", "subtract_".
  std::vector<std::string> aliases;
};

/// What computes an operator: see the YAML's description in docs/adding-an-operator.md.
enum class Body : uint8_t {
  Expr,        ///< `expr`: a pointwise expression.
  Structured,  ///< `shape`, and `kernel`, `body` or `update`.
  View,        ///< `view`: C++ of tenon::ops, every backend.
  Explicit,    ///< `explicit`: C++ of tenon::ops, every backend, below Autograd.
  Composite,   ///< `composite`: C++ of tenon::ops, differentiable through what it calls.
  Dispatch,    ///< `dispatch`: one C++ function for each key.
};

/// How the dtype to compute in follows from the operands, and the dtype of the result. Real and RealFloat are
/// as Same and Float, but for complex operands the result has the dtype of their parts.
enum class ResultType : uint8_t { Same, Float, Bool, Real, RealFloat };

/// The fields of an `expr` entry.
struct Pointwise {
  std::string text;  ///< Of an entry with `outputs`, the definitions that they share; may be empty.
  /// Result or written argument -> its expression: results first, in the schema's order. Empty: one result,
  /// which is `text`.
  std::vector<std::pair<std::string, std::string>> outputs;
  std::vector<std::string> at_least_one;  ///< Optional arguments that may not all be absent.
  std::string bool_text;  ///< What runs instead when the operands are bool (`bool_expr`); may be empty.
  ResultType result = ResultType::Same;
  std::vector<std::string> promote;  ///< Numbers that take part in promotion.
  /// Numbers that may not be negative: where integers are computed, or, of an operator that refuses
  /// integers, at all.
  std::vector<std::string> nonnegative;
  std::vector<std::string> nonzero;   ///< Numbers that may not be zero.
  std::vector<std::string> truncate;  ///< Numbers whose fraction is cut off where integers are computed.
  std::vector<std::string> masks;     ///< Tensor arguments that are truth values.
  std::vector<std::string> refused_dtypes;  ///< By name ("bool"), or "floating", "integral".
  std::vector<std::string> refused_common;  ///< The same of what the operands promote to.
  std::string refused_reason;
  bool compiled = true;           ///< SIMD kernels are printed; otherwise the tile interpreter runs it.
  bool compiled_complex = false;  ///< For complex operands, too.
  /// Where a number of the call has this value, another expression gives the same bits at less cost.
  struct Special {
    std::string number;
    double value;
    std::string text;
  };
  std::vector<Special> special;
  std::vector<Special> special_gradient;  ///< The same of the derivative by the first tensor, times `grad`.
};

/// The fields of an entry with `rows`: an expression over rows, whose shape function and body follow from it.
struct Rows {
  std::string text;  ///< The definitions, and of a single result its expression.
  std::vector<std::pair<std::string, std::string>>
      outputs;                       ///< Result -> its expression; empty: `text` is it.
  std::string name;                  ///< What messages call the operator; empty: the schema's name.
  std::string over;                  ///< "Dims", "Last", ...: RowsInfo::Over.
  std::string dims;                  ///< The argument that lists dimensions or sizes; may be empty.
  std::vector<std::string> of_rows;  ///< Tensors that have one value for each row.
  std::vector<std::string> index;    ///< Tensors of places: int64 or int32.
  std::vector<std::string> masks;    ///< Tensors that are truth values.
  bool keepdim = false;
  bool needs_elements = false;
  bool mixed = false;  ///< If the first operand has half precision, others may be float32.
  bool compiled =
      false;  ///< SIMD kernels of its passes are printed for float32; otherwise the interpreter runs them.
  bool complex = false;           ///< Operands may be of complex numbers.
  std::string computes = "Same";  ///< "Same", "Float", ...: RowsInfo::Computes.
  std::string float32_when;       ///< The argument that asks for results of float32.
  std::string dtype;              ///< The argument that gives the results' dtype.
  std::vector<std::string> refused_dtypes;
  std::string refused_reason;
};

/// How an operator is differentiated.
struct DerivativeDef {
  enum class Kind : uint8_t {
    Absent,      ///< Nothing is said: factories and composites.
    Expression,  ///< Follows from `expr`.
    None,        ///< `none`.
    Formulas,    ///< C++ for each argument.
  };
  Kind kind = Kind::Absent;
  std::vector<std::pair<std::string, std::string>>
      formulas;                                ///< Argument, or several: "a, b" -> C++, in the YAML's order.
  std::vector<bool> output_differentiability;  ///< Empty: all.
  /// Results whose formulas ask whether there is a gradient, which is not filled with zeros then. Empty:
  /// none.
  std::vector<bool> optional_grads;
};

/// The fields `traits` and `tags`: see tenon/dispatch/traits.h. Arguments are named.
struct Traits {
  std::vector<std::string> writes_only;
  std::string equals;        ///< An argument, or "0" or "1".
  std::string matmul;        ///< The left matrix, of what regions form around.
  bool convolution = false;  ///< Regions form around it, too.
  std::string draws_unless_zero;
  Tags tags;  ///< The entry's field `tags`, and what follows from the rest of the entry.
  bool value_errors = false, shape_numbers = false, uninitialized = false;
};

/// One entry of a YAML file.
struct OpDef {
  std::string file;  ///< "activation.yaml"
  int line = 0;      ///< Of the entry, from 1.

  /// The forms, the one of the entry's own schema first, then in-place, then out.
  std::vector<Operator> operators;

  Body body = Body::Explicit;
  /// The C++ function's name (View, Explicit, Composite, Structured without `kernel`; "none": nothing is
  /// written).
  std::string function;
  /// The C++ over the arguments that the entry gives in place of the name of that function, or of the shape
  /// function; opgen prints a function around it.
  std::string cpp, shape_cpp;
  /// The headers of what that, and derivatives, call besides operators: those of the file's entries
  /// `include`.
  std::vector<std::string> includes;
  bool updates = false;  ///< `function` writes part of `self`; other forms copy it first (Structured).
  /// The stubs without which the C++ function cannot serve a device, by name.
  std::vector<std::string> stubs;
  std::string reason;             ///< Why an Explicit body has no shape function.
  bool undeclared_alias = false;  ///< The result is an alias that the schema does not name (Explicit).
  std::string shape;              ///< The shape function's name (Structured).
  std::string kernel;             ///< The kernel's name (Structured with `kernel`).
  Traits traits;
  bool mixed_devices = false;                   ///< Tensor arguments may be on the host and on a device.
  bool crosses_devices = false;                 ///< Tensor arguments may be on several accelerators.
  std::string out_dtype = "Cast";               ///< What `out=` may be: OutRule of core/dtype.h.
  std::map<std::string, std::string> dispatch;  ///< Key -> C++ function of tenon::ops (Dispatch).
  Pointwise pointwise;                          ///< Expr.
  std::optional<Rows> rows;  ///< Structured, where an expression over rows is all there is.
  DerivativeDef derivative;

  std::string doc;
  std::string example;  ///< Lines of a Python session that help() shows; a test runs it.
  bool python = true;   ///< Bound in Python.
  std::string
      python_name;  ///< The name in Python, without a form's trailing underscore; empty: the schema's.

  /// The schema as the entry has it.
  const FunctionSchema& schema() const { return operators.front().schema; }
  /// Whether `op` is the out form of a hand-written functional body: made by copying its result.
  bool copies_out(const Operator& op) const {
    return &op != &operators.front() && op.form == Form::Out && body != Body::Expr &&
           body != Body::Structured;
  }
  /// Whether `op` is the out form of an entry with options: they are those of `out`.
  bool takes_options_of_out(const Operator& op) const;
  const Operator* find(Form form) const {
    for (const Operator& op : operators) {
      if (op.form == form) return &op;
    }
    return nullptr;
  }
  /// "tenon/ops/yaml/activation.yaml:12", for error messages and registrations.
  std::string where() const { return "tenon/ops/yaml/" + file + ":" + std::to_string(line); }
};

/// Reads and checks all YAML files of a folder, in the order of their names. Throws Error{Value} whose
/// message starts with file:line of the entry at fault.
std::vector<OpDef> read_operators(const std::string& folder);
/// As above, for the text of one file, for tests; messages name `file`.
std::vector<OpDef> parse_operators(const std::string& yaml, const std::string& file);

/// The number of operators (not entries).
size_t count_operators(const std::vector<OpDef>& defs);

// Properties of a schema that several printers need.

/// "ns::name.overload" with the namespace "aten".
std::string full_name(const FunctionSchema& schema);
/// The C++ function type of the dispatcher: "Tensor(const Tensor&, const Scalar&)", out arguments in schema
/// order.
std::string signature(const FunctionSchema& schema);
/// The position of `dtype` where `ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory` come
/// in a row: the four are one `TensorOptions options` in C++ (and keywords of their own in Python).
std::optional<size_t> options_position(const FunctionSchema& schema);
/// Whether the operator is a factory: it takes a `Device?` and no tensors, and dispatches by BackendSelect.
bool is_factory(const FunctionSchema& schema);

}  // namespace tenon::opgen
