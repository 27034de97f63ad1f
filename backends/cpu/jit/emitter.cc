#include "backends/cpu/jit/emitter.h"

#include <algorithm>
#include <bit>

namespace tenon::cpu::jit {

bool has_wide_items(const expr::Expression& e) {
  return std::any_of(e.nodes().begin(), e.nodes().end(), [&](const expr::Node& n) {
    const bool by_int64 =
        n.op == expr::Op::Cast && n.type == expr::Type::I32 && is_floating(e[n.args[0]].type);
    return by_int64 || (is_compute_type(n.type) && expr::item_size(n.type) == 8);
  });
}

namespace {

// Of 32 vectors of AVX-512 the last is scratch, of 16 of AVX2 the last two.
constexpr int kVectors512 = 31, kVectors256 = 14, kMasks = 5;
constexpr size_t kFirstBytes = 8192;
constexpr int kMostCopies = 8;

// How many vectors go side by side: while one waits for the results of its operations, others go on, as long
// as their values find registers most of the time; to save and load some of them costs less than waiting.
// Measured with functions from exp to silu(x * a + b) * tanh(x) + b, which keep 3 to 5 values on average.
// Of AVX2's sums a chunk's lanes are two vectors.
int choose_copies(const Values& values, bool avx512, bool sums) {
  constexpr size_t kFew = 16, kMost = 640;  // operations; code of more would take too long to emit
  const size_t operations = values.num_operations(), lifetimes = values.lifetimes(!avx512);
  if (operations < kFew) return 2;
  const size_t wanted = 4, in_use = avx512 ? 25 : 16;
  const auto copies = static_cast<int>(std::clamp<size_t>(
      std::min(in_use * operations / std::max<size_t>(lifetimes, 1), kMost / operations), 1, wanted));
  return sums && !avx512 ? std::max(copies / 2 * 2, 2) : copies;
}

}  // namespace

// rdi: pointers, rsi: n, rdx: numbers, which stay. r8: elements from the beginning, r9: elements left, r10:
// constants. rax: the pointer that was read last.
Emitter::Emitter(const expr::Expression& e, CpuTarget target, int vectors, uint32_t summed)
    : Xbyak::CodeGenerator(kFirstBytes, Xbyak::AutoGrow),
      e_(e),
      avx512_(target == CpuTarget::Avx3),
      summed_(summed),
      mixed_(has_wide_items(e)),
      wide_(mixed_),
      bytes_(avx512_ ? 64 : 32),
      lanes_(bytes_ / (mixed_ ? 8 : 4)),
      values_(e, avx512_),
      copies_(vectors > 0 ? std::min(vectors, kMostCopies) : choose_copies(values_, avx512_, summed != 0)),
      places_(*this, e.num_nodes * static_cast<size_t>(copies_),
              (avx512_ ? kVectors512 : kVectors256) - std::popcount(summed) * parts(), kMasks) {
  plan();
  prologue();
  // As many vectors side by side as there are, then the others one by one; the last may be short.
  const int step = copies_ * lanes_;
  Xbyak::Label loop, loop_end, rest, rest_end;
  cmp(r9, step);
  jb(loop_end, T_NEAR);
  align(64);
  L(loop);
  body(copies_);
  add(r8, step);
  sub(r9, step);
  cmp(r9, step);
  jae(loop, T_NEAR);
  L(loop_end);
  test(r9, r9);
  jz(rest_end, T_NEAR);
  L(rest);
  tail_ = true;
  for (part_ = 0; part_ < (summed_ != 0 ? parts() : 1); ++part_) {
    if (part_ > 0) jbe(rest_end, T_NEAR);
    mask_rest();
    body(1);
    add(r8, lanes_);
    sub(r9, lanes_);
  }
  ja(rest, T_NEAR);
  L(rest_end);
  epilogue();
  ready(Xbyak::CodeArray::PROTECT_RE);
}

void Emitter::plan() {
  for (NodeId id = 0; id < e_.num_nodes; ++id) {
    const expr::Node& n = e_[id];
    Place p;
    p.is_mask = n.type == Type::Mask;
    p.wide = p.is_mask ? mixed_ : expr::item_size(n.type) == 8;
    of_type(n.type);
    p.mask = avx512_ && p.is_mask;
    p.index = n.bits;
    p.uses = values_.uses(id);
    if (n.op == Op::Literal) {
      p.home = Home::Literal;
      p.index = constant(n.type != Type::Mask ? n.bits : n.bits != 0 ? ~uint64_t{0} : 0);
    } else if (n.op == Op::Number) {
      p.home = Home::Number;
    } else if (n.op == Op::Load) {
      p.home = Home::Input;
    }
    for (; p.copy < copies_; ++p.copy) places_[id + p.copy * e_.num_nodes] = p;
  }
}

void Emitter::prologue() {
  push(rbp);
  mov(rbp, rsp);
  sub(rsp, 0x7fffff0);  // the frame's size, which is known at the end
  frame_at_ = getSize() - 4;
  and_(rsp, -64);
  mov(r10, table_label_);
  xor_(r8, r8);
  mov(r9, rsi);
  if (!avx512_) tail_slot_ = places_.new_slot();
  places_.restart();
  const std::span<const NodeId> order = values_.order();
  for (uint32_t at = 0; at < values_.num_uniform(); ++at) {
    const NodeId id = order[at];
    places_.at(at, true);
    operation(id, values_[id]);
    places_.keep(id);
  }
  for (size_t o = 0; o < e_.num_outputs; ++o) {
    if (!is_summed(o)) continue;
    for (int part = 0; part < parts(); ++part) {
      const Xbyak::Xmm lanes = all(lanes_of(o, part));
      avx512_ ? vpxord(lanes, lanes, lanes) : vxorps(lanes, lanes, lanes);
    }
  }
}

// The lanes of one vector that there are elements for.
void Emitter::mask_rest() {
  mov(ecx, lanes_);
  cmp(r9, rcx);
  cmovb(rcx, r9);
  if (avx512_) {
    mov(eax, -1);
    bzhi(eax, eax, ecx);
    kmovd(tail_mask(), eax);
    return;
  }
  shl(rcx, mixed_ ? 3 : 2);
  mov(rax, ones_label_);
  sub(rax, rcx);
  vmovups(ymm(scratch()), yword[rax]);
  vmovups(at_slot(tail_slot_), ymm(scratch()));
}

void Emitter::body(int copies) {
  places_.restart();
  pointer_ = -1;
  const std::span<const NodeId> order = values_.order();
  for (auto at = static_cast<uint32_t>(values_.num_uniform()); at < order.size(); ++at) {
    const NodeId id = order[at];
    const Code& n = values_[id];
    for (copy_ = 0; copy_ < copies; ++copy_) {
      places_.at(at, copy_ + 1 == copies);
      operation(value(id), n);
      for (int i = 0; i < n.arity; ++i) places_.was_read(value(n.args[i]));
    }
  }
  // An input that is stored as it is may be the memory of another output: all are read before any is written.
  std::vector<Id> results;
  for (copy_ = 0; copy_ < copies; ++copy_) {
    results.clear();
    for (const expr::Slot& s : e_.outputs()) results.push_back(value(s.node));
    places_.hold(results);
    for (const Id id : results) places_.in_register(id);
    for (size_t o = 0; o < e_.num_outputs; ++o) {
      const int result = places_.in_register(results[o]);
      if (is_summed(o))
        add_to_sum(o, result);
      else
        store_output(o, places_[results[o]]);
    }
    places_.at(static_cast<uint32_t>(order.size()), copy_ + 1 == copies);
    for (const Id id : results) places_.was_read(id);
  }
  copy_ = 0;
}

void Emitter::add_to_sum(size_t output, int from) {
  const int lanes = lanes_of(output, (part_ + copy_) % parts());
  if (avx512_) {
    vaddps(tail_ ? all(lanes) | tail_mask() : all(lanes), all(lanes), all(from));
  } else if (tail_) {  // to add 0 changes no sum that began with 0
    vandps(ymm(scratch()), ymm(from), at_slot(tail_slot_));
    vaddps(ymm(lanes), ymm(lanes), ymm(scratch()));
  } else {
    vaddps(ymm(lanes), ymm(lanes), ymm(from));
  }
}

// The lanes in halves: reduce.h.
void Emitter::store_sum(size_t output) {
  const int lanes = lanes_of(output);
  const Xbyak::Ymm eight(lanes), upper(scratch());
  const Xbyak::Xmm four(lanes), rest(scratch());
  if (avx512_) vextractf64x4(upper, Xbyak::Zmm(lanes), 1);
  vaddps(eight, eight, avx512_ ? upper : ymm(lanes_of(output, 1)));
  if (avx512_)
    vextractf32x4(rest, eight, 1);
  else
    vextractf128(rest, eight, 1);
  vaddps(four, four, rest);
  vpermilpd(rest, four, 1);
  vaddps(four, four, rest);
  vmovshdup(rest, four);
  vaddss(four, four, rest);
  mov(rax, qword[rdi + 8 * output]);
  vmovss(dword[rax], four);
}

void Emitter::epilogue() {
  for (size_t o = 0; o < e_.num_outputs; ++o) {
    if (is_summed(o)) store_sum(o);
  }
  vzeroupper();
  mov(rsp, rbp);
  pop(rbp);
  ret();
  emit_rare();
  // Rare code saves all vectors after the slots and has one more for its operand; masks go below the frame.
  const int slots = places_.frame_slots() + kVectors512 + 2;
  rewrite(frame_at_, static_cast<uint64_t>(slots * bytes_ + 64), 4);
  align(64);
  L(table_label_);
  for (const uint64_t bits : table_) {
    for (int i = 0; i < (avx512_ ? 1 : bytes_ / 8); ++i) dq(bits);
  }
  // AVX2's mask of k elements: the 32 bytes that begin k elements before the label.
  for (int i = 0; i < 4; ++i) dq(~uint64_t{0});
  L(ones_label_);
  for (int i = 0; i < 4; ++i) dq(0);
}

Xbyak::Address Emitter::at_slot(int slot) const {
  return avx512_ ? zword[rsp + slot * bytes_] : yword[rsp + slot * bytes_];
}

Xbyak::Address Emitter::at_constant(uint64_t index) const {
  return avx512_ ? ptr_b[r10 + index * 8] : yword[r10 + index * 32];
}

uint64_t Emitter::constant(uint64_t bits) {
  if (!wide_) bits = (bits & 0xffffffff) | bits << 32;
  const auto known = std::find(table_.begin(), table_.end(), bits);
  if (known == table_.end()) {
    table_.push_back(bits);
    return table_.size() - 1;
  }
  return static_cast<uint64_t>(known - table_.begin());
}

bool Emitter::readable(const Place& p) const {
  if (p.mask) return false;
  return p.reg >= 0 || p.slot >= 0 || p.home == Home::Literal || (p.home == Home::Number && avx512_);
}

Xbyak::Address Emitter::memory(const Place& p) const {
  if (p.slot >= 0) return at_slot(p.slot);
  return p.home == Home::Number ? ptr_b[rdx + p.index * 8] : at_constant(p.index);
}

uint64_t Emitter::one(Type type) const {
  if (type == Type::F32) return std::bit_cast<uint32_t>(1.0f);
  return type == Type::F64 ? std::bit_cast<uint64_t>(1.0) : 1;
}

void Emitter::save(const Place& from) {
  if (from.mask)
    kmovq(qword[rsp + from.slot * bytes_], mask(from.reg));
  else
    vmovups(at_slot(from.slot), all(from.reg));
}

void Emitter::load(const Place& to) {
  if (to.mask && to.slot >= 0) {
    kmovq(mask(to.reg), qword[rsp + to.slot * bytes_]);
  } else if (to.mask && to.home == Home::Literal) {
    if (table_[to.index] != 0)
      kxnorq(mask(to.reg), mask(to.reg), mask(to.reg));
    else
      kxorq(mask(to.reg), mask(to.reg), mask(to.reg));
  } else if (to.slot >= 0) {
    vmovups(all(to.reg), at_slot(to.slot));
  } else if (to.home == Home::Literal && !avx512_) {
    vmovups(all(to.reg), at_constant(to.index));
  } else if (to.home == Home::Input) {
    load_input(to);
  } else {
    const Xbyak::RegExp at = to.home == Home::Literal ? r10 + to.index * 8 : rdx + to.index * 8;
    const Xbyak::Ymm reg = avx512_ ? Xbyak::Ymm(Xbyak::Zmm(to.reg)) : ymm(to.reg);
    if (to.wide)
      vbroadcastsd(reg, qword[at]);
    else
      vbroadcastss(reg, dword[at]);
  }
}

}  // namespace tenon::cpu::jit
