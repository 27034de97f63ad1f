// Emitter: one expression to machine code, for AVX2 or AVX-512. As many elements go at a time as values of
// the widest type fill a vector; on AVX-512 narrower ones are in the half of one, on AVX2 all have one size.
// Masks are mask registers on AVX-512 and vectors of ones and zeros on AVX2. Internal to this folder.
#pragma once

#include <xbyak/xbyak.h>

#include <functional>
#include <vector>

#include "backends/cpu/jit/jit.h"
#include "backends/cpu/jit/places.h"

namespace tenon::cpu::jit {

class Emitter final : public Mover, private Xbyak::CodeGenerator {
 public:
  /// Emits the code of a primitive expression. Throws Xbyak::Error where memory cannot be made executable.
  Emitter(const expr::Expression& e, CpuTarget target);

  template <class F>
  F function() const {
    return getCode<F>();
  }

 private:
  using Op = expr::Op;
  using Type = expr::Type;
  using Node = expr::Node;
  using NodeId = expr::NodeId;
  using Operand = Xbyak::Operand;

  // emitter.cc: the function around the values.
  void plan();
  bool is_computed(NodeId id) const;
  void prologue();
  void body();
  void epilogue();
  void save(const Place& from) override;
  void load(const Place& to) override;

  // memory.cc: elements as they are stored.
  void load_input(const Place& to);
  void store_output(size_t output, const Place& from);
  void load_elements(int reg, const Xbyak::RegExp& at, DType stored);
  void store_elements(const Xbyak::RegExp& at, int reg, DType stored);
  void load_truth(const Place& to, const Xbyak::RegExp& at);
  void store_truth(const Xbyak::RegExp& at, const Place& from);
  /// The upper 16 bits of float32 values, rounded to the nearest even, in the scratch register's low halves.
  void to_bfloat16(int from);
  void round_to(NodeId id, const Node& n);

  // operations.cc
  void operation(NodeId id, const Node& n);
  template <class F>
  void unary(NodeId id, const Node& n, F f);
  template <class F>
  void binary(NodeId id, const Node& n, bool commutes, F f);
  void arithmetic(NodeId id, const Node& n, bool floating);
  void bitwise(NodeId id, const Node& n);
  void shift(NodeId id, const Node& n);
  void round(NodeId id, const Node& n, uint8_t mode);
  void fma(NodeId id, const Node& n);
  void extremum(NodeId id, const Node& n, bool floating);
  void compare(NodeId id, const Node& n);
  void choose(NodeId id, const Node& n);
  void cast(NodeId id, const Node& n);
  void convert(int to, int from, Type was, Type type);
  /// The mask of the elements that are not 0, and 1 of `type` where a mask is true, else 0.
  void not_zero(int to, int from, Type type);
  void one_or_zero(int to, int from, Type type);
  void pi_reduce(NodeId id, const Node& n);
  void call_pi_reduce(int from, int to, int part);
  /// x ^ bits or x & bits.
  void with_bits(NodeId id, const Node& n, Op op, uint64_t bits);

  NodeId real(NodeId id) const { return alias_[id]; }
  /// From here on instructions are of values of this type; of masks, of what they are masks of.
  void of_type(Type type) {
    if (is_compute_type(type)) wide_ = expr::item_size(type) == 8;
  }
  /// A register as values of the type in hand fill it; as those of 4 or 8 bytes do; all of it.
  Xbyak::Xmm vec(int i) const { return wide_ ? wide(i) : narrow(i); }
  Xbyak::Xmm narrow(int i) const { return mixed_ && avx512_ ? Xbyak::Xmm(Xbyak::Ymm(i)) : all(i); }
  Xbyak::Xmm wide(int i) const { return all(i); }
  Xbyak::Xmm all(int i) const { return avx512_ ? Xbyak::Xmm(Xbyak::Zmm(i)) : Xbyak::Xmm(Xbyak::Ymm(i)); }
  Xbyak::Ymm ymm(int i) const { return Xbyak::Ymm(i); }
  /// Registers 0 and 1 are the tail's and scratch.
  Xbyak::Opmask mask(int i) const { return Xbyak::Opmask(i + 2); }
  Xbyak::Opmask tail_mask() const { return Xbyak::Opmask(1); }
  Xbyak::Opmask scratch_mask() const { return Xbyak::Opmask(7); }
  int scratch() const { return avx512_ ? 31 : 15; }
  int second_scratch() const { return 14; }  // AVX2's
  Xbyak::Address at_slot(int slot) const;
  Xbyak::Address at_constant(uint64_t index) const;
  /// The table's place of a bit pattern of the type in hand.
  uint64_t constant(uint64_t bits);
  /// Whether an instruction can take the value from memory, and what it then takes.
  bool readable(const Place& p) const;
  Xbyak::Address memory(const Place& p) const;
  uint64_t one(Type type) const;

  const expr::Expression& e_;
  const bool avx512_;
  const bool mixed_;           // some values have 8 bytes: as many elements go at a time
  bool wide_ = false;          // those in hand have
  bool tail_ = false;          // the code that follows is for the last elements
  int bytes_, lanes_;          // of a vector
  int tail_slot_ = -1;         // of AVX2's mask of the last elements
  std::vector<NodeId> alias_;  // bits(x) and from_bits(x) are x
  std::vector<bool> kept_;     // computed before the loop
  Places places_;
  std::vector<uint64_t> table_;
  std::vector<std::function<void()>> rare_;  // code behind the function's end
  Xbyak::Label table_label_, ones_label_;
  size_t frame_at_ = 0;  // where the size of the frame is to be written
};

}  // namespace tenon::cpu::jit
