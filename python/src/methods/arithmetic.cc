// The number slots of Tensor: `+`, `==`, `-x`, bool(x), int(x), ... Each calls the operator of the same
// meaning.
#include "python/src/call/typed_call.h"
#include "python/src/exchange/from_data.h"
#include "python/src/tensor/tensor_parts.h"

namespace tenon::python {
namespace {

/// An operator of Python by the method, and the function for a number on the left, that it calls.
struct Binary {
  const char* method;
  /// Called with both operands swapped back, as a method of the right operand; null: the function in written
  /// order.
  const char* reflected;
  const Function* forward = nullptr;
  const Function* backward = nullptr;
  const Function* function = nullptr;

  void find() noexcept {
    forward = find_method(method);
    if (reflected) backward = find_method(reflected);
    function = find_function(method);
  }
};

enum BinaryIndex {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLeft,
  kRight,
  kNumBinary
};
Binary g_binary[kNumBinary] = {
    {"add", "add"},
    {"sub", "rsub"},
    {"mul", "mul"},
    {"div", nullptr},
    {"floor_divide", nullptr},
    {"remainder", nullptr},
    {"pow", nullptr},
    {"matmul", nullptr},
    {"bitwise_and", "bitwise_and"},
    {"bitwise_or", "bitwise_or"},
    {"bitwise_xor", "bitwise_xor"},
    {"bitwise_left_shift", nullptr},
    {"bitwise_right_shift", nullptr},
};
const char* const kInplaceNames[kNumBinary] = {"add_",
                                               "sub_",
                                               "mul_",
                                               "div_",
                                               "floor_divide_",
                                               "remainder_",
                                               "pow_",
                                               "matmul_",
                                               "bitwise_and_",
                                               "bitwise_or_",
                                               "bitwise_xor_",
                                               "bitwise_left_shift_",
                                               "bitwise_right_shift_"};
const Function* g_inplace[kNumBinary];

enum UnaryIndex { kNeg, kAbs, kInvert, kNumUnary };
const char* const kUnaryNames[kNumUnary] = {"neg", "abs", "bitwise_not"};
const Function* g_unary[kNumUnary];

const char* const kCompareNames[6] = {"lt", "le", "eq", "ne", "gt", "ge"};  // in the order of Py_LT ... Py_GE
const Function* g_compare[6];

PyObject* call_or_not_implemented(const Function* f, Arguments arguments) noexcept {
  return f ? call_operator(*f, arguments) : Py_NewRef(Py_NotImplemented);
}

/// A tensor over a NumPy array's memory; null with an exception set where there is none.
Ref tensor_over(PyObject* array) noexcept {
  return Ref(guarded([&] { return wrap(tensor_from_buffer(array, "from_numpy")); }));
}

/// The operator of a tensor and anything. A NumPy array counts as a tensor over its memory: Python would
/// compare identities, or have NumPy compute an array.
PyObject* call_binary(const Function* f, PyObject* a, PyObject* b) noexcept {
  PyObject* result = call_or_not_implemented(f, {.self = a, .args = &b, .count = 1});
  if (result != Py_NotImplemented || !is_numpy_array(b)) [[likely]]
    return result;
  Py_DECREF(result);
  const Ref converted = tensor_over(b);
  if (!converted) return nullptr;
  PyObject* other = converted.get();
  return call_or_not_implemented(f, {.self = a, .args = &other, .count = 1});
}

template <BinaryIndex index>
PyObject* binary(PyObject* a, PyObject* b) {
  const Binary& op = g_binary[index];
  if (is_tensor(a)) [[likely]]
    return call_binary(op.forward, a, b);
  if (is_numpy_array(a)) {
    const Ref converted = tensor_over(a);
    return converted ? call_binary(op.forward, converted.get(), b) : nullptr;
  }
  if (op.backward) return call_or_not_implemented(op.backward, {.self = b, .args = &a, .count = 1});
  PyObject* both[] = {a, b};
  return call_or_not_implemented(op.function, {.args = both, .count = 2});
}

template <BinaryIndex index>
PyObject* inplace(PyObject* a, PyObject* b) {
  return call_binary(g_inplace[index], a, b);
}

template <UnaryIndex index>
PyObject* unary(PyObject* a) {
  return call(*g_unary[index], {.self = a});
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() of a Tensor takes no modulus");
  return binary<kPow>(a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace<kPow>(a, b); }

PyObject* compare(PyObject* a, PyObject* b, int op) { return call_binary(g_compare[op], a, b); }

/// The one element, as `what` ("bool", "int", ...) needs it.
Scalar only_element(PyObject* o, const char* what) {
  const Tensor& t = tensor_of(o);
  if (t.numel() != 1) {
    // PyTorch's kinds: the truth of many elements is ambiguous, their number a wrong value.
    throw_error(what[0] == 'b' ? ErrorKind::Runtime : ErrorKind::Value,
                std::string(what) + "(): a tensor with " + std::to_string(t.numel()) +
                    " elements has no single value" + (what[0] == 'b' ? "; use any() or all()" : ""));
  }
  return t.item();
}

int to_bool(PyObject* o) {
  return guarded([&] { return static_cast<int>(only_element(o, "bool").to_bool()); });
}

/// An int, of truth 1 or 0.
PyObject* whole_number(const Scalar& value) { return wrap(value.is_bool() ? Scalar(value.to_int()) : value); }

PyObject* to_int(PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Scalar value = only_element(o, "int");
    if (value.is_integral()) return whole_number(value);
    TENON_CHECK(value.to_complex().imag() == 0, Type, "int(): a complex tensor has no integer value");
    return PyLong_FromDouble(value.to_double());  // raises for NaN and infinity, exact beyond 64 bits
  });
}

PyObject* to_float(PyObject* o) {
  return guarded([&] {
    const Scalar value = only_element(o, "float");
    TENON_CHECK(value.to_complex().imag() == 0, Type, "float(): a complex tensor has no real value");
    return PyFloat_FromDouble(value.to_double());
  });
}

PyObject* to_index(PyObject* o) {
  return guarded([&] {
    const Tensor& t = tensor_of(o);
    TENON_CHECK(is_integral(t.dtype(), true) && t.numel() == 1, Type,
                "only an integer tensor of one element can be used as an index, got " + summary(t));
    return whole_number(t.item());
  });
}

PyObject* to_complex(PyObject* o, PyObject*) {
  return guarded([&] {
    const std::complex<double> value = only_element(o, "complex").to_complex();
    return PyComplex_FromDoubles(value.real(), value.imag());
  });
}

PyNumberMethods g_slots = {};
PyMethodDef g_arithmetic_methods[] = {{"__complex__", &to_complex, METH_NOARGS, nullptr}};

}  // namespace

TensorPart number_part() {
  for (Binary& op : g_binary) op.find();
  for (int i = 0; i < kNumBinary; ++i) g_inplace[i] = find_method(kInplaceNames[i]);
  for (int i = 0; i < kNumUnary; ++i) g_unary[i] = find_method(kUnaryNames[i]);
  for (int i = 0; i < 6; ++i) g_compare[i] = find_method(kCompareNames[i]);

  PyNumberMethods& n = g_slots;
  n.nb_add = &binary<kAdd>;
  n.nb_subtract = &binary<kSub>;
  n.nb_multiply = &binary<kMul>;
  n.nb_true_divide = &binary<kDiv>;
  n.nb_floor_divide = &binary<kFloorDiv>;
  n.nb_remainder = &binary<kMod>;
  n.nb_power = &power;
  n.nb_matrix_multiply = &binary<kMatmul>;
  n.nb_and = &binary<kAnd>;
  n.nb_or = &binary<kOr>;
  n.nb_xor = &binary<kXor>;
  n.nb_lshift = &binary<kLeft>;
  n.nb_rshift = &binary<kRight>;
  n.nb_inplace_lshift = &inplace<kLeft>;
  n.nb_inplace_rshift = &inplace<kRight>;
  n.nb_inplace_add = &inplace<kAdd>;
  n.nb_inplace_subtract = &inplace<kSub>;
  n.nb_inplace_multiply = &inplace<kMul>;
  n.nb_inplace_true_divide = &inplace<kDiv>;
  n.nb_inplace_floor_divide = &inplace<kFloorDiv>;
  n.nb_inplace_remainder = &inplace<kMod>;
  n.nb_inplace_power = &inplace_power;
  n.nb_inplace_and = &inplace<kAnd>;
  n.nb_inplace_or = &inplace<kOr>;
  n.nb_inplace_xor = &inplace<kXor>;
  n.nb_negative = &unary<kNeg>;
  n.nb_positive = [](PyObject* o) { return Py_NewRef(o); };
  n.nb_absolute = &unary<kAbs>;
  n.nb_invert = &unary<kInvert>;
  n.nb_bool = &to_bool;
  n.nb_int = &to_int;
  n.nb_float = &to_float;
  n.nb_index = &to_index;
  tensor_type.tp_as_number = &g_slots;
  tensor_type.tp_richcompare = &compare;
  // Defining comparison would otherwise make tensors unhashable; they hash by identity.
  tensor_type.tp_hash = [](PyObject* o) { return _Py_HashPointer(o); };
  return {g_arithmetic_methods, {}};
}

}  // namespace tenon::python
