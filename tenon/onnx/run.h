// Frame: the values of one run of a program, and how its nodes are run in turn. Of this room alone.
#pragma once

#include <span>
#include <vector>

#include "tenon/onnx/program.h"

namespace tenon::onnx {

class Frame {
 public:
  /// `weights` stand for the program's own parameters and buffers. All outlive the frame.
  Frame(const Program& program, std::span<const Tensor> weights)
      : program_(program), weights_(weights), values_(program.num_slots) {}

  const std::string& file() const noexcept { return program_.file; }
  const Tensor& tensor(Slot slot) const noexcept {
    if (slot >= 0) return values_[static_cast<size_t>(slot)].tensor;
    const auto i = static_cast<size_t>(~slot);
    return i < weights_.size() ? weights_[i] : program_.constants[i].value;
  }
  bool is_absent(Slot slot) const noexcept {
    return slot >= 0 ? values_[static_cast<size_t>(slot)].is_absent() : !tensor(slot).defined();
  }
  Item item(Slot slot) const { return slot >= 0 ? values_[static_cast<size_t>(slot)] : Item{tensor(slot)}; }
  void set(Slot slot, Item value) { values_[static_cast<size_t>(slot)] = std::move(value); }
  /// Runs the nodes in turn. The graph's inputs are set before.
  std::vector<Item> run(const Graph& graph);

 private:
  const Program& program_;
  const std::span<const Tensor> weights_;
  std::vector<Item> values_;
};

}  // namespace tenon::onnx
