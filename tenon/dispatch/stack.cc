#include "tenon/dispatch/stack.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <type_traits>

namespace tenon {
namespace {

using Destroy = void (*)(Cell&) noexcept;

template <class T>
constexpr Destroy destroy_function() {
  if constexpr (detail::CellType<T>::on_heap)
    return [](Cell& cell) noexcept { delete detail::cell_as<T*>(cell); };
  else if constexpr (!std::is_trivially_destructible_v<T>)
    return [](Cell& cell) noexcept { std::destroy_at(&detail::cell_as<T>(cell)); };
  else
    return nullptr;
}

/// Calls f.operator()<T>(tag) for each tag but None, where T is the type that a cell with the tag holds or
/// points to.
template <class F>
constexpr void for_each_tag(F&& f) {
  detail::for_each_base([&]<detail::BaseType b>() {
    using V = detail::ValueType<b>;
    f.template operator()<typename detail::CellType<typename V::Owned>::Stored>(V::tag);
    if constexpr (V::list_tag != CellTag::None)
      f.template operator()<CellList<typename V::Owned>>(V::list_tag);
  });
}

/// What ends a cell with a tag; null where nothing has to be done.
constexpr auto kDestroy = [] {
  std::array<Destroy, 256> table{};
  for_each_tag([&]<class T>(CellTag tag) { table[static_cast<uint8_t>(tag)] = destroy_function<T>(); });
  return table;
}();

}  // namespace

std::string_view name(CellTag tag) noexcept {
  std::string_view found = "None";
  detail::for_each_base([&]<detail::BaseType b>() {
    static constexpr auto kList = [] {
      constexpr std::string_view one = schema::base_type_info(b).name;
      std::array<char, one.size() + 2> text{};
      std::copy(one.begin(), one.end(), text.begin());
      text[one.size()] = '[';
      text[one.size() + 1] = ']';
      return text;
    }();
    using V = detail::ValueType<b>;
    if (tag == V::tag) found = schema::base_type_info(b).name;
    if (V::list_tag != CellTag::None && tag == V::list_tag) found = {kList.data(), kList.size()};
  });
  return found;
}

Stack& Stack::operator=(Stack&& other) noexcept {
  if (this != &other) {
    clear();
    cells_ = std::move(other.cells_);
    tags_ = std::move(other.tags_);
    lent_ = std::exchange(other.lent_, 0);
  }
  return *this;
}

void Stack::append(CellTag tag) {
  cells_.push_back({});
  tags_.push_back(tag);
}

void Stack::push_copy(const Stack& from, size_t i) {
  if (from.is_none(i)) return push_none();
  for_each_tag([&]<class T>(CellTag tag) {
    if (tag == from.tag(i)) push<T>(T(from.at<T>(i)));
  });
}

void Stack::push_cell_copy(Cell cell, CellTag tag) {
  bool found = tag == CellTag::None;
  if (found) push_none();
  for_each_tag([&]<class T>(CellTag known) {
    if (tag != known) return;
    found = true;
    push<T>(T(detail::CellType<T>::get(cell)));
  });
  TENON_CHECK(found, Type, fmt::format("boxed call: there is no kind {} of values", static_cast<int>(tag)));
}

void Stack::take_cells(size_t n, Cell* cells, CellTag* tags) noexcept {
  const size_t first = size() - n;
  std::copy_n(cells_.data() + first, n, cells);
  std::copy_n(tags_.data() + first, n, tags);
  cells_.resize(first);
  tags_.resize(first);
}

void Stack::lend(const Stack& owner) {
  cells_ = owner.cells_;
  tags_ = owner.tags_;
  lent_ = owner.size();
}

void Stack::destroy(size_t i) noexcept {
  if (i < lent_) return;
  if (const Destroy destroy = kDestroy[static_cast<uint8_t>(tags_[i])]) destroy(cells_[i]);
}

void Stack::drop(size_t n) noexcept {
  for (size_t i = size() - n; i < size(); ++i) destroy(i);
  cells_.resize(cells_.size() - n);
  tags_.resize(tags_.size() - n);
  lent_ = std::min(lent_, size());
}

void Stack::erase(size_t first, size_t n) noexcept {
  // Cells move by their bytes: every type in one is a pointer or plain data.
  for (size_t i = first; i < first + n; ++i) destroy(i);
  const size_t size = cells_.size();
  std::memmove(cells_.data() + first, cells_.data() + first + n, (size - first - n) * sizeof(Cell));
  std::memmove(tags_.data() + first, tags_.data() + first + n, (size - first - n) * sizeof(CellTag));
  cells_.resize(size - n);
  tags_.resize(size - n);
  lent_ -= std::min(lent_, first + n) - std::min(lent_, first);
}

void Stack::wrong_tag(size_t i, CellTag wanted) const {
  throw_error(ErrorKind::Type, fmt::format("boxed call: value {} is {}, expected {}", i,
                                           i < size() ? name(tags_[i]) : "missing", name(wanted)));
}

}  // namespace tenon
