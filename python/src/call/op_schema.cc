#include "python/src/call/op_schema.h"

#include <fmt/format.h>

#include <memory>
#include <unordered_map>

#include "python/src/call/overload.h"
#include "python/src/call/parser.h"
#include "python/src/interpreter/sequences.h"
#include "tenon/dispatch/builtin.h"

namespace tenon::python {
namespace {

using tenon::detail::ValueType;
using tenon::detail::visit_base;

/// The object of a default.
struct FallbackObject {
  const schema::Argument& argument;

  Ref operator()(std::monostate) const { return {}; }
  Ref operator()(schema::NoneDefault) const { return Ref::borrow(Py_None); }
  Ref operator()(int64_t v) const { return Ref(checked(PyLong_FromLongLong(v))); }
  Ref operator()(double v) const { return Ref(checked(PyFloat_FromDouble(v))); }
  Ref operator()(bool v) const { return Ref::borrow(v ? Py_True : Py_False); }
  Ref operator()(const std::string& v) const {
    const BaseType base = argument.type.base;
    return visit_base<Ref>(base, [&]<BaseType b>() { return PythonValue<b>::word(b, v); });
  }
  template <class T>
  Ref operator()(const std::vector<T>& values) const {
    return python::list_of(values, [&](const auto value) { return (*this)(static_cast<T>(value)); });
  }
};

bool is_supported(const schema::Type& type) noexcept {
  return visit_base<bool>(type.base, [&]<BaseType b>() {
    const bool lists = ValueType<b>::list_tag != CellTag::None;
    const bool tensors = b == BaseType::Tensor;
    return PythonValue<b>::passes && (!type.list || lists) && (!type.element_optional || tensors);
  });
}

void check_type(const schema::FunctionSchema& s, const schema::Type& type, std::string_view what) {
  TENON_CHECK(is_supported(type), NotImplemented,
              fmt::format("{}: {} has type {}, which cannot be passed between Python and kernels",
                          s.full_name(), what, to_string(type)));
}

/// As PyTorch: those operators of its own that take numbers for all of their tensors.
bool takes_numbers(const std::string& name) {
  const Function* function = find_function(name.c_str());
  if (!function) function = find_method(name.c_str());
  return function && function->numbers_as_tensors == NumbersAsTensors::All;
}

std::unique_ptr<OpSchema> make(const schema::FunctionSchema& source) {
  auto out = std::make_unique<OpSchema>();
  out->source = &source;
  out->num_positional = source.num_positional();
  out->numbers_as_tensors = source.ns == tenon::detail::kBuiltinNamespace && takes_numbers(source.name);
  TENON_CHECK(source.arguments.size() <= kMaxOpArguments, NotImplemented,
              fmt::format("{}: an operator that Python calls has at most {} arguments, this one has {}",
                          source.full_name(), kMaxOpArguments, source.arguments.size()));
  for (const schema::Argument& a : source.arguments) {
    check_type(source, a.type, "argument `" + a.name + "`");
    OpArgument argument{.declared = &a, .base = a.type.base, .list = a.type.list};
    argument.optional = a.type.optional;
    argument.writes = a.is_write();
    argument.name = checked(PyUnicode_InternFromString(schema::python_name(a).c_str()));
    argument.fallback = std::visit(FallbackObject{a}, a.default_value.value).release();
    // `[]` is an empty list whatever its type; one number for `Scalar x=1` is itself.
    if (argument.fallback && a.type.base == BaseType::Float && !a.type.list &&
        PyLong_Check(argument.fallback)) {
      argument.fallback = checked(PyFloat_FromDouble(PyLong_AsDouble(argument.fallback)));
    }
    out->takes_device |= a.type.base == BaseType::Device && !a.type.list;
    out->arguments.push_back(argument);
  }
  for (size_t i = 0; i < source.returns.size(); ++i) {
    check_type(source, source.returns[i].type, fmt::format("return {}", i));
  }
  const size_t keywords = out->arguments.size() - out->num_positional;
  if (keywords > 0) {
    const auto name = [&](size_t i) { return Py_NewRef(out->arguments[out->num_positional + i].name); };
    out->keywords = tuple_by_place(keywords, name).release();
  }
  out->returns_new_tensor =
      source.returns.size() == 1 && source.returns[0].type.is_tensor() && !source.returns[0].alias;
  return out;
}

/// The items of a list or tuple as a new list, each through `convert`; nothing where one does not fit.
template <class F>
Ref list_of(PyObject* o, F&& convert) {
  Ref list(checked(PySequence_List(o)));  // which stays as long as it is, whatever conversions run
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* const item = PyList_GET_ITEM(list.get(), i);
    Ref converted = convert(item);
    if (!converted) return {};
    if (converted.get() != item) PyList_SetItem(list.get(), i, converted.release());
  }
  return list;
}

/// The object that a kernel sees for one value that is no list; nothing where it does not fit.
Ref object_of(BaseType base, PyObject* o) {
  return visit_base<Ref>(base, [&]<BaseType b>() { return PythonValue<b>::object(o); });
}

/// The list that a kernel sees; nothing where one of the items does not fit.
Ref list_object(const schema::Type& type, PyObject* o) {
  if (!is_sequence(o)) {
    // int[2] takes one int for both; anything else that is a list of ints is one too.
    if (type.list_size > 0 && type.base != BaseType::Tensor) {
      const Ref one = object_of(type.base, o);
      if (one) {
        Ref list(checked(PyList_New(type.list_size)));
        for (Py_ssize_t i = 0; i < type.list_size; ++i) PyList_SET_ITEM(list.get(), i, Py_NewRef(one.get()));
        return list;
      }
    }
    if (!is_numpy_array(o) || type.base == BaseType::Tensor) return {};
    const Ref items(PySequence_List(o));
    if (items) return list_object(type, items.get());
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();  // of an array without dimensions, which is no list
    return {};
  }
  // int[2] says that one int will do for both, and no list of a length that the operator itself would refuse.
  return list_of(o, [&](PyObject* item) {
    if (item == Py_None) return type.element_optional ? Ref::borrow(item) : Ref();
    return object_of(type.base, item);
  });
}

/// Whether a list is what `list_object` would make of `o` again.
bool has_items(PyObject* list, const schema::Type& type, PyObject* o) noexcept {
  const bool one = !is_sequence(o);
  const Py_ssize_t n = PyList_GET_SIZE(list);
  if (n != (one ? type.list_size : PySequence_Fast_GET_SIZE(o))) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyList_GET_ITEM(list, i) != (one ? o : PySequence_Fast_GET_ITEM(o, i))) return false;
  }
  return n > 0;
}

/// `list_object` for a call. To make a list and to free it takes as long as all else that a call does.
Ref list_for_call(const OpArgument& a, PyObject* o) {
  constexpr Py_ssize_t kShort = 8;
  if (a.recent && Py_REFCNT(a.recent) == 1 && has_items(a.recent, a.declared->type, o))
    return Ref::borrow(a.recent);
  Ref list = list_object(a.declared->type, o);
  const bool numbers = a.base == BaseType::Int || a.base == BaseType::Float || a.base == BaseType::Bool;
  if (list && numbers && PyList_GET_SIZE(list.get()) <= kShort) Py_XSETREF(a.recent, Py_NewRef(list.get()));
  return list;
}

template <BaseType b>
void push_list(Stack& stack, PyObject* list) {
  using T = typename ValueType<b>::Owned;
  const auto size = static_cast<size_t>(PySequence_Fast_GET_SIZE(list));
  const auto values = std::make_unique<T[]>(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = PythonValue<b>::value(PySequence_Fast_GET_ITEM(list, static_cast<Py_ssize_t>(i)));
  stack.push(CellList<T>(std::span<const T>(values.get(), size)));
}

/// Puts a value of a type on a stack; `o` is what object_of or list_object gave.
void push(Stack& stack, const schema::Type& type, PyObject* o) {
  if (o == Py_None) return stack.push_none();
  visit_base<void>(type.base, [&]<BaseType b>() {
    if constexpr (ValueType<b>::list_tag != CellTag::None) {
      if (type.list) return push_list<b>(stack, o);
    }
    stack.push(PythonValue<b>::value(o));
  });
}

/// One result that is neither a tensor nor a list of them.
Ref plain_result(const schema::Return& declared, PyObject* o) {
  if (o == Py_None && declared.type.optional) return Ref::borrow(o);
  return declared.type.list ? list_object(declared.type, o) : object_of(declared.type.base, o);
}

/// What a kernel's results are checked against.
struct Results {
  const OpSchema& schema;
  PyObject* const* arguments;
  const KernelPlace& place;

  /// "myops::f: the kernel for CPU (model.py:12)".
  std::string who() const {
    return fmt::format("{}: the kernel for {} ({}:{})", schema.name(), key_name(place.key), place.where.file,
                       place.where.line);
  }
  Ref one(size_t i, PyObject* o) const;
  void check_memory(size_t position, const Tensor& result) const;
  void check_device(size_t position, const Tensor& result) const;
};

/// The first argument whose memory a result shares, or nothing.
const OpArgument* shared_argument(const OpSchema& schema, PyObject* const* arguments, const Tensor& result) {
  const Storage& storage = result.impl()->storage();
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const OpArgument& a = schema.arguments[i];
    if (a.base != BaseType::Tensor || arguments[i] == Py_None) continue;
    if (!a.list) {
      if (tensor_of(arguments[i]).impl()->storage() == storage) return &a;
      continue;
    }
    for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(arguments[i]); ++j) {
      PyObject* item = PySequence_Fast_GET_ITEM(arguments[i], j);
      if (is_tensor(item) && tensor_of(item).impl()->storage() == storage) return &a;
    }
  }
  return nullptr;
}

void Results::check_memory(size_t position, const Tensor& result) const {
  const schema::Return& declared = schema.source->returns[position];
  if (declared.is_write()) {
    const auto index = schema.source->aliased_argument(position);
    TENON_CHECK(!index || (is_tensor(arguments[*index]) && tensor_of(arguments[*index]).is_same(result)),
                Runtime,
                fmt::format("{}: return {} is declared {}, so it must be argument `{}` itself", who(),
                            position, to_string(declared), schema.source->arguments[*index].name));
    return;
  }
  if (declared.alias) return;  // a view, as the schema says
  const OpArgument* shared = shared_argument(schema, arguments, result);
  TENON_CHECK(!shared, Runtime,
              fmt::format("{}: return {} is argument `{}` or a view of it, which the schema does not say; "
                          "return a clone(), or declare the aliasing as in Tensor(a) {} -> Tensor(a)",
                          who(), position, shared->declared->name, shared->declared->name));
}

/// A kernel of a backend makes tensors on that backend, unless the caller names a device.
void Results::check_device(size_t position, const Tensor& result) const {
  const DispatchKey key = place.key;
  if (schema.takes_device || is_alias_key(key) || !is_per_backend(key.functionality) ||
      key.functionality == Functionality::Autograd)
    return;
  TENON_CHECK(result.device().backend == key.backend, Device,
              fmt::format("{}: return {} is on {}, expected a tensor on {}", who(), position,
                          to_string(result.device()), to_string(Device(key.backend))));
}

Ref Results::one(size_t i, PyObject* o) const {
  const schema::Return& declared = schema.source->returns[i];
  Ref value = plain_result(declared, o);
  TENON_CHECK(
      value, Type,
      fmt::format("{}: return {} must be {}, not {}", who(), i, to_string(declared.type), type_name(o)));
  const auto check = [&](PyObject* item) {
    if (!is_tensor(item)) return;
    check_memory(i, tensor_of(item));
    check_device(i, tensor_of(item));
  };
  if (declared.type.is_tensor()) {
    check(value.get());
  } else if (declared.type.is_tensor_list()) {
    for (Py_ssize_t j = 0; j < PyList_GET_SIZE(value.get()); ++j) check(PyList_GET_ITEM(value.get(), j));
  }
  return value;
}

}  // namespace

const OpSchema& OpSchema::of(const schema::FunctionSchema& source) {
  // Guarded by the interpreter lock.
  static auto& all = *new std::unordered_map<const schema::FunctionSchema*, std::unique_ptr<OpSchema>>;
  const auto known = all.find(&source);
  if (known != all.end()) return *known->second;
  auto made = make(source);
  return *all.emplace(&source, std::move(made)).first->second;
}

bool accept(const OpSchema& schema, const OpArgument& a, PyObject* o, Ref& made, DispatchKeySet& keys) {
  if (fits_exactly(a, o, keys)) return true;
  if (o == Py_None) return a.optional;
  Ref value = a.list ? list_for_call(a, o) : object_of(a.base, o);
  if (!value && schema.numbers_as_tensors && a.base == BaseType::Tensor && !a.list && !a.writes) {
    Scalar number;
    if (parse_scalar(o, number)) value = Ref(checked(wrap(wrapped_scalar_tensor(number))));
  }
  if (!value) return false;
  if (a.base == BaseType::Tensor) {
    if (!a.list) {
      keys |= tensor_of(value.get()).key_set();
    } else {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value.get()); ++i) {
        PyObject* item = PyList_GET_ITEM(value.get(), i);
        if (item != Py_None) keys |= tensor_of(item).key_set();
      }
    }
  }
  if (value.get() != o) made = std::move(value);
  return true;
}

void push_argument(Stack& stack, const OpArgument& a, PyObject* o) { push(stack, a.declared->type, o); }

Ref value_at(Stack& stack, size_t i) {
  const CellTag tag = stack.tag(i);
  Ref value = tag == CellTag::None ? Ref::borrow(Py_None) : Ref();
  tenon::detail::for_each_base([&]<BaseType b>() {
    using V = ValueType<b>;
    if (tag == V::tag) {
      TENON_CHECK(PythonValue<b>::passes, NotImplemented,
                  fmt::format("a {} cannot be passed between Python and kernels", name(tag)));
      value = Ref(checked(PythonValue<b>::wrap(stack.at<typename V::Owned>(i))));
    }
    if constexpr (V::list_tag != CellTag::None) {
      if (tag == V::list_tag)
        value = python::list_of(stack.at<CellList<typename V::Owned>>(i), &PythonValue<b>::wrap);
    }
  });
  return value;
}

Ref accept_results(const OpSchema& schema, PyObject* const* arguments, const KernelPlace& place, Ref result) {
  const auto& returns = schema.source->returns;
  const Results check{schema, arguments, place};
  if (returns.empty()) {
    TENON_CHECK(result.get() == Py_None, Type,
                fmt::format("{}: returned a {}, but the schema returns nothing", check.who(),
                            type_name(result.get())));
    return result;
  }
  if (returns.size() == 1) return check.one(0, result.get());
  TENON_CHECK(is_sequence(result.get()), Type,
              fmt::format("{}: must return {} values as a tuple, not a {}", check.who(), returns.size(),
                          type_name(result.get())));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(result.get());
  TENON_CHECK(static_cast<size_t>(count) == returns.size(), Type,
              fmt::format("{}: returned {} values, the schema has {}", check.who(), count, returns.size()));
  Ref tuple = tuple_by_place(static_cast<size_t>(count), [&](size_t i) {
    return check.one(i, PySequence_Fast_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i)));
  });
  // Two results over the same memory would each be taken for its owner.
  for (Py_ssize_t i = 0; i < count; ++i) {
    for (Py_ssize_t j = 0; j < i; ++j) {
      PyObject *a = PyTuple_GET_ITEM(tuple.get(), i), *b = PyTuple_GET_ITEM(tuple.get(), j);
      if (!is_tensor(a) || !is_tensor(b) || returns[i].alias || returns[j].alias) continue;
      TENON_CHECK(!(tensor_of(a).impl()->storage() == tensor_of(b).impl()->storage()), Runtime,
                  fmt::format("{}: returns {} and {} share their memory, which the schema does not say; "
                              "return a clone() of one",
                              check.who(), j, i));
    }
  }
  return tuple;
}

void push_results(Stack& stack, const OpSchema& schema, PyObject* result) {
  const auto& returns = schema.source->returns;
  if (returns.size() == 1) return push(stack, returns[0].type, result);
  for (size_t i = 0; i < returns.size(); ++i) {
    push(stack, returns[i].type, PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i)));
  }
}

Ref results_from(Stack& stack, size_t first, const OpSchema& schema) {
  const size_t count = schema.source->returns.size();
  if (count == 0) return Ref::borrow(Py_None);
  if (count == 1) return value_at(stack, first);
  return tuple_by_place(count, [&](size_t i) { return value_at(stack, first + i); });
}

}  // namespace tenon::python
