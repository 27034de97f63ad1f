// pi_reduce: a test in the loop, and a call after the function's end for vectors with large elements.
#include <bit>
#include <limits>

#include "backends/cpu/jit/emitter.h"
#include "tenon/expr/pi_reduce.h"

namespace tenon::cpu::jit {

namespace {

constexpr uint8_t kGreater = 0x1e, kLess = 0x11;  // of vcmpps; neither holds for NaN

template <class T>
void reduce_lanes(T* x, int lanes, int part) noexcept {
  constexpr T kFrom = static_cast<T>(expr::kPiReduceFrom);
  for (int i = 0; i < lanes; ++i) {
    const bool large = !(x[i] <= kFrom && x[i] >= -kFrom);
    x[i] = large ? expr::pi_reduce(x[i], part) : T{0};
  }
}

}  // namespace

// AVX2 needs a second vector.
void Emitter::test_large(int x, int second) {
  const int s = scratch();
  const auto number = [this](double d) {
    return at_constant(
        constant(wide_ ? std::bit_cast<uint64_t>(d) : std::bit_cast<uint32_t>(static_cast<float>(d))));
  };
  const Xbyak::Address sign = at_constant(constant(wide_ ? ~uint64_t{0} >> 1 : 0x7fffffffu));
  const Xbyak::Address from = number(expr::kPiReduceFrom);
  const Xbyak::Address infinity = number(std::numeric_limits<double>::infinity());
  if (avx512_) {
    const auto large = scratch_mask();
    wide_ ? vpandq(vec(s), vec(x), sign) : vpandd(vec(s), vec(x), sign);
    wide_ ? vcmppd(large, vec(s), from, kGreater) : vcmpps(large, vec(s), from, kGreater);
    wide_ ? vcmppd(large | large, vec(s), infinity, kLess) : vcmpps(large | large, vec(s), infinity, kLess);
    kortestq(large, large);
  } else {
    vandps(vec(s), vec(x), sign);
    wide_ ? vcmppd(vec(second), vec(s), from, kGreater) : vcmpps(vec(second), vec(s), from, kGreater);
    wide_ ? vcmppd(vec(s), vec(s), infinity, kLess) : vcmpps(vec(s), vec(s), infinity, kLess);
    vptest(ymm(s), ymm(second));
  }
}

// x - x, which is zero and NaN of what is not finite, and a call where a finite element is large.
void Emitter::pi_reduce(Id id, const Code& n) {
  const Id a = value(n.args[0]);
  places_.hold({a});
  const int x = places_.in_register(a), to = places_.take(id);
  const auto rare = std::make_shared<Xbyak::Label>(), back = std::make_shared<Xbyak::Label>();
  test_large(x, to);
  wide_ ? vsubpd(vec(to), vec(x), vec(x)) : vsubps(vec(to), vec(x), vec(x));
  jnz(*rare, T_NEAR);
  L(*back);
  rare_.push_back({x, to, static_cast<int>(n.bits), wide_, -1, rare, back});
}

// Where the mask is true everywhere, which it mostly is, the first operand is the result.
void Emitter::pi_reduce_where(Id id, const Code& n) {
  const Id m = value(n.args[0]), a = value(n.args[1]), b = value(n.args[2]);
  places_.hold({m, a, b});
  const int kept = places_.in_register(m), from = places_.in_register(a), x = places_.in_register(b);
  const int to = a == b ? places_.take(id) : places_.take_over(id, {a});
  const auto rare = std::make_shared<Xbyak::Label>(), back = std::make_shared<Xbyak::Label>();
  if (to != from) vmovaps(all(to), all(from));
  if (!avx512_)
    vptest(ymm(kept), at_constant(constant(~uint64_t{0})));
  else if (lanes_ == 16)
    kortestw(mask(kept), mask(kept));
  else
    kortestb(mask(kept), mask(kept));
  jnc(*rare, T_NEAR);
  L(*back);
  rare_.push_back({x, to, static_cast<int>(n.bits), wide_, kept, rare, back});
}

// Each has the call of a routine that they share, which takes its vector from the last slot of the frame and
// puts the result there.
void Emitter::emit_rare() {
  const int vectors = avx512_ ? 32 : 16, saved = places_.frame_slots(), argument = saved + vectors;
  Xbyak::Label routine[2];
  bool called[2] = {};
  for (const Rare& r : rare_) {
    wide_ = r.wide;
    Xbyak::Label put;
    L(*r.begin);
    if (r.kept >= 0) {
      test_large(r.from, second_scratch());
      wide_ ? vsubpd(vec(scratch()), vec(r.from), vec(r.from))
            : vsubps(vec(scratch()), vec(r.from), vec(r.from));
      jz(put, T_NEAR);
    }
    vmovups(at_slot(argument), all(r.from));
    mov(ecx, r.part);
    call(routine[r.wide]);
    vmovups(all(r.kept >= 0 ? scratch() : r.to), at_slot(argument));
    L(put);
    if (r.kept >= 0 && avx512_)
      wide_ ? vblendmpd(vec(r.to) | mask(r.kept), vec(scratch()), vec(r.to))
            : vblendmps(vec(r.to) | mask(r.kept), vec(scratch()), vec(r.to));
    else if (r.kept >= 0)
      wide_ ? vblendvpd(ymm(r.to), ymm(scratch()), ymm(r.to), ymm(r.kept))
            : vblendvps(ymm(r.to), ymm(scratch()), ymm(r.to), ymm(r.kept));
    jmp(*r.end, T_NEAR);
    called[r.wide] = true;
  }
  for (const bool wide : {false, true}) {
    if (!called[wide]) continue;
    L(routine[wide]);
    call_pi_reduce(wide, saved, argument);
    ret();
  }
}

// With all registers saved, since a function may change any.
void Emitter::call_pi_reduce(bool wide, int saved, int argument) {
  // With the address to return to, the stack is aligned as a call needs it.
  const Xbyak::Reg64 kept[] = {rax, rdi, rsi, rdx, r8, r9, r10};
  constexpr int kAddress = 8, kMasks = 64, kPushed = 7 * 8;
  static_assert((kAddress + kMasks + kPushed) % 16 == 0);
  const int vectors = argument - saved;
  const auto slot = [&](int i) {
    const Xbyak::RegExp at = rsp + kAddress + (saved + i) * bytes_;
    return avx512_ ? zword[at] : yword[at];
  };
  for (int i = 0; i < vectors; ++i) vmovups(slot(i), all(i));
  sub(rsp, kMasks);
  for (int i = 1; avx512_ && i < 8; ++i) kmovq(qword[rsp + i * 8], Xbyak::Opmask(i));
  for (const auto& r : kept) push(r);
  lea(rdi, ptr[rsp + kAddress + kMasks + kPushed + argument * bytes_]);
  mov(esi, lanes_);
  mov(edx, ecx);
  vzeroupper();
  mov(rax, wide ? reinterpret_cast<size_t>(&reduce_lanes<double>)
                : reinterpret_cast<size_t>(&reduce_lanes<float>));
  call(rax);
  for (size_t i = std::size(kept); i-- > 0;) pop(kept[i]);
  for (int i = 1; avx512_ && i < 8; ++i) kmovq(Xbyak::Opmask(i), qword[rsp + i * 8]);
  add(rsp, kMasks);
  for (int i = 0; i < vectors; ++i) vmovups(all(i), slot(i));
}

}  // namespace tenon::cpu::jit
