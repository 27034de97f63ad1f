#include "tenon/dispatch/stack.h"

#include <fmt/core.h>

#include <cstring>

namespace tenon {
namespace {

/// Calls f.template operator()<T>() with the C++ type of a tag; nothing for None.
template <class F>
void visit_tag(CellTag tag, F&& f) {
  switch (tag) {
    case CellTag::None:
      return;
    case CellTag::Int:
      return f.template operator()<int64_t>();
    case CellTag::Float:
      return f.template operator()<double>();
    case CellTag::Bool:
      return f.template operator()<bool>();
    case CellTag::DType:
      return f.template operator()<DType>();
    case CellTag::Device:
      return f.template operator()<Device>();
    case CellTag::Layout:
      return f.template operator()<Layout>();
    case CellTag::MemoryFormat:
      return f.template operator()<MemoryFormat>();
    case CellTag::Tensor:
      return f.template operator()<Tensor>();
    case CellTag::Generator:
      return f.template operator()<Generator>();
    case CellTag::Scalar:
      return f.template operator()<Scalar>();
    case CellTag::Str:
      return f.template operator()<CellList<char>>();
    case CellTag::IntList:
      return f.template operator()<CellList<int64_t>>();
    case CellTag::FloatList:
      return f.template operator()<CellList<double>>();
    case CellTag::BoolList:
      return f.template operator()<CellList<bool>>();
    case CellTag::ScalarList:
      return f.template operator()<CellList<Scalar>>();
    case CellTag::TensorList:
      return f.template operator()<CellList<Tensor>>();
    case CellTag::Storage:
      return f.template operator()<Storage>();
  }
}

}  // namespace

std::string_view name(CellTag tag) noexcept {
  constexpr std::string_view kNames[] = {
      "None",      "int",    "float", "bool",  "ScalarType", "Device", "Layout",   "MemoryFormat", "Tensor",
      "Generator", "Scalar", "str",   "int[]", "float[]",    "bool[]", "Scalar[]", "Tensor[]",     "Storage"};
  return kNames[static_cast<int>(tag)];
}

Stack& Stack::operator=(Stack&& other) noexcept {
  if (this != &other) {
    clear();
    cells_ = std::move(other.cells_);
    tags_ = std::move(other.tags_);
  }
  return *this;
}

void Stack::append(CellTag tag) {
  cells_.push_back({});
  tags_.push_back(tag);
}

void Stack::push_copy(const Stack& from, size_t i) {
  if (from.is_none(i)) return push_none();
  visit_tag(from.tag(i), [&]<class T>() { push<T>(T(from.at<T>(i))); });
}

void Stack::destroy(size_t i) noexcept {
  visit_tag(tags_[i], [&]<class T>() {
    if constexpr (detail::CellType<T>::on_heap) {
      delete detail::cell_as<T*>(cells_[i]);
    } else {
      std::destroy_at(&detail::cell_as<T>(cells_[i]));
    }
  });
}

void Stack::drop(size_t n) noexcept {
  for (size_t i = size() - n; i < size(); ++i) destroy(i);
  cells_.resize(cells_.size() - n);
  tags_.resize(tags_.size() - n);
}

void Stack::erase(size_t first, size_t n) noexcept {
  // Cells move by their bytes: every type in one is a pointer or plain data.
  for (size_t i = first; i < first + n; ++i) destroy(i);
  const size_t size = cells_.size();
  std::memmove(cells_.data() + first, cells_.data() + first + n, (size - first - n) * sizeof(Cell));
  std::memmove(tags_.data() + first, tags_.data() + first + n, (size - first - n) * sizeof(CellTag));
  cells_.resize(size - n);
  tags_.resize(size - n);
}

void Stack::wrong_tag(size_t i, CellTag wanted) const {
  throw_error(ErrorKind::Type, fmt::format("boxed call: value {} is {}, expected {}", i,
                                           i < size() ? name(tags_[i]) : "missing", name(wanted)));
}

}  // namespace tenon
