// The tables of operators, which opgen prints as constant data: functions of the module and methods of
// Tensor. The rest of what a call needs is made from the operator's schema at the first call.
#include <cstring>
#include <deque>

#include "python/src/call/entry_points.h"
#include "python/src/call/op_schema.h"
#include "python/src/call/typed_call.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/schema/schema.h"

namespace tenon::python {
namespace {

/// One overload: which operator, and which C++ signature it has. `entries` and `invoke` are positions in
/// kEntries and kInvokes.
struct OverloadRow {
  uint16_t entries, index, invoke;
  uint16_t flags;
  uint32_t text;  ///< Positions in kText.
};
constexpr uint16_t kVariadic = 1, kTakesRequiresGrad = 2, kNamedResults = 4, kOptionsOfOut = 8, kView = 16;

/// One name in Python: its overloads as a function, and as a method; the former are followed by those of
/// neither.
struct NameRow {
  uint32_t name, function_doc, method_doc;
  uint16_t first_function, num_functions, first_method, num_methods;
  uint8_t numbers_as_tensors;
};

}  // namespace

#include "python/functions.inc"

static_assert(kNumFunctions <= kFunctionEntries && kNumMethods <= kMethodEntries);
static_assert(std::ranges::all_of(kNames, [](const NameRow& row) {
  return row.num_functions <= kMaxOverloads && row.num_methods <= kMaxOverloads;
}));

Function g_functions[kFunctionEntries];
Function g_methods[kMethodEntries];

namespace {

PyMethodDef g_function_defs[kNumFunctions + 1];
PyMethodDef g_method_defs[kNumMethods + 1];

const char* text_at(uint32_t position) noexcept { return kText + position; }

/// Fills the tables of functions and methods, both sorted by name as the rows are.
bool fill_tables() noexcept {
  size_t functions = 0, methods = 0;
  for (const NameRow& row : kNames) {
    const char* name = text_at(row.name);
    if (row.num_functions > 0) {
      g_function_defs[functions] =
          fast_method(name, kFunctionEntryPoints[functions], text_at(row.function_doc));
      g_functions[functions++] = {
          name, {}, NumbersAsTensors{row.numbers_as_tensors}, row.first_function, row.num_functions};
    }
    if (row.num_methods > 0) {
      g_method_defs[methods] = fast_method(name, kMethodEntryPoints[methods], text_at(row.method_doc));
      g_methods[methods++] = {
          name, {}, NumbersAsTensors{row.numbers_as_tensors}, row.first_method, row.num_methods};
    }
  }
  return true;
}
void need_tables() noexcept { [[maybe_unused]] static const bool filled = fill_tables(); }

const Function* find(std::span<const Function> table, const char* name) noexcept {
  const auto at =
      std::lower_bound(table.begin(), table.end(), name,
                       [](const Function& f, const char* wanted) { return std::strcmp(f.name, wanted) < 0; });
  return at != table.end() && std::strcmp(at->name, name) == 0 ? &*at : nullptr;
}

/// What overloads point to; lives as long as the process.
const char* keep(std::string text) {
  static auto& texts = *new std::deque<std::string>;
  return texts.emplace_back(std::move(text)).c_str();
}

/// The Default of a parameter.
struct DefaultOf {
  const schema::Argument& argument;

  Default operator()(std::monostate) const { return {}; }
  Default operator()(schema::NoneDefault) const { return Default::none(); }
  Default operator()(int64_t v) const {
    if (argument.type.base == schema::BaseType::Float) return Default::number(static_cast<double>(v));
    return Default::integer(v);
  }
  Default operator()(double v) const { return Default::number(v); }
  Default operator()(bool v) const { return Default::boolean(v); }
  Default operator()(const std::string& v) const {
    return tenon::detail::visit_base<Default>(argument.type.base, [&]<BaseType b>() {
      return PythonValue<b>::numbered ? Default::integer(schema::word_number(b, v))
                                      : Default::string(keep(v));
    });
  }
  /// The schema lives as long as the process.
  Default operator()(const std::vector<int64_t>& values) const { return Default::list(values); }
  template <class T>
  Default operator()(const std::vector<T>&) const {
    return Default::list({});
  }
};

/// What a factory with `out` takes besides its schema's arguments; call_cells.cc compares them with `out`.
constexpr Param kOptions[] = {{"dtype", "dtype | None", Default::none(), true},
                              {"layout", "layout | None", Default::none(), true},
                              {"device", "device | None", Default::none(), true},
                              {"pin_memory", "bool | None", Default::none(), true}};

Overload make_overload(const OverloadRow& row, const char* function) {
  OperatorEntry* entry = kEntries[row.entries] + row.index;
  const schema::FunctionSchema& schema = OperatorHandle(*entry).schema();
  const bool options = (row.flags & kOptionsOfOut) != 0;
  const size_t own = schema.arguments.size(), count = own + (options ? std::size(kOptions) : 0);
  auto params = std::make_unique<Param[]>(count);
  auto names = std::make_unique<PyObject*[]>(count);
  for (size_t i = own; i < count; ++i) params[i] = kOptions[i - own];
  for (size_t i = 0; i < own; ++i) {
    const schema::Argument& a = schema.arguments[i];
    params[i] = {keep(schema::python_name(a)),
                 keep(schema::python_type(a)),
                 std::visit(DefaultOf{a}, a.default_value.value),
                 a.type.optional,
                 a.is_out,
                 a.type.list_size};
  }
  // Interned, so that keywords are compared by identity.
  for (size_t i = 0; i < count; ++i) names[i] = checked(PyUnicode_InternFromString(params[i].name));
  std::unique_ptr<const char*[]> results;
  if (row.flags & kNamedResults) {
    results = std::make_unique<const char*[]>(schema.returns.size() + 1);
    for (size_t i = 0; i < schema.returns.size(); ++i) results[i] = schema.returns[i].name.c_str();
  }
  return {kInvokes[row.invoke],
          entry,
          params.release(),
          names.release(),
          text_at(row.text),
          results.release(),
          static_cast<uint8_t>(count),
          static_cast<uint8_t>(schema.num_positional()),
          static_cast<uint8_t>(schema.out_arguments().size()),
          (row.flags & kVariadic) != 0,
          (row.flags & kTakesRequiresGrad) != 0,
          options,
          (row.flags & kView) != 0,
          static_cast<uint8_t>(schema.argument_index("self").value_or(0)),
          function};
}

}  // namespace

void prepare(const Function& function) {
  auto overloads = std::make_unique<Overload[]>(function.num_rows);
  for (size_t i = 0; i < function.num_rows; ++i)
    overloads[i] = make_overload(kOverloads[function.first_row + i], function.name);
  function.overloads = {overloads.release(), function.num_rows};
}

const Function* find_function(const char* name) noexcept {
  need_tables();
  return find({g_functions, kNumFunctions}, name);
}
const Function* find_method(const char* name) noexcept {
  need_tables();
  return find({g_methods, kNumMethods}, name);
}

bool add_functions(PyObject* module) {
  need_tables();
  const Ref owner(PyUnicode_FromString("tenon"));
  for (size_t i = 0; i < kNumFunctions; ++i) {
    const Ref f(PyCFunction_NewEx(&g_function_defs[i], nullptr, owner.get()));
    if (!f || PyModule_AddObjectRef(module, g_function_defs[i].ml_name, f.get()) < 0) return false;
  }
  return true;
}

TensorPart operator_part() {
  need_tables();
  return {{g_method_defs, kNumMethods}, {}};
}

}  // namespace tenon::python
