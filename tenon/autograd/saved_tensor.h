// SavedTensor: a tensor that a node keeps for its backward, with what is needed to notice that it was changed
// since. Used by nodes. Knows nothing of operators; whoever owns it says what it was in error messages.
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

  /// Keeps an argument: a leaf that requires grad as it is; of any other tensor its elements and its history.
  /// The tensor itself might be written in place later, by a call whose node leads here, and then own itself.
  /// One without history is known again should it require grad later.
  /// What the thread's saved-tensor hooks make of it is kept instead, where there are any.
  /// Throws Error{Runtime} for an inference tensor.
  void save_input(const Tensor& t);
  /// Keeps result `output_nr` of the node's own call: its elements, not the tensor, which owns the node.
  /// `version` is the one that it will have when the call has returned.
  void save_output(const Tensor& t, uint32_t output_nr, uint64_t version);

  bool saved() const noexcept { return state_ == State::Input || state_ == State::Output; }
  bool released() const noexcept { return state_ == State::Released; }
  /// Whether somebody wrote to the storage since.
  bool changed() const noexcept;
  /// The tensor, with its history while grad mode is on (`owner` is the node of results). Undefined when
  /// nothing was saved. The caller has asked `changed` and `released`.
  Tensor get(const Node& owner) const;
  /// The same; throws Error{Runtime} naming the operator `op` and what it had saved.
  Tensor unpack(const Node& owner, std::string_view op, std::string_view what) const;
  /// Names the lines of the save (`owner`'s) and of the change as well.
  [[noreturn]] void throw_unusable(const Node& owner, std::string_view op, std::string_view what) const;

  void release() noexcept;
  /// Shows the node that made the tensor, where this keeps it.
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
