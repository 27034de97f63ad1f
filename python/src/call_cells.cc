// Calls of operators whose C++ signature is rare: one path for all of them, over cells. What a typed Caller
// has the compiler write for each signature, this does by the schema's types. docs/decisions/0010 has the
// figures.
#include "python/src/call.h"
#include "python/src/op_schema.h"

namespace tenon::python {
namespace {

using schema::BaseType;

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
  if (a.type.list) {
    switch (a.type.base) {
      case BaseType::Tensor:
        return parse_and_push<TensorList>(given, stack, elements);
      case BaseType::Int:
        return parse_and_push<IntArrayRef>(given, optional, stack, elements);
      case BaseType::Float:
        return parse_and_push<std::span<const double>>(given, optional, stack, elements);
      case BaseType::Scalar:
        return parse_and_push<std::span<const Scalar>>(given, optional, stack, elements);
      default:
        return false;
    }
  }
  switch (a.type.base) {
    case BaseType::Tensor:
      return a.is_write() ? parse_and_push<Tensor&>(given, stack, elements)
                          : parse_and_push<const Tensor&>(given, stack, elements);
    case BaseType::Generator:
      return parse_and_push<const Generator&>(given, stack, elements);
    case BaseType::Storage:
      return parse_and_push<const Storage&>(given, stack, elements);
    case BaseType::Scalar:
      return optional ? parse_and_push<std::optional<Scalar>>(given, stack, elements)
                      : parse_and_push<const Scalar&>(given, stack, elements);
    case BaseType::Int:
      return parse_and_push<int64_t>(given, optional, stack, elements);
    case BaseType::Float:
      return parse_and_push<double>(given, optional, stack, elements);
    case BaseType::Bool:
      return parse_and_push<bool>(given, optional, stack, elements);
    case BaseType::Str:
      return parse_and_push<std::string_view>(given, optional, stack, elements);
    case BaseType::ScalarType:
      return parse_and_push<DType>(given, optional, stack, elements);
    case BaseType::Layout:
      return parse_and_push<Layout>(given, optional, stack, elements);
    case BaseType::MemoryFormat:
      return parse_and_push<MemoryFormat>(given, optional, stack, elements);
    case BaseType::Device:
      return parse_and_push<Device>(given, optional, stack, elements);
    case BaseType::Stream:
      return false;
  }
  return false;
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
  Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(stack.size()))));
  for (size_t i = 0; i < stack.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(result_at(overload, stack, i)));
  return overload.result_names ? named_tuple(overload, tuple.release()) : tuple.release();
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
      arguments.failed = static_cast<int>(i);
      return kNoMatch;
    }
    if (elements >= kReleaseGilElements) {
      const ReleaseGil gil;
      op.call_boxed(stack);
    } else {
      op.call_boxed(stack);
    }
    if (overload.takes_requires_grad && slots[overload.num_params]) [[unlikely]]
      mark_requires_grad(slots[overload.num_params], stack.at<Tensor>(0));
    return results_of(overload, stack);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace tenon::python
