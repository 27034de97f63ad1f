// SavedState: what an optimizer of Python, or of PyTorch, has saved as its `state_dict()`. Of this room
// alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/io/value.h"

namespace tenon::optim {

class SavedState {
 public:
  /// Throws Error{Value}, which begins with the optimizer's name, for what is no such state, for more than
  /// one group of parameters, and for another number of them.
  SavedState(const char* optimizer, const Value& state, TensorList parameters);

  /// A number or truth value of the options; `otherwise` where the state does not have it.
  double number(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  /// The `betas` of Adam.
  double beta(size_t i, double otherwise) const;

  /// A tensor of one parameter's state, copied; undefined where there is none. Throws Error{Value} unless it
  /// has the parameter's shape and dtype.
  Tensor tensor(size_t parameter, std::string_view name) const;
  /// How many steps the parameter has made.
  int64_t step(size_t parameter) const;

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  std::optional<Value> option(std::string_view name) const;
  std::optional<Value> of_parameter(size_t parameter, std::string_view name) const;

  const char* optimizer_;
  TensorList parameters_;
  std::optional<Value> group_;
  std::vector<std::optional<Value>> states_;  // by parameter
};

}  // namespace tenon::optim
