// Calls of operators whose C++ signature is rare. One code path serves them all: it parses arguments by the
// schema's types into cells, and makes a boxed call. docs/decisions/0010 says why, with figures.
#include <fmt/core.h>

#include "python/src/call/op_schema.h"
#include "python/src/call/typed_call.h"
#include "python/src/interpreter/sequences.h"
#include "tenon/core/stream.h"

namespace tenon::python {
namespace {

/// Parses one argument as the C++ type A, and pushes what a typed call would pass.
template <class A>
bool parse_and_push(const Given& given, Stack& stack, uint64_t& elements) {
  using P = Parser<A>;
  typename P::Storage value{};
  if (!P::parse(given, value)) return false;
  // Unsigned, as sizes that make no sense are refused later, and may add up to anything.
  if constexpr (requires { P::elements(value); }) elements += static_cast<uint64_t>(P::elements(value));
  detail::ArgTraits<A>::push(stack, P::get(value));
  return true;
}
/// The same of A or, where the argument may be None, of std::optional<A>.
template <class A>
bool parse_and_push(const Given& given, bool optional, Stack& stack, uint64_t& elements) {
  return optional ? parse_and_push<std::optional<A>>(given, stack, elements)
                  : parse_and_push<A>(given, stack, elements);
}

bool push_parsed(const Given& given, const schema::Argument& a, Stack& stack, uint64_t& elements) {
  const bool optional = a.type.optional;
  return tenon::detail::visit_base<bool>(a.type.base, [&]<BaseType b>() {
    using V = tenon::detail::ValueType<b>;
    using One = std::remove_cvref_t<typename V::Borrowed>;
    if constexpr (b == BaseType::Tensor) {
      if (a.type.list) return parse_and_push<TensorList>(given, stack, elements);
      if (a.is_write()) return parse_and_push<Tensor&>(given, stack, elements);
    } else if (a.type.list) {
      if constexpr (requires { typename Parser<typename V::BorrowedList>::Storage; })
        return parse_and_push<typename V::BorrowedList>(given, optional, stack, elements);
      else
        return false;
    }
    if constexpr (!schema::base_type_info(b).has_undefined) {
      if (optional) return parse_and_push<std::optional<One>>(given, stack, elements);
    }
    return parse_and_push<typename V::Borrowed>(given, stack, elements);
  });
}

/// One result as a typed call returns it: lists are tuples.
PyObject* result_at(const Overload& overload, Stack& stack, size_t i) {
  switch (stack.tag(i)) {
    case CellTag::Tensor:
      return wrap(stack.take<Tensor>(i));
    case CellTag::TensorList:
      return ToPython<std::vector<Tensor>>::convert(overload, stack.take<std::vector<Tensor>>(i));
    case CellTag::IntList:
      return ToPython<Dims>::convert(overload, stack.take<Dims>(i));
    default:
      return value_at(stack, i).release();
  }
}

PyObject* results_of(const Overload& overload, Stack& stack) {
  if (stack.empty()) return Py_NewRef(Py_None);
  if (stack.size() == 1) return result_at(overload, stack, 0);
  Ref tuple = tuple_by_place(stack.size(), [&](size_t i) { return result_at(overload, stack, i); });
  return overload.result_names ? named_tuple(overload, tuple.release()) : tuple.release();
}

/// Throws Error{Type} unless the options that a factory is given besides `out` are those of `out`. Which
/// parameter's value is no such option, or -1.
int check_options(const Overload& overload, const schema::FunctionSchema& schema, PyObject* const* slots) {
  int i = static_cast<int>(schema.arguments.size());
  const Tensor& out = tensor_of(slots[i - 1]);
  const auto check = [&](auto value, auto fits, auto has) {
    PyObject* given = slots[i];
    if (given && given != Py_None) {
      typename decltype(value)::Storage wanted{};
      if (!value.parse(given, wanted)) return false;
      if (!fits(wanted)) {
        const Ref text(checked(PyObject_Str(given)));
        const char* shown = PyUnicode_AsUTF8(text.get());
        if (!shown) throw PythonError();
        throw_error(ErrorKind::Type, fmt::format("{}: {}={} does not match `out`, which is {}", schema.name,
                                                 overload.params[i].name, shown, has()));
      }
    }
    ++i;
    return true;
  };
  const bool parsed =
      check(
          PythonValue<BaseType::ScalarType>(), [&](DType d) { return d == out.dtype(); },
          [&] { return std::string(name(out.dtype())); }) &&
      check(
          PythonValue<BaseType::Layout>(), [&](Layout l) { return l == out.layout(); },
          [&] { return std::string(name(out.layout())); }) &&
      check(
          PythonValue<BaseType::Device>(), [&](Device d) { return same_device(d, out.device()); },
          [&] { return "on " + to_string(out.device()); }) &&
      check(
          PythonValue<BaseType::Bool>(), [](bool pinned) { return !pinned; },
          [] { return std::string("not pinned"); });
  return parsed ? -1 : i;
}

}  // namespace

PyObject* call_cells(const Overload& overload, const Arguments& arguments) {
  PyObject* slots[kMaxParams + 1];
  if (!bind(overload, arguments, slots)) return kNoMatch;
  try {
    const OperatorHandle op(*overload.entry);
    const schema::FunctionSchema& schema = op.schema();
    Stack stack;
    uint64_t elements = 0;
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      if (push_parsed({slots[i], overload.params[i], arguments}, schema.arguments[i], stack, elements))
          [[likely]]
        continue;
      arguments.failed = static_cast<uint8_t>(i);
      return kNoMatch;
    }
    if (overload.options_of_out) {
      if (const int wrong = check_options(overload, schema, slots); wrong >= 0) {
        arguments.failed = static_cast<uint8_t>(wrong);
        return kNoMatch;
      }
    }
    if (elements >= kReleaseGilElements && !overload.is_view) {
      const ReleaseGil gil;
      op.call_boxed(stack);
    } else {
      op.call_boxed(stack);
    }
    if (overload.takes_requires_grad && slots[overload.num_params]) [[unlikely]]
      mark_requires_grad(slots[overload.num_params], stack.at<Tensor>(0));
    return results_of(overload, stack);
  } catch (...) {
    set_call_error(overload);
    return nullptr;
  }
}

}  // namespace tenon::python
