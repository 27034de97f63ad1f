// Cell and Stack: the boxed form of arguments and results, one 64-bit cell and one tag each.
// Used by boxed kernels, fallbacks, bindings, and, cell for cell, by the plug-in ABI. Knows nothing of
// operators.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/core/dims.h"
#include "tenon/core/tensor.h"

namespace tenon {

/// What a cell holds. Values up to 64 bits lie in the cell; others are owned on the heap and the cell points
/// to them.
enum class CellTag : uint8_t {
  None,
  Int,
  Float,
  Bool,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Tensor,  ///< One reference; null for an undefined tensor.
  Generator,
  Scalar,
  Str,
  IntList,
  FloatList,
  BoolList,
  ScalarList,
  TensorList,
};

struct Cell {
  alignas(8) std::byte bytes[8];
};

namespace detail {

template <class T>
T& cell_as(Cell& cell) noexcept {
  static_assert(sizeof(T) <= sizeof(Cell));
  return *std::launder(reinterpret_cast<T*>(&cell));
}

/// How values of type T lie in a cell; `Stored` is what the cell holds or points to.
template <class T>
struct CellType;

template <class T, CellTag kTag>
struct InPlaceCell {
  static constexpr CellTag tag = kTag;
  static void put(Cell& cell, T value) { new (&cell) T(std::move(value)); }
  static T& get(Cell& cell) noexcept { return cell_as<T>(cell); }
};
template <class T, CellTag kTag>
struct HeapCell {
  static constexpr CellTag tag = kTag;
  static void put(Cell& cell, T value) { new (&cell) T*(new T(std::move(value))); }
  static T& get(Cell& cell) noexcept { return *cell_as<T*>(cell); }
};

template <>
struct CellType<int64_t> : InPlaceCell<int64_t, CellTag::Int> {};
template <>
struct CellType<double> : InPlaceCell<double, CellTag::Float> {};
template <>
struct CellType<bool> : InPlaceCell<bool, CellTag::Bool> {};
template <>
struct CellType<tenon::DType> : InPlaceCell<tenon::DType, CellTag::DType> {};
template <>
struct CellType<tenon::Device> : InPlaceCell<tenon::Device, CellTag::Device> {};
template <>
struct CellType<tenon::Layout> : InPlaceCell<tenon::Layout, CellTag::Layout> {};
template <>
struct CellType<tenon::MemoryFormat> : InPlaceCell<tenon::MemoryFormat, CellTag::MemoryFormat> {};
template <>
struct CellType<tenon::Tensor> : InPlaceCell<tenon::Tensor, CellTag::Tensor> {};
template <>
struct CellType<tenon::Generator> : InPlaceCell<tenon::Generator, CellTag::Generator> {};
template <>
struct CellType<tenon::Scalar> : HeapCell<tenon::Scalar, CellTag::Scalar> {};
template <>
struct CellType<std::string> : HeapCell<std::string, CellTag::Str> {};
template <>
struct CellType<Dims> : HeapCell<Dims, CellTag::IntList> {};
template <>
struct CellType<std::vector<double>> : HeapCell<std::vector<double>, CellTag::FloatList> {};
template <>
struct CellType<std::vector<uint8_t>> : HeapCell<std::vector<uint8_t>, CellTag::BoolList> {};
template <>
struct CellType<std::vector<tenon::Scalar>> : HeapCell<std::vector<tenon::Scalar>, CellTag::ScalarList> {};
template <>
struct CellType<std::vector<tenon::Tensor>> : HeapCell<std::vector<tenon::Tensor>, CellTag::TensorList> {};

}  // namespace detail

std::string_view name(CellTag tag) noexcept;

/// Arguments, then results, of a boxed call. A kernel takes its arguments from the top, removes them, and
/// pushes its results in order.
class Stack {
 public:
  Stack() = default;
  Stack(Stack&& other) noexcept = default;
  Stack& operator=(Stack&& other) noexcept;
  ~Stack() { clear(); }

  size_t size() const noexcept { return tags_.size(); }
  bool empty() const noexcept { return tags_.empty(); }
  CellTag tag(size_t i) const noexcept { return tags_[i]; }
  bool is_none(size_t i) const noexcept { return tags_[i] == CellTag::None; }

  void push_none() { append(CellTag::None); }
  template <class T>
  void push(T value) {
    using C = detail::CellType<T>;
    append(CellTag::None);
    C::put(cells_.back(), std::move(value));
    tags_.back() = C::tag;
  }
  /// Copies a value of another stack.
  void push_copy(const Stack& from, size_t i);

  /// The i-th value. Throws Error{Type} when it is of another type.
  template <class T>
  T& at(size_t i) {
    using C = detail::CellType<T>;
    if (i >= size() || tags_[i] != C::tag) [[unlikely]]
      wrong_tag(i, C::tag);
    return C::get(cells_[i]);
  }
  template <class T>
  const T& at(size_t i) const {
    return const_cast<Stack*>(this)->at<T>(i);
  }
  template <class T>
  T pop() {
    T value = std::move(at<T>(size() - 1));
    drop(1);
    return value;
  }

  /// Removes the last `n` values.
  void drop(size_t n) noexcept;
  /// Removes `n` values from position `first`: a kernel's arguments, once its results are above them.
  void erase(size_t first, size_t n) noexcept;
  void clear() noexcept { drop(size()); }

  Cell* cells() noexcept { return cells_.data(); }
  CellTag* tags() noexcept { return tags_.data(); }

 private:
  void append(CellTag tag);
  void destroy(size_t i) noexcept;
  [[noreturn]] void wrong_tag(size_t i, CellTag wanted) const;

  // In place for the calls that most operators get.
  static constexpr size_t kInPlace = 8;
  SmallVector<Cell, kInPlace> cells_;
  SmallVector<CellTag, kInPlace> tags_;
};

}  // namespace tenon
