// Elements as they are stored: what loads and stores them, and what storing does to a value. The bits are
// those of backends/cpu/copy/convert.h.
#include "backends/cpu/jit/emitter.h"

namespace tenon::cpu::jit {

using Xbyak::Address;
using Xbyak::RegExp;

RegExp Emitter::elements(int pointer, DType stored, int copy) {
  if (pointer != pointer_) mov(rax, qword[rdi + 8 * pointer]);
  pointer_ = pointer;
  const auto item = static_cast<int>(item_size(stored));
  return rax + r8 * item + copy * lanes_ * item;
}

void Emitter::load_input(const Place& to) {
  const DType stored = real_dtype(e_.inputs()[to.index].dtype);
  const RegExp at = elements(static_cast<int>(e_.num_outputs + to.index), stored, to.copy);
  if (to.is_mask)
    load_truth(to, at);
  else
    load_elements(to.reg, at, stored);
}

void Emitter::store_output(size_t output, const Place& from) {
  const DType stored = real_dtype(e_.outputs()[output].dtype);
  const RegExp at = elements(static_cast<int>(output), stored, copy_);
  if (from.is_mask)
    store_truth(at, from);
  else
    store_elements(at, from.reg, stored);
}

void Emitter::load_elements(int reg, const RegExp& at, DType stored) {
  if (!avx512_) {
    // All have the size of what is computed.
    if (!tail_) return vmovups(ymm(reg), yword[at]);
    vmovups(ymm(reg), at_slot(tail_slot_));
    return mixed_ ? vmaskmovpd(ymm(reg), ymm(reg), yword[at]) : vmaskmovps(ymm(reg), ymm(reg), yword[at]);
  }
  const auto masked = [&](const Xbyak::Xmm& x) { return tail_ ? x | tail_mask() | T_z : x; };
  const Xbyak::Xmm four = masked(narrow(reg)), eight = masked(wide(reg));
  switch (stored) {
    case DType::Float16:
      return vcvtph2ps(four, ptr[at]);
    case DType::BFloat16:
      vpmovzxwd(four, ptr[at]);
      return vpslld(narrow(reg), narrow(reg), 16);
    case DType::Int8:
      return vpmovsxbq(eight, ptr[at]);
    case DType::UInt8:
      return vpmovzxbq(eight, ptr[at]);
    case DType::Int16:
      return vpmovsxwq(eight, ptr[at]);
    case DType::UInt16:
      return vpmovzxwq(eight, ptr[at]);
    case DType::UInt32:
      return vpmovzxdq(eight, ptr[at]);
    default:
      return item_size(stored) == 8 ? vmovupd(eight, ptr[at]) : vmovups(four, ptr[at]);
  }
}

void Emitter::store_elements(const RegExp& at, int reg, DType stored) {
  if (!avx512_) {
    if (!tail_) return vmovups(yword[at], ymm(reg));
    const Xbyak::Ymm ones = ymm(second_scratch());
    vmovups(ones, at_slot(tail_slot_));
    return mixed_ ? vmaskmovpd(yword[at], ones, ymm(reg)) : vmaskmovps(yword[at], ones, ymm(reg));
  }
  const Address to = tail_ ? ptr[at] | tail_mask() : ptr[at];
  switch (stored) {
    case DType::Float16:
      return vcvtps2ph(to, narrow(reg), 0);
    case DType::BFloat16:
      to_bfloat16(reg);
      return vpmovdw(to, narrow(scratch()));
    case DType::Int8:
    case DType::UInt8:
      return vpmovqb(to, wide(reg));
    case DType::Int16:
    case DType::UInt16:
      return vpmovqw(to, wide(reg));
    case DType::UInt32:
      return vpmovqd(to, wide(reg));
    default:
      return item_size(stored) == 8 ? vmovupd(to, wide(reg)) : vmovups(to, narrow(reg));
  }
}

// Any byte but 0 is true.
void Emitter::load_truth(const Place& to, const RegExp& at) {
  const Xbyak::Xmm bytes = tail_ ? all(scratch()) | tail_mask() | T_z : all(scratch());
  if (mixed_) {
    vpmovzxbq(bytes, ptr[at]);
    vptestmq(mask(to.reg), all(scratch()), all(scratch()));
  } else {
    vpmovzxbd(bytes, ptr[at]);
    vptestmd(mask(to.reg), all(scratch()), all(scratch()));
  }
}

void Emitter::store_truth(const RegExp& at, const Place& from) {
  const Xbyak::Xmm bytes{scratch()};
  vpmovm2b(bytes, mask(from.reg));
  vpabsb(bytes, bytes);
  if (tail_)
    vmovdqu8(xword[at] | tail_mask(), bytes);
  else if (mixed_)
    vmovq(qword[at], bytes);
  else
    vmovdqu8(xword[at], bytes);
}

void Emitter::to_bfloat16(int from) {
  of_type(Type::F32);
  const Xbyak::Xmm x = narrow(from), to = narrow(scratch());
  vpsrld(to, x, 16);
  vpandd(to, to, at_constant(constant(1)));
  vpaddd(to, to, x);
  vpaddd(to, to, at_constant(constant(0x7fff)));
  vpsrld(to, to, 16);
  vcmpps(scratch_mask(), x, x, 3);  // unordered
  vpblendmd(to | scratch_mask(), to, at_constant(constant(0x7fc0)));
}

void Emitter::round_to(Id id, const Code& n) {
  const Id a = value(n.args[0]);
  places_.hold({a});
  const int x = places_.in_register(a);
  const int to = places_.take_over(id, {a});
  switch (static_cast<DType>(n.bits)) {
    case DType::Float16: {
      // Of half the bytes that the values have.
      const Xbyak::Xmm halves = mixed_ ? Xbyak::Xmm(scratch()) : Xbyak::Xmm(ymm(scratch()));
      vcvtps2ph(halves, narrow(x), 0);
      return vcvtph2ps(narrow(to), halves);
    }
    case DType::BFloat16:
      to_bfloat16(x);
      return vpslld(narrow(to), narrow(scratch()), 16);
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32: {
      const int bits = dtype_info(static_cast<DType>(n.bits)).bits;
      return vpandq(wide(to), wide(x), at_constant(constant((int64_t{1} << bits) - 1)));
    }
    default: {
      const auto unused = static_cast<uint8_t>(64 - dtype_info(static_cast<DType>(n.bits)).bits);
      vpsllq(wide(to), wide(x), unused);
      return vpsraq(wide(to), wide(to), unused);
    }
  }
}

}  // namespace tenon::cpu::jit
