// Value: what a checkpoint holds: tensors, numbers and text, in dicts and lists. Used by programs that load
// one. Independent of files.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/io/state_dict.h"

namespace tenon {

namespace io {
struct Node;
struct Nodes;
}  // namespace io

/// A value of a checkpoint and all that is inside. Copies share it; it does not change.
///
///     tenon::Value checkpoint = tenon::load("checkpoint.pt");
///     model.load_state_dict(checkpoint["model"]);
///     int64_t epoch = checkpoint["epoch"].to_int();
class Value {
 public:
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    LargeInt,  ///< beyond 64 bits
    Float,
    Complex,
    Text,
    Bytes,
    Tensor,
    DType,
    Device,
    List,
    Tuple,
    Set,
    Dict,
  };

  Kind kind() const noexcept;
  /// "a dict", "a tensor": as error messages call it.
  const char* kind_name() const noexcept;

  // What the value is. Each throws Error{Type} for a value of another kind.
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;  ///< of an int, too
  std::complex<double> to_complex() const;
  std::string to_text() const;
  std::string to_bytes() const;
  Tensor to_tensor() const;
  DType to_dtype() const;

  /// The number of elements of a list, tuple, set or dict.
  size_t size() const;
  /// An element of a list, tuple or set. Throws Error{Index}.
  /// A template, so that `value[0]` means a number and no null text.
  template <std::integral I>
  Value operator[](I i) const {
    return element(std::in_range<int64_t>(i) ? static_cast<int64_t>(i) : std::numeric_limits<int64_t>::max());
  }
  /// A value of a dict by its text key. Throws Error{Value} for a key that is not there.
  Value operator[](std::string_view key) const;
  Value operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  bool contains(std::string_view key) const;
  /// The keys and values of a dict.
  std::vector<std::pair<Value, Value>> items() const;

  /// The tensors of a dict that holds nothing else. Throws Error{Type}, which names the key, otherwise.
  StateDict state_dict() const;
  operator StateDict() const { return state_dict(); }

  /// For who builds values: `nodes` owns `node`.
  Value(std::shared_ptr<const io::Nodes> nodes, const io::Node* node)
      : nodes_(std::move(nodes)), node_(node) {}
  const io::Node& node() const noexcept { return *node_; }

 private:
  Value element(int64_t i) const;
  const io::Node* find(std::string_view key) const;
  Value with(const io::Node* node) const { return {nodes_, node}; }

  std::shared_ptr<const io::Nodes> nodes_;
  const io::Node* node_;
};

}  // namespace tenon
