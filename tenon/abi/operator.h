// Calls of operators from a plug-in, through the dispatcher:
//
//     Tensor z = call_operator("aten::sub.Tensor", x, y, scalar(1));
//
// All arguments of the schema are given, in its order; nothing has a default. Header-only, C++17.
#pragma once

#include <array>

#include "tenon/abi/values.h"

namespace tenon::abi {
namespace detail {

/// One argument of a call, and what its cell points to. Stays where it is until the call has returned.
struct Argument {
  TenonCell cell{};
  uint8_t tag = TENON_CELL_NONE;
  TenonScalar scalar{};
  TenonList list{};
  std::vector<TenonTensor*> tensors;

  void point_to(const void* what, uint8_t what_tag) {
    cell.p = const_cast<void*>(what);
    tag = what_tag;
  }
  void point_to_list(const void* data, size_t size, uint8_t list_tag) {
    list = {const_cast<void*>(data), size};
    point_to(&list, list_tag);
  }
  void put_byte(uint8_t value, uint8_t byte_tag) {
    cell.b = value;
    tag = byte_tag;
  }
};

inline void give(Argument&, std::nullopt_t) {}
inline void give(Argument& a, const Tensor& tensor) { a.point_to(tensor.get(), TENON_CELL_TENSOR); }
inline void give(Argument& a, const Generator& generator) {
  a.point_to(generator.get(), TENON_CELL_GENERATOR);
}
inline void give(Argument& a, const TenonScalar& number) {
  a.scalar = number;
  a.point_to(&a.scalar, TENON_CELL_SCALAR);
}
inline void give(Argument& a, TenonDevice device) { Value<TenonDevice>::put(a.cell, a.tag, device); }
inline void give(Argument& a, Layout layout) { a.put_byte(static_cast<uint8_t>(layout), TENON_CELL_LAYOUT); }
inline void give(Argument& a, MemoryFormat format) {
  a.put_byte(static_cast<uint8_t>(format), TENON_CELL_MEMORY_FORMAT);
}
/// Of the constants TENON_DTYPE_*.
inline void give(Argument& a, decltype(TENON_DTYPE_BOOL) dtype) {
  a.put_byte(static_cast<uint8_t>(dtype), TENON_CELL_DTYPE);
}
inline void give(Argument& a, std::string_view text) {
  a.point_to_list(text.data(), text.size(), TENON_CELL_STR);
}
inline void give(Argument& a, const IntList& list) {
  a.point_to_list(list.data, list.size, TENON_CELL_INT_LIST);
}
inline void give(Argument& a, const std::vector<int64_t>& list) {
  a.point_to_list(list.data(), list.size(), TENON_CELL_INT_LIST);
}
inline void give(Argument& a, const List<double>& list) {
  a.point_to_list(list.data, list.size, TENON_CELL_FLOAT_LIST);
}
inline void give(Argument& a, const std::vector<double>& list) {
  a.point_to_list(list.data(), list.size(), TENON_CELL_FLOAT_LIST);
}
inline void give(Argument& a, const std::vector<Tensor>& list) {
  for (const Tensor& tensor : list) a.tensors.push_back(tensor.get());
  a.point_to_list(a.tensors.data(), a.tensors.size(), TENON_CELL_TENSOR_LIST);
}
/// Numbers; one of type TenonDType is a dtype.
template <class T>
std::enable_if_t<std::is_arithmetic_v<T>> give(Argument& a, T number) {
  if constexpr (std::is_same_v<T, TenonDType>)
    a.put_byte(number, TENON_CELL_DTYPE);
  else if constexpr (std::is_same_v<T, bool>)
    Value<bool>::put(a.cell, a.tag, number);
  else if constexpr (std::is_integral_v<T>)
    Value<int64_t>::put(a.cell, a.tag, to_int64(number));
  else
    Value<double>::put(a.cell, a.tag, static_cast<double>(number));
}
template <class T>
void give(Argument& a, const std::optional<T>& value) {
  if (value) give(a, *value);
}

/// Whether a value of type T belongs to its holder, so that it may outlive the cell that it was read
/// from.
template <class T>
inline constexpr bool kOwns = !std::is_same_v<T, std::string_view> && !std::is_same_v<T, Generator>;
template <class T>
inline constexpr bool kOwns<List<T>> = false;
template <class T>
inline constexpr bool kOwns<std::optional<T>> = kOwns<T>;

/// What a call of an operator gave; freed at the end.
template <size_t n>
struct CallResults {
  explicit CallResults(const TenonOperator* op) : called(op) {}
  CallResults(const CallResults&) = delete;
  CallResults& operator=(const CallResults&) = delete;
  ~CallResults() {
    for (size_t i = 0; i < n; ++i) {
      if (tags[i] != TENON_CELL_NONE) host().cell_free(&cells[i], tags[i]);
    }
  }
  template <class T>
  T get(size_t i) const {
    static_assert(kOwns<T>, "a call cannot return the T of this get<T>: it would refer to what is freed");
    return Value<T>::get({cells[i], tags[i], i, called});
  }
  const TenonOperator* called;
  // One at least: there is no array of none.
  std::array<TenonCell, n + 1> cells{};
  std::array<uint8_t, n + 1> tags{};
};

/// How a result of type R is taken out.
template <class R>
struct Returned {
  static constexpr size_t count = 1;
  static R get(const CallResults<1>& results) { return results.get<R>(0); }
};
template <>
struct Returned<void> {
  static constexpr size_t count = 0;
  static void get(const CallResults<0>&) {}
};
template <class... T>
struct Returned<std::tuple<T...>> {
  static constexpr size_t count = sizeof...(T);
  static std::tuple<T...> get(const CallResults<count>& results) {
    return get(results, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  static std::tuple<T...> get(const CallResults<count>& results, std::index_sequence<I...>) {
    return std::tuple<T...>(results.template get<T>(I)...);
  }
};

}  // namespace detail

/// An operator of the host, which lives as long as the process: looked up once, called often.
class Operator {
 public:
  /// "aten::sub.Tensor". Throws for a name that there is not.
  explicit Operator(const char* name) { check(host().op_find(name, &op_)); }

  /// Calls it with all arguments of its schema: numbers, `scalar(1)` for a Scalar, a TenonDType for a dtype,
  /// tensors, lists, std::nullopt and optionals. R is Tensor, int64_t, double, bool, TenonScalar,
  /// std::vector<Tensor>, void for an operator that returns nothing, or a std::tuple of results. Throws what
  /// the operator throws, and for a wrong count, a wrong type, and a value that the type has not. Runs on the
  /// current stream of its tensors' device.
  template <class R = Tensor, class... A>
  R call(const A&... values) const {
    std::array<detail::Argument, sizeof...(A) + 1> given;
    size_t i = 0;
    (detail::give(given[i++], values), ...);
    std::array<TenonCell, sizeof...(A) + 1> cells{};
    std::array<uint8_t, sizeof...(A) + 1> tags{};
    for (i = 0; i < sizeof...(A); ++i) {
      cells[i] = given[i].cell;
      tags[i] = given[i].tag;
    }
    constexpr size_t kResults = detail::Returned<R>::count;
    detail::CallResults<kResults> results(op_);
    check(host().op_call(op_, cells.data(), tags.data(), sizeof...(A), results.cells.data(),
                         results.tags.data(), kResults));
    return detail::Returned<R>::get(results);
  }

 private:
  const TenonOperator* op_ = nullptr;
};

/// Calls an operator by its name, as Operator::call does.
template <class R = Tensor, class... A>
R call_operator(const char* name, const A&... values) {
  return Operator(name).call<R>(values...);
}

}  // namespace tenon::abi
