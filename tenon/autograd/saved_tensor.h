// SavedTensor: a tensor that a node keeps for backward. It notices if the tensor was changed since. Used by
// nodes. Independent of operators; its owner passes the names that error messages show.
#pragma once

#include "tenon/autograd/node.h"

namespace tenon::autograd {

struct PackedTensor;

class SavedTensor {
 public:
  SavedTensor() noexcept = default;
  SavedTensor(SavedTensor&&) noexcept;
  SavedTensor& operator=(SavedTensor&&) noexcept;
  ~SavedTensor() {
    if (packed_) drop_packed();
  }

  /// Keeps an argument. Keeps a leaf that requires grad itself, and of any other tensor the elements and the
  /// history: the tensor itself might be written in place later by a call whose node leads here, and would
  /// then own itself. A tensor without history is recognised if it requires grad later. If the thread has
  /// saved-tensor hooks, keeps what they return instead. Throws Error{Runtime} for an inference tensor.
  void save_input(const Tensor& t);
  /// Keeps result `output_nr` of the node's own call: its elements, not the tensor, which owns the node.
  /// `version` is the one that it will have when the call has returned.
  void save_output(const Tensor& t, uint32_t output_nr, uint64_t version);

  bool saved() const noexcept { return state_ == State::Input || state_ == State::Output; }
  bool released() const noexcept { return state_ == State::Released; }
  /// Whether the storage was written to since.
  bool changed() const noexcept;
  /// The tensor, with its history while grad mode is on; `owner` is the node that saved it. Undefined if
  /// nothing was saved. The caller has checked `changed` and `released`.
  Tensor get(const Node& owner) const;
  /// As `get`, but throws an Error{Runtime} that names the operator `op` and `what` it saved if the tensor
  /// was changed or released.
  Tensor unpack(const Node& owner, std::string_view op, std::string_view what) const;
  /// Throws that error, which also names the lines that saved the tensor (from `owner`) and changed it.
  [[noreturn]] void throw_unusable(const Node& owner, std::string_view op, std::string_view what) const;

  void release() noexcept;
  /// Visits the node that made the tensor, if this keeps it alive.
  void visit_kept(KeptVisitor& visitor) const noexcept {
    if (history_) visitor.node(history_.node.get());
  }

 private:
  enum class State : uint8_t { Empty, Input, Output, Released };

  void keep(Tensor elements, uint64_t version);
  Edge input_history() const;
  void drop_packed() noexcept;

  Tensor data_;
  Edge history_;  // of results: no node, because it owns this
  uint64_t version_ = 0;
  PackedTensor* packed_ = nullptr;
  uint32_t identity_ = 0;  // of an argument without history
  State state_ = State::Empty;
};

}  // namespace tenon::autograd
