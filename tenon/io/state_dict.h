// StateDict: tensors by name, in the order in which they were added. What modules return and load, and what
// files of weights hold. Independent of modules and files.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon {

/// As Python's dict of tensors: `for (const auto& [name, tensor] : state)`, `state.at("0.weight")`.
class StateDict {
 public:
  using Item = std::pair<std::string, Tensor>;

  StateDict() = default;
  StateDict(std::initializer_list<Item> items) {
    for (const Item& item : items) set(item.first, item.second);
  }

  /// The tensor of a name, or null.
  const Tensor* find(std::string_view name) const {
    const auto found = places_.find(std::string(name));
    return found == places_.end() ? nullptr : &items_[found->second].second;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws Error{Value} for a name that is not there.
  const Tensor& at(std::string_view name) const {
    const Tensor* const found = find(name);
    TENON_CHECK(found, Value, "StateDict: there is no tensor '" + std::string(name) + "'");
    return *found;
  }
  /// Adds a tensor, or replaces the one of this name.
  void set(std::string name, Tensor value) {
    const auto [place, added] = places_.try_emplace(name, items_.size());
    if (added)
      items_.emplace_back(std::move(name), std::move(value));
    else
      items_[place->second].second = std::move(value);
  }

  size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }

 private:
  std::vector<Item> items_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace tenon
