// Values: what the emitter knows of an expression before it emits anything: the order of its operations, what
// reads each value, and how many vectors of elements should go through the code side by side. Knows no
// instructions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/jit/select.h"

namespace tenon::cpu::jit {

class Values {
 public:
  using NodeId = expr::NodeId;

  Values(const expr::Expression& e, bool avx512);

  const Code& operator[](NodeId id) const { return codes_[id]; }
  /// The node that computes a value: what is the same as another is that one.
  NodeId real(NodeId id) const { return real_[id]; }
  /// Every operation that something reads, in the order of their code: first the uniform ones, which are the
  /// same in all elements of a call.
  std::span<const NodeId> order() const { return order_; }
  size_t num_uniform() const noexcept { return num_uniform_; }
  /// The places in that order of what reads a value; outputs are read after the last.
  std::span<const uint32_t> uses(NodeId id) const { return {uses_.data() + first_use_[id], num_uses(id)}; }
  // Of what is computed for each vector:

  /// How many operations wait for each other one by one.
  size_t longest_path() const noexcept { return longest_path_; }
  size_t num_operations() const noexcept { return order_.size() - num_uniform_; }
  /// For how many operations values wait until they are read for the last time, all together.
  size_t lifetimes(bool masks_too) const;

 private:
  size_t num_uses(NodeId id) const { return first_use_[id + 1] - first_use_[id]; }
  void find_readers();
  void weigh();
  void find_order();
  void append_all_of(NodeId root);
  void append(NodeId id);
  bool is_ready(NodeId id) const;
  int num_ended_by(NodeId id) const;
  void number_uses();

  const expr::Expression& e_;
  std::vector<Code> codes_;
  std::vector<NodeId> real_;
  std::vector<uint8_t> uniform_;     // bytes: bits would take longer to find than what is done with them
  std::vector<uint32_t> registers_;  // that a value takes to compute
  std::vector<uint32_t> depth_;
  std::vector<uint8_t> done_;  // has a place in the order, or needs none
  std::vector<NodeId> order_;
  std::vector<uint32_t> first_use_, uses_, unread_;  // unread_: how many readers have no place yet
  size_t num_uniform_ = 0, longest_path_ = 0;
};

}  // namespace tenon::cpu::jit
