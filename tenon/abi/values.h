// The C++ types of values that operators take and return: how each is read from a cell and stored in one, and
// what a schema calls it. For kernels (kernel.h) and for calls of operators (operator.h). Header-only, C++17.
#pragma once

#include <optional>
#include <tuple>

#include "tenon/abi/plugin.h"

namespace tenon::abi {

/// A list that has another owner.
template <class T>
struct List {
  const T* data = nullptr;
  size_t size = 0;

  const T* begin() const noexcept { return data; }
  const T* end() const noexcept { return data + size; }
  const T& operator[](size_t i) const noexcept { return data[i]; }
};
using IntList = List<int64_t>;

enum class Layout : uint8_t { Strided = 0, Sparse = 1, SparseCsr = 2, Blocked = 3 };
enum class MemoryFormat : uint8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };

/// A generator among the arguments of a call, for as long as the call lasts; undefined: the default one.
class Generator {
 public:
  Generator() = default;
  explicit Generator(TenonGenerator* generator) noexcept : generator_(generator) {}

  bool defined() const noexcept { return generator_ != nullptr; }
  TenonGenerator* get() const noexcept { return generator_; }
  /// Takes so many blocks of 128 bits from its stream of random numbers; says where they begin.
  TenonPhilox take(uint64_t blocks) const {
    TenonPhilox taken{};
    check(host().generator_take(generator_, blocks, &taken));
    return taken;
  }

 private:
  TenonGenerator* generator_ = nullptr;
};

namespace detail {

/// An integer as a cell holds it. Throws for one beyond int64.
template <class T>
int64_t to_int64(T number) {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(int64_t)) {
    if (number > static_cast<T>(INT64_MAX))
      throw Error(TENON_ERROR_VALUE, std::to_string(number) + " is beyond int64");
  }
  return static_cast<int64_t>(number);
}

}  // namespace detail

/// A number as operators take it where their schema says Scalar. Throws for an integer beyond int64.
template <class T>
TenonScalar scalar(T number) {
  static_assert(std::is_arithmetic_v<T>, "a Scalar is made from a number");
  TenonScalar s{};
  s.kind = std::is_same_v<T, bool> ? 0 : std::is_integral_v<T> ? 1 : 2;
  if constexpr (std::is_integral_v<T>)
    s.value.i = detail::to_int64(number);
  else
    s.value.d = static_cast<double>(number);
  return s;
}

namespace detail {

/// A cell that is read: an argument of the kernel, or a result of the operator `called`.
struct Given {
  const TenonCell& cell;
  uint8_t tag;
  size_t index;
  const TenonOperator* called = nullptr;
};

[[noreturn]] inline void wrong_value(const Given& given, const char* expected) {
  const std::string which = (given.called ? "result " : "argument ") + std::to_string(given.index) + " of " +
                            (given.called ? host().op_name(given.called) : "the kernel");
  throw Error(TENON_ERROR_TYPE, which + " is not " + expected + ", which its C++ type asks for");
}
inline void check_tag(const Given& given, uint8_t tag, const char* expected) {
  if (given.tag != tag) wrong_value(given, expected);
}

/// Depends on a type, so that its surroundings are checked where that type is used.
template <class T>
inline constexpr bool kNone = false;

/// How a value of type T is read from a cell (`get`), and, where an operator may return it, stored (`put`).
template <class T>
struct Value {
  static_assert(kNone<T>,
                "a kernel cannot take or return the T of this Value<T>; it may be Tensor, int64_t, double, "
                "bool, TenonScalar, TenonDType, TenonDevice, Layout, MemoryFormat, Generator, "
                "std::string_view, IntList, List<double>, std::vector<Tensor>, or std::optional of one of "
                "them (docs/backends.md)");
};

template <class T, uint8_t kTag, T TenonCell::*member>
struct PlainValue {
  static T get(const Given& given) {
    check_tag(given, kTag, "of that kind");
    return given.cell.*member;
  }
  static void put(TenonCell& cell, uint8_t& tag, T value) {
    cell = {};
    cell.*member = value;
    tag = kTag;
  }
};
template <>
struct Value<int64_t> : PlainValue<int64_t, TENON_CELL_INT, &TenonCell::i> {};
template <>
struct Value<double> : PlainValue<double, TENON_CELL_FLOAT, &TenonCell::d> {};
template <>
struct Value<TenonDevice> : PlainValue<TenonDevice, TENON_CELL_DEVICE, &TenonCell::device> {};
template <>
struct Value<bool> {
  static bool get(const Given& given) {
    check_tag(given, TENON_CELL_BOOL, "a bool");
    return given.cell.b != 0;
  }
  static void put(TenonCell& cell, uint8_t& tag, bool value) {
    cell = {};
    cell.b = value;
    tag = TENON_CELL_BOOL;
  }
};
/// What is one byte and no result.
template <class T, uint8_t kTag>
struct ByteValue {
  static T get(const Given& given) {
    check_tag(given, kTag,
              kTag == TENON_CELL_DTYPE    ? "a dtype"
              : kTag == TENON_CELL_LAYOUT ? "a layout"
                                          : "a memory format");
    return static_cast<T>(given.cell.b);
  }
};
template <>
struct Value<TenonDType> : ByteValue<TenonDType, TENON_CELL_DTYPE> {};
template <>
struct Value<Layout> : ByteValue<Layout, TENON_CELL_LAYOUT> {};
template <>
struct Value<MemoryFormat> : ByteValue<MemoryFormat, TENON_CELL_MEMORY_FORMAT> {};
template <>
struct Value<TenonScalar> {
  static TenonScalar get(const Given& given) {
    check_tag(given, TENON_CELL_SCALAR, "a Scalar");
    return *static_cast<const TenonScalar*>(given.cell.p);
  }
};
template <>
struct Value<Tensor> {
  static Tensor get(const Given& given) {
    if (given.tag == TENON_CELL_NONE) return Tensor();
    check_tag(given, TENON_CELL_TENSOR, "a Tensor");
    return Tensor::share(static_cast<TenonTensor*>(given.cell.p));
  }
  static void put(TenonCell& cell, uint8_t& tag, Tensor value) {
    cell.p = value.release();
    tag = TENON_CELL_TENSOR;
  }
};
template <>
struct Value<Generator> {
  static Generator get(const Given& given) {
    if (given.tag == TENON_CELL_NONE) return Generator();
    check_tag(given, TENON_CELL_GENERATOR, "a Generator");
    return Generator(static_cast<TenonGenerator*>(given.cell.p));
  }
};
template <>
struct Value<std::string_view> {
  static std::string_view get(const Given& given) {
    check_tag(given, TENON_CELL_STR, "a str");
    const auto& list = *static_cast<const TenonList*>(given.cell.p);
    return {static_cast<const char*>(list.data), list.size};
  }
};
template <class T, uint8_t kTag>
struct ListValue {
  static List<T> get(const Given& given) {
    check_tag(given, kTag, "a list of that kind");
    const auto& list = *static_cast<const TenonList*>(given.cell.p);
    return {static_cast<const T*>(list.data), list.size};
  }
};
template <>
struct Value<List<int64_t>> : ListValue<int64_t, TENON_CELL_INT_LIST> {};
template <>
struct Value<List<double>> : ListValue<double, TENON_CELL_FLOAT_LIST> {};
template <>
struct Value<std::vector<Tensor>> {
  static std::vector<Tensor> get(const Given& given) {
    check_tag(given, TENON_CELL_TENSOR_LIST, "a list of tensors");
    const auto& list = *static_cast<const TenonList*>(given.cell.p);
    std::vector<Tensor> tensors;
    for (uint64_t t = 0; t < list.size; ++t)
      tensors.push_back(Tensor::share(static_cast<TenonTensor**>(list.data)[t]));
    return tensors;
  }
};
template <class T>
struct Value<std::optional<T>> {
  static std::optional<T> get(const Given& given) {
    // What has an undefined value is passed as that instead of as nothing.
    const bool undefined =
        (given.tag == TENON_CELL_TENSOR || given.tag == TENON_CELL_GENERATOR) && given.cell.p == nullptr;
    if (given.tag == TENON_CELL_NONE || undefined) return std::nullopt;
    return Value<T>::get(given);
  }
};

/// The name of a type in a schema.
template <class T>
struct SchemaType;
template <>
struct SchemaType<int64_t> {
  static std::string text() { return "int"; }
};
template <>
struct SchemaType<double> {
  static std::string text() { return "float"; }
};
template <>
struct SchemaType<bool> {
  static std::string text() { return "bool"; }
};
template <>
struct SchemaType<TenonDType> {
  static std::string text() { return "ScalarType"; }
};
template <>
struct SchemaType<Layout> {
  static std::string text() { return "Layout"; }
};
template <>
struct SchemaType<MemoryFormat> {
  static std::string text() { return "MemoryFormat"; }
};
template <>
struct SchemaType<Generator> {
  static std::string text() { return "Generator"; }
};
template <>
struct SchemaType<TenonDevice> {
  static std::string text() { return "Device"; }
};
template <>
struct SchemaType<TenonScalar> {
  static std::string text() { return "Scalar"; }
};
template <>
struct SchemaType<Tensor> {
  static std::string text() { return "Tensor"; }
};
template <>
struct SchemaType<std::string_view> {
  static std::string text() { return "str"; }
};
template <class T>
struct SchemaType<List<T>> {
  static std::string text() { return SchemaType<T>::text() + "[]"; }
};
template <class T>
struct SchemaType<std::vector<T>> {
  static std::string text() { return SchemaType<T>::text() + "[]"; }
};
template <class T>
struct SchemaType<std::optional<T>> {
  static std::string text() { return SchemaType<T>::text() + "?"; }
};

}  // namespace detail
}  // namespace tenon::abi
