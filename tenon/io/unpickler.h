// Unpickler: reads a pickle as a value, and executes nothing. What the names in it stand for, an `Objects`
// says; any other name is an error. Of this room alone. The format: Python's Lib/pickletools.py; protocols 2
// to 5, binary opcodes alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tenon/io/node.h"

namespace tenon::io {

/// What an Unpickler cannot read; the reader adds the file and the place.
struct PickleError {
  std::string what;
};

/// What the names of a pickle mean. All functions throw PickleError.
class Objects {
 public:
  virtual ~Objects() = default;

  /// Of a type, a function or a constant.
  virtual Node* named(Nodes& nodes, const std::string& name) = 0;
  /// A call of what `named` returned.
  virtual Node* call(Nodes& nodes, const std::string& function, const Node::List& arguments) = 0;
  /// What a pickle keeps outside itself.
  virtual Node* persistent(Nodes& nodes, const Node& id) = 0;
};

/// The value of `pickle`; sets `at` to where it has come, also when it throws PickleError. Values nest at
/// most 500 deep and do not contain themselves.
Node* unpickle(std::string_view pickle, size_t& at, Nodes& nodes, Objects& objects);

/// Makes nodes.
Node* add(Nodes& nodes, Value::Kind kind, decltype(Node::value) value = {}, bool special = false);

}  // namespace tenon::io
