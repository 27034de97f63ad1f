// Emitter: one expression to machine code, for AVX2 or AVX-512. As many elements go at a time as values of
// the widest type fill a vector; on AVX-512 narrower ones are in the half of one, on AVX2 all have one size.
// Several vectors go through the loop side by side, and the last ones one by one.
// Masks are mask registers on AVX-512 and vectors of ones and zeros on AVX2. Internal to this folder.
#pragma once

#include <xbyak/xbyak.h>

#include <bit>
#include <memory>
#include <vector>

#include "backends/cpu/jit/jit.h"
#include "backends/cpu/jit/places.h"
#include "backends/cpu/jit/values.h"

namespace tenon::cpu::jit {

/// Whether some value has 8 bytes, or has them on its way to another type.
bool has_wide_items(const expr::Expression& e);

class Emitter final : public Mover, private Xbyak::CodeGenerator {
 public:
  /// Emits the code of a primitive expression. Throws Xbyak::Error where memory cannot be made executable.
  /// `vectors`: how many go side by side; 0: as many as find registers for their values. `summed`: the
  /// outputs that are added up, as JitKernel::make_sums has it.
  Emitter(const expr::Expression& e, CpuTarget target, int vectors = 0, uint32_t summed = 0);

  template <class F>
  F function() const {
    return getCode<F>();
  }

 private:
  using Op = expr::Op;
  using Type = expr::Type;
  using NodeId = expr::NodeId;
  using Id = Places::Id;  // of a value: a node, or one vector's copy of it
  using Operand = Xbyak::Operand;

  /// A pi_reduce of elements some of which are large: code after the function's end.
  struct Rare {
    int from, to;  // registers
    int part;
    bool wide;
    int kept;  // the mask of the lanes that keep what `to` has; -1 if there is none
    std::shared_ptr<Xbyak::Label> begin, end;
  };

  // emitter.cc: the function around the values.
  void plan();
  void prologue();
  void mask_rest();
  void body(int copies);
  void epilogue();
  /// Vectors that have the sixteen lanes of a sum, and the registers that have them.
  int parts() const { return avx512_ ? 1 : 2; }
  int lanes_of(size_t output, int part = 0) const {
    const int before = std::popcount(summed_ & ((uint32_t{1} << output) - 1));
    return (avx512_ ? scratch() : second_scratch()) - 1 - before * parts() - part;
  }
  bool is_summed(size_t output) const { return output < 32 && (summed_ >> output & 1) != 0; }
  void add_to_sum(size_t output, int from);
  void store_sum(size_t output);
  void save(const Place& from) override;
  void load(const Place& to) override;

  // memory.cc: elements as they are stored.
  void load_input(const Place& to);
  /// Where the elements in hand of an output or, after those, an input are.
  Xbyak::RegExp elements(int pointer, DType stored, int copy);
  void store_output(size_t output, const Place& from);
  void load_elements(int reg, const Xbyak::RegExp& at, DType stored);
  void store_elements(const Xbyak::RegExp& at, int reg, DType stored);
  void load_truth(const Place& to, const Xbyak::RegExp& at);
  void store_truth(const Xbyak::RegExp& at, const Place& from);
  /// The upper 16 bits of float32 values, rounded to the nearest even, in the scratch register's low halves.
  void to_bfloat16(int from);
  void round_to(Id id, const Code& n);

  // operations.cc
  void operation(Id id, const Code& n);
  template <class F>
  void unary(Id id, const Code& n, F f);
  template <class F>
  void binary(Id id, const Code& n, bool commutes, F f);
  void arithmetic(Id id, const Code& n, bool floating);
  void bitwise(Id id, const Code& n);
  void shift(Id id, const Code& n);
  void round(Id id, const Code& n, uint8_t mode);
  void scale(Id id, const Code& n);
  void select_bits(Id id, const Code& n);
  void fma(Id id, const Code& n);
  bool is_ordinary_literal(NodeId id) const;
  void extremum(Id id, const Code& n, bool floating);
  void compare(Id id, const Code& n);
  void choose(Id id, const Code& n);
  void cast(Id id, const Code& n);
  void convert(int to, int from, Type was, Type type);
  /// The mask of the elements that are not 0, and 1 of `type` where a mask is true, else 0.
  void not_zero(int to, int from, Type type);
  void one_or_zero(int to, int from, Type type);
  /// x ^ bits or x & bits.
  void with_bits(Id id, const Code& n, Op op, uint64_t bits);

  // pi_reduce.cc
  void pi_reduce(Id id, const Code& n);
  void pi_reduce_where(Id id, const Code& n);
  /// ZF is 0 where some element is large and finite.
  void test_large(int x, int scratch_vector);
  void emit_rare();
  void call_pi_reduce(bool wide, int saved, int argument);

  /// The value of a node; of those that differ from vector to vector, that of the one in hand.
  Id value(NodeId id) const {
    const NodeId real = values_.real(id);
    return places_[real].shared() ? real : real + static_cast<Id>(copy_) * e_.num_nodes;
  }
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
  /// An operand that an instruction can take as it is, from a register where that saves other vectors a load.
  void make_readable(Id id) {
    if (!readable(places_[id]) || places_.worth_a_register(id)) places_.in_register(id);
  }
  Xbyak::Address memory(const Place& p) const;
  uint64_t one(Type type) const;

  const expr::Expression& e_;
  const bool avx512_;
  const uint32_t summed_;  // outputs that are added up, not stored
  const bool mixed_;       // some values have 8 bytes: as many elements go at a time
  bool wide_ = false;      // those in hand have
  bool tail_ = false;      // the code that follows is for the last elements
  int part_ = 0;           // of the sums' lanes, the one that the first vector in hand is added to
  int copy_ = 0;           // which of the vectors that go side by side is in hand
  int pointer_ = -1;       // which one rax has
  int bytes_, lanes_;      // of a vector
  int tail_slot_ = -1;     // of AVX2's mask of the last elements
  const Values values_;
  const int copies_;  // how many vectors go at a time
  Places places_;
  std::vector<uint64_t> table_;
  std::vector<Rare> rare_;
  Xbyak::Label table_label_, ones_label_;
  size_t frame_at_ = 0;  // where the size of the frame is to be written
};

}  // namespace tenon::cpu::jit
