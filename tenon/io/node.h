// Node: a value while it is read, and what Value shows. All nodes of a file belong to one list, so that
// neither a deep nor a circular value is destroyed by recursion. Used by this room and by the Python package.
#pragma once

#include <complex>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/io/value.h"

namespace tenon::io {

/// What only occurs while a file is read: a type or function that it names, a storage as the argument of such
/// a function, and a tensor whose storage has not been read yet.
struct Named {
  std::string_view name;  // "torch._utils._rebuild_tensor_v2"; of a constant
};
struct StoredBytes {
  size_t storage;  // its number in the file
  DType dtype;
  uint64_t nbytes, offset;  // of the part of it that is meant
};
struct Unread {
  size_t view;  // its number in the file
};

struct Node {
  using List = std::vector<Node*>;  // of a dict: key, value, key, value, ...

  Value::Kind kind = Value::Kind::None;
  /// How Python calls it: of a dict OrderedDict, of a set frozenset, of a tuple Size, of a tensor Parameter,
  /// of bytes bytearray.
  bool special : 1 = false;
  bool counts : 1 = false;     ///< Of a dict: a Counter.
  bool reached : 1 = false;    ///< Part of the value that was read.
  uint16_t depth = 0;          ///< Of a tuple or frozenset: how deep those nest, itself included.
  uint32_t number = 0;         ///< In Nodes::all.
  Node* attributes = nullptr;  ///< Of a tensor or an OrderedDict in Python: a dict, or null.
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string_view, Tensor, DType,
               List, Named, StoredBytes, Unread>
      value;

  bool is_plain() const noexcept {
    return !std::holds_alternative<Named>(value) && !std::holds_alternative<StoredBytes>(value);
  }
  const List& list() const { return std::get<List>(value); }
  List& list() { return std::get<List>(value); }
  std::string_view text() const { return std::get<std::string_view>(value); }
};

struct Nodes {
  std::deque<Node> all;           // addresses stay
  std::deque<std::string> texts;  // of nodes
  bool is_circular = false;       // a list or a dict contains itself
};

/// Makes nodes.
Node* add(Nodes& nodes, Value::Kind kind, decltype(Node::value) value = {}, bool special = false);
/// A text that the nodes own.
Node* add_text(Nodes& nodes, Value::Kind kind, std::string text, bool special = false);

}  // namespace tenon::io
