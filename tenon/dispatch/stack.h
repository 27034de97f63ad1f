// Cell and Stack: the boxed form of arguments and results, one 64-bit cell and one tag each.
// Used by boxed kernels, fallbacks, bindings, and, cell for cell, by the plug-in ABI: what a cell holds or
// points to has the layout of a C struct. Independent of operators.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/dispatch/value_types.h"

namespace tenon {

static_assert(std::endian::native == std::endian::little, "cells keep small values in their low bytes");

struct Cell {
  alignas(8) std::byte bytes[8];
};

/// An owned list that a cell points to: {T* data; uint64 size}.
template <class T>
class CellList {
 public:
  CellList() = default;
  explicit CellList(std::span<const T> values) : data_(new T[values.size()]), size_(values.size()) {
    std::copy(values.begin(), values.end(), data_);
  }
  CellList(const CellList& other) : CellList(std::span<const T>(other.data_, other.size_)) {}
  CellList(CellList&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  CellList& operator=(CellList other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~CellList() { delete[] data_; }

  size_t size() const noexcept { return size_; }
  T* data() const noexcept { return data_; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + size_; }
  T& operator[](size_t i) const noexcept { return data_[i]; }
  std::span<const T> span() const noexcept { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

namespace detail {

template <class T>
T& cell_as(Cell& cell) noexcept {
  static_assert(sizeof(T) <= sizeof(Cell));
  return *std::launder(reinterpret_cast<T*>(&cell));
}

/// How values of type T are laid out in a cell; `Stored` is what the cell holds or points to.
template <class T>
struct CellType;  // from the rows of ValueType

template <class T, CellTag kTag>
struct InPlaceCell {
  using Stored = T;
  static constexpr CellTag tag = kTag;
  static constexpr bool on_heap = false;
  static void put(Cell& cell, T value) { new (&cell) T(std::move(value)); }
  static T& get(Cell& cell) noexcept { return cell_as<T>(cell); }
  static T take(Cell& cell) { return std::move(get(cell)); }
};
template <class T, CellTag kTag>
struct HeapCell {
  static_assert(std::is_standard_layout_v<T>);
  using Stored = T;
  static constexpr CellTag tag = kTag;
  static constexpr bool on_heap = true;
  static void put(Cell& cell, T value) { new (&cell) T*(new T(std::move(value))); }
  static T& get(Cell& cell) noexcept { return *cell_as<T*>(cell); }
  static T take(Cell& cell) { return std::move(get(cell)); }
};
/// A container of `E`, in the cell as a CellList.
template <class Container, class E, CellTag kTag>
struct ListCell : HeapCell<CellList<E>, kTag> {
  static void put(Cell& cell, const Container& value) {
    HeapCell<CellList<E>, kTag>::put(cell, CellList<E>(std::span<const E>(value.data(), value.size())));
  }
  static Container take(Cell& cell) {
    const CellList<E>& list = *cell_as<CellList<E>*>(cell);
    if constexpr (std::is_constructible_v<Container, const E*, size_t>)
      return Container(list.data(), list.size());
    else
      return Container(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
  }
};

/// A text is stored as a list of chars.
template <>
struct CellType<CellList<char>> : HeapCell<CellList<char>, CellTag::Str> {};
template <>
struct CellType<std::string> : ListCell<std::string, char, CellTag::Str> {};

template <class T>
requires(kOwnedBase<T>.found&& ValueType<kOwnedBase<T>.base>::in_cell) struct CellType<T>
    : InPlaceCell<T, ValueType<kOwnedBase<T>.base>::tag> {
};
template <class T>
requires(kOwnedBase<T>.found && !ValueType<kOwnedBase<T>.base>::in_cell) struct CellType<T>
    : HeapCell<T, ValueType<kOwnedBase<T>.base>::tag> {
};

template <class T>
requires(kListBase<std::vector<T>>.found) struct CellType<CellList<T>>
    : HeapCell<CellList<T>, ValueType<kListBase<std::vector<T>>.base>::list_tag> {
};
// The C++ types that pass such lists, borrowed or owned.
template <class T>
requires(kListBase<T>.found) struct CellType<T>
    : ListCell<T, typename ElementOf<T>::type, ValueType<kListBase<T>.base>::list_tag> {
};
template <class T>
struct CellType<std::span<const T>> : CellType<CellList<T>> {
  static void put(Cell& cell, std::span<const T> value) {
    CellType<CellList<T>>::put(cell, CellList<T>(value));
  }
};

}  // namespace detail

std::string_view name(CellTag tag) noexcept;

/// Arguments, then results, of a boxed call. A kernel takes its arguments from the top, removes them, and
/// pushes its results in order.
class Stack {
 public:
  Stack() = default;
  Stack(Stack&& other) noexcept
      : cells_(std::move(other.cells_)),
        tags_(std::move(other.tags_)),
        lent_(std::exchange(other.lent_, 0)),
        caller_(other.caller_) {}
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
  /// Takes over what a cell holds or points to, which a plug-in made.
  void push_cell(Cell cell, CellTag tag) {
    append(CellTag::None);
    cells_.back() = cell;
    tags_.back() = tag;
  }
  /// Shows the values of `owner`, which keeps them, on an empty stack: whatever removes them here leaves them
  /// alive. For calls that are made again and again, of kernels that only borrow arguments, as those with
  /// an unboxed entry do: no one may take the values out.
  void lend(const Stack& owner);
  /// Copies a value that a plug-in keeps. Throws Error{Type} for an unknown tag.
  void push_cell_copy(Cell cell, CellTag tag);
  /// Moves the last `n` values out, to the caller, who frees them.
  void take_cells(size_t n, Cell* cells, CellTag* tags) noexcept;

  /// The i-th value as it is stored: a T, or the CellList of a string or list. Throws Error{Type} if it has
  /// another type.
  template <class T>
  typename detail::CellType<T>::Stored& at(size_t i) {
    using C = detail::CellType<T>;
    if (i >= size() || tags_[i] != C::tag) [[unlikely]]
      wrong_tag(i, C::tag);
    return C::get(cells_[i]);
  }
  template <class T>
  const typename detail::CellType<T>::Stored& at(size_t i) const {
    return const_cast<Stack*>(this)->at<T>(i);
  }
  /// The i-th value, moved from.
  template <class T>
  T take(size_t i) {
    at<T>(i);
    return detail::CellType<T>::take(cells_[i]);
  }
  template <class T>
  T pop() {
    T value = take<T>(size() - 1);
    drop(1);
    return value;
  }

  /// Removes the last `n` values.
  void drop(size_t n) noexcept;
  /// Removes `n` values from position `first`: a kernel's arguments, once its results are above them.
  void erase(size_t first, size_t n) noexcept;
  void clear() noexcept { drop(size()); }

  /// The frame of the function that put the arguments of a typed call here, from which a source mark finds
  /// the caller's line (core/source_mark.h); null if unknown.
  void* caller() const noexcept { return caller_; }
  void set_caller(void* frame) noexcept { caller_ = frame; }

  Cell* cells() noexcept { return cells_.data(); }
  CellTag* tags() noexcept { return tags_.data(); }

 private:
  void append(CellTag tag);
  void destroy(size_t i) noexcept;
  [[noreturn]] void wrong_tag(size_t i, CellTag wanted) const;

  // Enough for most operators to need no allocation.
  static constexpr size_t kInPlace = 8;
  SmallVector<Cell, kInPlace> cells_;
  SmallVector<CellTag, kInPlace> tags_;
  size_t lent_ = 0;  // the first values, which another stack owns
  void* caller_ = nullptr;
};

}  // namespace tenon
