// Caller<Sig>: parses Python's arguments, makes a typed operator call, and converts the result. Instantiated
// for the common C++ signatures (tools/opgen/typed_signatures.cc); boxed_call.cc serves the others. Used by
// the generated signature files only. What differs between operators of one signature is data: overload.h.
#pragma once

#include <tuple>

#include "python/src/call/bind.h"
#include "python/src/call/parser.h"
#include "python/src/interpreter/sequences.h"
#include "tenon/dispatch/operator.h"

namespace tenon::python {

/// Handles requires_grad=True of a factory.
void mark_requires_grad(PyObject* value, Tensor& result);
/// A tuple of the results' named type.
PyObject* named_tuple(const Overload& overload, PyObject* tuple) noexcept;

template <class R>
struct ToPython {
  static PyObject* convert(const Overload&, R value) {
    if constexpr (std::is_same_v<R, Tensor>)
      return wrap(std::move(value));
    else
      return PythonValue<tenon::detail::kOwnedBase<R>.base>::wrap(value);
  }
};
template <>
struct ToPython<Dims> {
  static PyObject* convert(const Overload&, const Dims& v) { return wrap_tuple(v); }
};
template <>
struct ToPython<Tensor&> {
  static PyObject* convert(const Overload&, Tensor& v) { return wrap(Tensor(v)); }
};
template <class T>
struct ToPython<std::vector<T>> {
  static PyObject* convert(const Overload& o, std::vector<T> values) {
    return tuple_of(values, [&](auto&& v) { return ToPython<T>::convert(o, std::move(v)); }).release();
  }
};
template <class... R>
struct ToPython<std::tuple<R...>> {
  static PyObject* convert(const Overload& o, std::tuple<R...> values) {
    Ref tuple(checked(PyTuple_New(sizeof...(R))));
    [&]<size_t... I>(std::index_sequence<I...>) {
      (PyTuple_SET_ITEM(tuple.get(), I,
                        checked(ToPython<R>::convert(o, std::forward<R>(std::get<I>(values))))),
       ...);
    }
    (std::index_sequence_for<R...>());
    return o.result_names ? named_tuple(o, tuple.release()) : tuple.release();
  }
};

/// The call of an operator whose signature has no Caller.
PyObject* call_cells(const Overload& overload, const Arguments& arguments);

/// Keeps the tensors of a call that runs without the interpreter lock. The garbage collector leaves an object
/// alone if Python is not its only owner.
class HoldTensors {
 public:
  HoldTensors(PyObject* const* slots, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (slots[i] && is_tensor(slots[i])) held_.push_back(tensor_of(slots[i]));
    }
  }

 private:
  std::vector<Tensor> held_;
};

template <class Sig>
struct Caller;

template <class R, class... A>
struct Caller<R(A...)> {
  static PyObject* invoke(const Overload& overload, const Arguments& arguments) {
    static_assert(sizeof...(A) <= kMaxParams);
    // One more for requires_grad.
    PyObject* slots[sizeof...(A) + 1];
    if (!bind(overload, arguments, slots)) return kNoMatch;
    try {
      return call(overload, arguments, slots, std::index_sequence_for<A...>());
    } catch (...) {
      set_call_error(overload);
      return nullptr;
    }
  }

 private:
  template <size_t... I>
  static PyObject* call(const Overload& overload, const Arguments& arguments, PyObject** slots,
                        std::index_sequence<I...>) {
    std::tuple<typename Parser<A>::Storage...> values{};
    const auto fits = [&]<size_t i>(std::integral_constant<size_t, i>) {
      using P = Parser<std::tuple_element_t<i, std::tuple<A...>>>;
      if (P::parse(Given{slots[i], overload.params[i], arguments}, std::get<i>(values))) [[likely]]
        return true;
      arguments.failed = static_cast<uint8_t>(i);
      return false;
    };
    if (!(fits(std::integral_constant<size_t, I>()) && ...)) return kNoMatch;
    const TypedOperator<R(A...)> op(*overload.entry);
    // Unsigned, because invalid sizes, which are refused later, may overflow the sum.
    const uint64_t n = (uint64_t{0} + ... + static_cast<uint64_t>(elements<A>(std::get<I>(values))));
    // What is recorded is computed later.
    if (n >= kReleaseGilElements && !overload.is_view && !thread_state.included.has(Functionality::Record)) {
      const HoldTensors held(slots, sizeof...(A));
      if constexpr (std::is_void_v<R>) {
        const ReleaseGil gil;
        op.call(Parser<A>::get(std::get<I>(values))...);
        return Py_NewRef(Py_None);
      } else {
        R result = [&]() -> R {
          const ReleaseGil gil;
          return op.call(Parser<A>::get(std::get<I>(values))...);
        }();
        return finish(overload, slots, std::forward<R>(result));
      }
    } else if constexpr (std::is_void_v<R>) {
      op.call(Parser<A>::get(std::get<I>(values))...);
      return Py_NewRef(Py_None);
    } else {
      return finish(overload, slots, op.call(Parser<A>::get(std::get<I>(values))...));
    }
  }

  static PyObject* finish(const Overload& overload, PyObject** slots, auto&& result) {
    if constexpr (std::is_same_v<R, Tensor>) {
      if (overload.takes_requires_grad && slots[sizeof...(A)]) [[unlikely]]
        mark_requires_grad(slots[sizeof...(A)], result);
    }
    return ToPython<R>::convert(overload, std::forward<R>(result));
  }

  template <class T>
  static int64_t elements(typename Parser<T>::Storage& s) noexcept {
    if constexpr (requires { Parser<T>::elements(s); })
      return Parser<T>::elements(s);
    else
      return 0;
  }
};

}  // namespace tenon::python
