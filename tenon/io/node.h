// Node: a value while it is read, and what Value shows. All nodes of a file belong to one list, so that
// neither a deep nor a circular value is destroyed by recursion. Used by this room and by the Python package.
#pragma once

#include <complex>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "tenon/io/value.h"

namespace tenon::io {

/// What only occurs while a file is read: a type or function that it names, and an argument of such a
/// function.
struct Named {
  std::string name;  // "torch._utils._rebuild_tensor_v2"
};
struct StoredBytes {
  size_t storage;  // its number in the file
  DType dtype;
  uint64_t nbytes;
};

struct Node {
  using List = std::vector<Node*>;  // of a dict: key, value, key, value, ...

  Value::Kind kind = Value::Kind::None;
  /// How Python calls it: of a dict OrderedDict, of a tuple Size, of a tensor Parameter, of bytes bytearray.
  bool special = false;
  bool counts = false;  ///< Of a dict: a Counter.
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, Tensor, DType, List,
               Named, StoredBytes>
      value;
  size_t tensor = 0;  // its number in the file, while it is read

  bool is_plain() const noexcept {
    return !std::holds_alternative<Named>(value) && !std::holds_alternative<StoredBytes>(value);
  }
  const List& list() const { return std::get<List>(value); }
  List& list() { return std::get<List>(value); }
  const std::string& text() const { return std::get<std::string>(value); }
};

struct Nodes {
  std::deque<Node> all;  // addresses stay
};

}  // namespace tenon::io
