// ValueType: what each base type of the schema language is in C++: the type that owns a value, the type that
// an argument borrows it as, what a cell holds, which keys it adds to a call. Cells, argument and return
// types, and what autograd keeps of arguments are all derived from these rows.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/core/dims.h"
#include "tenon/core/generator.h"
#include "tenon/core/tensor.h"
#include "tenon/schema/base_types.h"

namespace tenon {

/// What a cell holds. The numbers are part of the plug-in ABI. Values of up to 64 bits are stored in the cell
/// itself, smaller ones in its low bytes with zeros above; for larger values the cell points to an object
/// that it owns on the heap.
enum class CellTag : uint8_t {
  None = 0,
  Int = 1,
  Float = 2,
  Bool = 3,
  DType = 4,
  Device = 5,  ///< The backend in byte 0, the index (signed) in byte 1.
  Layout = 6,
  MemoryFormat = 7,
  Tensor = 8,  ///< One reference; null for an undefined tensor.
  Generator = 9,
  Scalar = 10,     ///< A pointer to {uint8 kind; int64 or double; double imaginary part}.
  Str = 11,        ///< This and the following: a pointer to a CellList.
  IntList = 12,    ///< of int64
  FloatList = 13,  ///< of double
  BoolList = 14,   ///< of bytes, 0 or 1
  ScalarList = 15,
  TensorList = 16,
  Storage = 17,  ///< One reference.
};

namespace detail {

using schema::BaseType;

/// One row. A stack and a result own an `Own`; an argument is a `Borrow`.
template <class Own, class Borrow, CellTag kTag>
struct ValueRow {
  using Owned = Own;
  using Borrowed = Borrow;
  static constexpr CellTag tag = kTag;
  /// Whether the value is stored in the cell itself.
  static constexpr bool in_cell = sizeof(Own) <= 8;
  /// The tag of a list of such values, and how an argument borrows one; None and void if lists do not exist.
  static constexpr CellTag list_tag = CellTag::None;
  using BorrowedList = void;
  /// The keys that an argument of this type adds to every call, even if it is None.
  static constexpr DispatchKeySet argument_keys{};
  /// Whether a recorded call keeps it for the formula of its gradient.
  static constexpr bool saved = true;
  /// Whether a value adds keys of its own.
  static constexpr bool brings_keys = false;
};
template <class Own, class Borrow, CellTag kTag, CellTag kListTag, class BorrowList = std::span<const Own>>
struct ListedValueRow : ValueRow<Own, Borrow, kTag> {
  static constexpr CellTag list_tag = kListTag;
  using BorrowedList = BorrowList;
};

template <BaseType base>
struct ValueType;
template <>
struct ValueType<BaseType::Tensor>
    : ListedValueRow<Tensor, const Tensor&, CellTag::Tensor, CellTag::TensorList, TensorList> {
  static constexpr bool brings_keys = true;
  static DispatchKeySet keys(const Tensor& t) noexcept { return t.key_set(); }
  static constexpr bool saved = false;  // by the node itself, where its formula needs it
};
template <>
struct ValueType<BaseType::Int>
    : ListedValueRow<int64_t, int64_t, CellTag::Int, CellTag::IntList, IntArrayRef> {};
template <>
struct ValueType<BaseType::Float> : ListedValueRow<double, double, CellTag::Float, CellTag::FloatList> {};
template <>
struct ValueType<BaseType::Bool> : ListedValueRow<bool, bool, CellTag::Bool, CellTag::BoolList> {};
template <>
struct ValueType<BaseType::Str> : ValueRow<std::string, std::string_view, CellTag::Str> {};
template <>
struct ValueType<BaseType::Scalar>
    : ListedValueRow<Scalar, const Scalar&, CellTag::Scalar, CellTag::ScalarList> {};
template <>
struct ValueType<BaseType::ScalarType> : ValueRow<DType, DType, CellTag::DType> {};
template <>
struct ValueType<BaseType::Device> : ValueRow<Device, Device, CellTag::Device> {
  // A device argument lets factories choose their backend.
  static constexpr DispatchKeySet argument_keys{Functionality::BackendSelect};
};
template <>
struct ValueType<BaseType::Layout> : ValueRow<Layout, Layout, CellTag::Layout> {};
template <>
struct ValueType<BaseType::MemoryFormat> : ValueRow<MemoryFormat, MemoryFormat, CellTag::MemoryFormat> {};
template <>
struct ValueType<BaseType::Generator> : ValueRow<Generator, const Generator&, CellTag::Generator> {
  static constexpr bool saved = false;  // no formula draws again
};
template <>
struct ValueType<BaseType::Storage> : ValueRow<Storage, const Storage&, CellTag::Storage> {};

/// Calls f.operator()<base>() for every base type, in order.
template <class F>
constexpr void for_each_base(F&& f) {
  [&]<size_t... I>(std::index_sequence<I...>) { (f.template operator()<static_cast<BaseType>(I)>(), ...); }
  (std::make_index_sequence<schema::kNumBaseTypes>());
}

/// Calls f.operator()<base>() for one that is known at run time.
template <class R, class F>
R visit_base(BaseType base, F&& f) {
  using Call = R (*)(F&);
  static constexpr auto kCalls = []<size_t... I>(std::index_sequence<I...>) {
    return std::array<Call, sizeof...(I)>{
        +[](F& each) -> R { return each.template operator()<static_cast<BaseType>(I)>(); }...};
  }
  (std::make_index_sequence<schema::kNumBaseTypes>());
  return kCalls[static_cast<size_t>(base)](f);
}

template <class Element>
struct ListOf {
  using type = Element;
};
/// The type of the elements of a list, borrowed or owned; void for what is no list.
template <class T>
struct ElementOf {
  using type = void;
};
template <>
struct ElementOf<TensorList> : ListOf<Tensor> {};
template <>
struct ElementOf<IntArrayRef> : ListOf<int64_t> {};
template <>
struct ElementOf<Dims> : ListOf<int64_t> {};
template <class T>
struct ElementOf<std::vector<T>> : ListOf<T> {};
template <class T>
struct ElementOf<std::span<const T>> : ListOf<T> {};

/// A base type, or none: which has a C++ type.
struct FoundBase {
  bool found = false;
  BaseType base = BaseType::Tensor;
};
template <class T>
inline constexpr FoundBase kOwnedBase = [] {
  FoundBase result;
  for_each_base([&]<BaseType b>() {
    if (std::is_same_v<T, typename ValueType<b>::Owned>) result = {true, b};
  });
  return result;
}();
/// The base type whose plain argument, neither optional nor a list, is a T.
template <class T>
inline constexpr FoundBase kBorrowedBase = [] {
  FoundBase result;
  for_each_base([&]<BaseType b>() {
    if (std::is_same_v<T, typename ValueType<b>::Borrowed>) result = {true, b};
  });
  return result;
}();
/// The base type whose lists are a T.
template <class T>
inline constexpr FoundBase kListBase = [] {
  FoundBase result;
  for_each_base([&]<BaseType b>() {
    if (ValueType<b>::list_tag != CellTag::None &&
        std::is_same_v<typename ElementOf<T>::type, typename ValueType<b>::Owned>)
      result = {true, b};
  });
  return result;
}();

/// A type whose undefined value is None.
template <class T>
inline constexpr bool kHasUndefined =
    kOwnedBase<T>.found&& schema::base_type_info(kOwnedBase<T>.base).has_undefined;

}  // namespace detail
}  // namespace tenon
