// Unpickler: reads a pickle as a value, and executes nothing. What the names in it mean, an `Objects`
// says; any other name is an error. What a pickle makes is bounded by its size: an `Allowance` counts what
// its calls copy. Of this room alone. The format: Python's Lib/pickletools.py; protocols 2 to 5, binary
// opcodes alone.
#pragma once

#include <string>
#include <string_view>

#include "tenon/io/node.h"

namespace tenon::io {

/// What an Unpickler cannot read; the reader adds the file and the place.
struct PickleError {
  std::string what;
  bool ended = false;  ///< The given bytes end before the pickle does.
};
[[noreturn]] void refuse_pickle(std::string what);

/// Bytes and elements that a pickle's calls may still copy: as many as the pickle has bytes. A writer spells
/// every argument out, so its files never need more; a file that recalls one argument many times does.
class Allowance {
 public:
  explicit Allowance(uint64_t pickle_bytes) : left_(pickle_bytes + kLeast), whole_(pickle_bytes) {}
  /// Throws PickleError.
  void use(uint64_t count);

 private:
  static constexpr uint64_t kLeast = 4096;
  uint64_t left_;
  const uint64_t whole_;
};

/// What the names of a pickle mean. All functions throw PickleError.
class Objects {
 public:
  virtual ~Objects() = default;

  /// Of a type, a function or a constant.
  virtual Node* named(Nodes& nodes, std::string_view name) = 0;
  /// A call of what `named` returned.
  virtual Node* call(Nodes& nodes, std::string_view function, const Node::List& arguments) = 0;
  /// An opcode that protocol 4 has for frozensets.
  virtual Node* frozenset(Nodes& nodes, Node::List elements) = 0;
  /// What a pickle keeps outside itself.
  virtual Node* persistent(Nodes& nodes, const Node& id) = 0;
};

/// The value that begins `pickle`; its texts are parts of `pickle`. Sets `at` to where it has come, also when
/// it throws PickleError. Values nest at most 1,000 deep, as deep as Python's pickle writes them. Lists and
/// dicts may contain themselves. Nodes that are part of the value are marked as reached.
Node* unpickle(std::string_view pickle, size_t& at, Nodes& nodes, Objects& objects);

}  // namespace tenon::io
