// What each operation of an expression is in instructions. The bits are those of simd_ops-inl.h.
#include <fmt/format.h>

#include <bit>
#include <stdexcept>

#include "backends/cpu/jit/emitter.h"

namespace tenon::cpu::jit {

namespace {

// Predicates of vcmpps: ordered and quiet, but for != which NaN satisfies.
enum Predicate : uint8_t { kEq = 0, kUnordered = 3, kNe = 4, kLt = 0x11, kLe = 0x12, kGe = 0x1d, kGt = 0x1e };

Predicate predicate_of(expr::Op op) {
  switch (op) {
    case expr::Op::Eq:
      return kEq;
    case expr::Op::Ne:
      return kNe;
    case expr::Op::Lt:
      return kLt;
    case expr::Op::Le:
      return kLe;
    case expr::Op::Gt:
      return kGt;
    default:
      return kGe;
  }
}

// Those of vpcmpd.
uint8_t integer_predicate(Predicate p) {
  switch (p) {
    case kEq:
      return 0;
    case kLt:
      return 1;
    case kLe:
      return 2;
    case kNe:
      return 4;
    case kGe:
      return 5;
    default:
      return 6;
  }
}

}  // namespace

template <class F>
void Emitter::unary(Id id, const Code& n, F f) {
  const Id a = value(n.args[0]);
  places_.hold({a});
  const int x = places_.in_register(a);
  const int to = places_.take_over(id, {a});
  f(vec(to), vec(x));
}

template <class F>
void Emitter::binary(Id id, const Code& n, bool commutes, F f) {
  Id a = value(n.args[0]), b = value(n.args[1]);
  if (commutes && places_[a].reg < 0 && places_[b].reg >= 0) std::swap(a, b);
  places_.hold({a, b});
  const int x = places_.in_register(a);
  make_readable(b);
  const Place y = places_[b];  // before the result takes its register
  const int to = places_.take_over(id, {a, b});
  if (y.reg >= 0)
    f(vec(to), vec(x), static_cast<const Operand&>(vec(y.reg)));
  else
    f(vec(to), vec(x), static_cast<const Operand&>(memory(y)));
}

#define TENON_JIT_TWO(narrow, wide, commutes)                                       \
  binary(id, n, commutes, [this](const auto& to, const auto& x, const Operand& y) { \
    if (wide_)                                                                      \
      wide(to, x, y);                                                               \
    else                                                                            \
      narrow(to, x, y);                                                             \
  })

void Emitter::operation(Id id, const Code& n) {
  const Type of = n.type == Type::Mask && n.arity > 0 ? e_[n.args[0]].type : n.type;
  const bool floating = is_floating(of);
  of_type(of);
  if (n.form == Form::Scale) return scale(id, n);
  if (n.form == Form::PiReduce) return pi_reduce_where(id, n);
  if (n.form == Form::SelectBits) return select_bits(id, n);
  switch (n.op) {
    case Op::RoundTo:
      return round_to(id, n);
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Not:
      return bitwise(id, n);
    case Op::ShiftLeft:
    case Op::ShiftRight:
    case Op::ShiftRightLogical:
      return shift(id, n);
    case Op::Floor:
      return round(id, n, 9);
    case Op::Ceil:
      return round(id, n, 10);
    case Op::Trunc:
      return round(id, n, 11);
    case Op::Round:
      return round(id, n, 8);
    case Op::Min:
    case Op::Max:
      return extremum(id, n, floating);
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
      return compare(id, n);
    case Op::Where:
      return choose(id, n);
    case Op::Cast:
      return cast(id, n);
    case Op::PiReduce:
      return pi_reduce(id, n);
    default:
      return arithmetic(id, n, floating);
  }
}

void Emitter::arithmetic(Id id, const Code& n, bool floating) {
  switch (n.op) {
    case Op::Add:
      return floating ? TENON_JIT_TWO(vaddps, vaddpd, true) : TENON_JIT_TWO(vpaddd, vpaddq, true);
    case Op::Sub:
      return floating ? TENON_JIT_TWO(vsubps, vsubpd, false) : TENON_JIT_TWO(vpsubd, vpsubq, false);
    case Op::Mul:
      return floating ? TENON_JIT_TWO(vmulps, vmulpd, true) : TENON_JIT_TWO(vpmulld, vpmullq, true);
    case Op::Div:
      return TENON_JIT_TWO(vdivps, vdivpd, false);
    case Op::Fma:
      return fma(id, n);
    case Op::Sqrt:
      return unary(id, n, [this](const auto& to, const auto& x) { wide_ ? vsqrtpd(to, x) : vsqrtps(to, x); });
    case Op::Neg:
      if (floating) return with_bits(id, n, Op::Xor, wide_ ? uint64_t{1} << 63 : 0x80000000u);
      return unary(id, n, [this](const auto& to, const auto& x) {
        if (avx512_)
          vpxord(all(scratch()), all(scratch()), all(scratch()));
        else
          vpxor(ymm(scratch()), ymm(scratch()), ymm(scratch()));
        wide_ ? vpsubq(to, vec(scratch()), x) : vpsubd(to, vec(scratch()), x);
      });
    case Op::Abs:
      if (floating) return with_bits(id, n, Op::And, wide_ ? ~uint64_t{0} >> 1 : 0x7fffffffu);
      return unary(id, n, [this](const auto& to, const auto& x) { wide_ ? vpabsq(to, x) : vpabsd(to, x); });
    default:
      throw std::logic_error(fmt::format("jit: {} was not refused", expr::info(n.op).name));
  }
}

void Emitter::with_bits(Id id, const Code& n, Op op, uint64_t bits) {
  const Xbyak::Address value = at_constant(constant(bits));
  unary(id, n, [&](const auto& to, const auto& x) {
    if (!avx512_)
      op == Op::Xor ? vxorps(to, x, value) : vandps(to, x, value);
    else if (op == Op::Xor)
      wide_ ? vpxorq(to, x, value) : vpxord(to, x, value);
    else
      wide_ ? vpandq(to, x, value) : vpandd(to, x, value);
  });
}

void Emitter::bitwise(Id id, const Code& n) {
  if (!places_[id].mask) {
    if (n.op == Op::Not) return with_bits(id, n, Op::Xor, ~uint64_t{0});
    if (!avx512_) {
      return n.op == Op::And  ? TENON_JIT_TWO(vpand, vpand, true)
             : n.op == Op::Or ? TENON_JIT_TWO(vpor, vpor, true)
                              : TENON_JIT_TWO(vpxor, vpxor, true);
    }
    return n.op == Op::And  ? TENON_JIT_TWO(vpandd, vpandq, true)
           : n.op == Op::Or ? TENON_JIT_TWO(vpord, vporq, true)
                            : TENON_JIT_TWO(vpxord, vpxorq, true);
  }
  const Id a = value(n.args[0]), b = value(n.args[n.arity - 1]);
  places_.hold({a, b});
  const Xbyak::Opmask x = mask(places_.in_register(a)), y = mask(places_.in_register(b));
  const Xbyak::Opmask to = mask(places_.take_over(id, {a, b}));
  if (n.op == Op::Not)
    knotq(to, x);
  else if (n.op == Op::And)
    kandq(to, x, y);
  else if (n.op == Op::Or)
    korq(to, x, y);
  else
    kxorq(to, x, y);
}

void Emitter::shift(Id id, const Code& n) {
  const auto count = static_cast<uint8_t>(n.bits);
  unary(id, n, [&](const auto& to, const auto& x) {
    if (n.op == Op::ShiftLeft)
      wide_ ? vpsllq(to, x, count) : vpslld(to, x, count);
    else if (n.op == Op::ShiftRightLogical)
      wide_ ? vpsrlq(to, x, count) : vpsrld(to, x, count);
    else
      wide_ ? vpsraq(to, x, count) : vpsrad(to, x, count);
  });
}

void Emitter::round(Id id, const Code& n, uint8_t mode) {
  unary(id, n, [&](const auto& to, const auto& x) {
    if (!avx512_)
      wide_ ? vroundpd(to, x, mode) : vroundps(to, x, mode);
    else
      wide_ ? vrndscalepd(to, x, mode) : vrndscaleps(to, x, mode);
  });
}

// x * 2^n with one rounding.
void Emitter::scale(Id id, const Code& n) {
  if (n.rounder != 0) {
    const Id a = value(n.args[0]), t = value(n.args[1]);
    places_.hold({a, t});
    const int x = places_.in_register(a), y = places_.in_register(t);
    const Xbyak::Address rounder = at_constant(constant(n.rounder));
    wide_ ? vsubpd(vec(scratch()), vec(y), rounder) : vsubps(vec(scratch()), vec(y), rounder);
    const int to = places_.take_over(id, {a, t});
    wide_ ? vscalefpd(vec(to), vec(x), vec(scratch())) : vscalefps(vec(to), vec(x), vec(scratch()));
    return;
  }
  binary(id, n, false, [this](const auto& to, const auto& x, const Operand& y) {
    wide_ ? vscalefpd(to, x, y) : vscalefps(to, x, y);
  });
}

void Emitter::select_bits(Id id, const Code& n) {
  const Id a = value(n.args[0]), b = value(n.args[1]);
  places_.hold({a, b});
  const int x = places_.in_register(a), y = places_.in_register(b);
  const int to = a == b ? places_.take(id) : places_.take_over(id, {a});
  if (to != x) vmovaps(vec(to), vec(x));
  constexpr uint8_t kChoose = 0xe4;  // the first where the third is set, else the second
  const Xbyak::Address chosen = at_constant(constant(e_[n.args[2]].bits));
  wide_ ? vpternlogq(vec(to), vec(y), chosen, kChoose) : vpternlogd(vec(to), vec(y), chosen, kChoose);
}

// With the signs of its product and its addend.
#define TENON_JIT_FMA(order, to, x, y)                                     \
  do {                                                                     \
    if (!n.minus_product && !n.minus_addend)                               \
      wide_ ? vfmadd##order##pd(to, x, y) : vfmadd##order##ps(to, x, y);   \
    else if (!n.minus_product)                                             \
      wide_ ? vfmsub##order##pd(to, x, y) : vfmsub##order##ps(to, x, y);   \
    else if (!n.minus_addend)                                              \
      wide_ ? vfnmadd##order##pd(to, x, y) : vfnmadd##order##ps(to, x, y); \
    else                                                                   \
      wide_ ? vfnmsub##order##pd(to, x, y) : vfnmsub##order##ps(to, x, y); \
  } while (false)

// a * b + c, in place of one of the three; one of them may be memory.
void Emitter::fma(Id id, const Code& n) {
  Id a = value(n.args[0]), b = value(n.args[1]);
  const Id c = value(n.args[2]);
  places_.hold({a, b, c});
  const auto held = [&](Id x) { return places_[x].reg >= 0; };
  Id in_memory = expr::kNoNode;
  for (const Id x : {a, b, c}) {
    if (places_.worth_a_register(x)) places_.in_register(x);
    if (held(x) || x == in_memory) continue;
    if (in_memory == expr::kNoNode && readable(places_[x]))
      in_memory = x;
    else
      places_.in_register(x);
  }
  // Where it is read twice it has to be a register.
  if (in_memory != expr::kNoNode && (a == b || a == c || b == c)) places_.in_register(in_memory);
  if (!held(a)) std::swap(a, b);
  const Place x = places_[a], y = places_[b], z = places_[c];
  const auto free = [&](Id operand) {
    return held(operand) && places_.dies_now(operand) &&
           (operand == a) + (operand == b) + (operand == c) == 1;
  };
  const auto source = [&](const Place& p, auto f) {
    if (p.reg >= 0)
      f(static_cast<const Operand&>(vec(p.reg)));
    else
      f(static_cast<const Operand&>(memory(p)));
  };
  const auto fma213 = [&](int to, int by, const Place& p) {
    source(p, [&](const Operand& o) { TENON_JIT_FMA(213, vec(to), vec(by), o); });
  };
  if (free(c)) {
    const int to = places_.take_over(id, {c});
    source(y, [&](const Operand& o) { TENON_JIT_FMA(231, vec(to), vec(x.reg), o); });
  } else if (y.reg < 0) {  // the factor is memory, so the addend is not
    const int to = free(a) ? places_.take_over(id, {a}) : places_.take(id);
    if (to != x.reg) vmovaps(vec(to), vec(x.reg));
    source(y, [&](const Operand& o) { TENON_JIT_FMA(132, vec(to), vec(z.reg), o); });
  } else if (free(b)) {
    fma213(places_.take_over(id, {b}), x.reg, z);
  } else {
    const int to = free(a) ? places_.take_over(id, {a}) : places_.take(id);
    if (to != x.reg) vmovaps(vec(to), vec(x.reg));
    fma213(to, y.reg, z);
  }
}

// Neither NaN nor 0: the two zeros are equal.
bool Emitter::is_ordinary_literal(NodeId id) const {
  const expr::Node& n = e_[id];
  if (n.op != Op::Literal) return false;
  const double v = n.type == Type::F32 ? std::bit_cast<float>(static_cast<uint32_t>(n.bits))
                                       : std::bit_cast<double>(n.bits);
  return v < 0 || v > 0;
}

// NaN if either is; the second of equal operands.
void Emitter::extremum(Id id, const Code& n, bool floating) {
  const bool least = n.op == Op::Min;
  if (!floating) {
    if (wide_) return least ? TENON_JIT_TWO(vpminsq, vpminsq, true) : TENON_JIT_TWO(vpmaxsq, vpmaxsq, true);
    return least ? TENON_JIT_TWO(vpminsd, vpminsd, true) : TENON_JIT_TWO(vpmaxsd, vpmaxsd, true);
  }
  // Of two that are not equal the instruction gives the second if one is NaN, and a literal is none.
  for (const int i : {0, 1}) {
    if (!is_ordinary_literal(n.args[i])) continue;
    const Id x = value(n.args[1 - i]), bound = value(n.args[i]);
    places_.hold({x, bound});
    const Xbyak::Xmm first = vec(places_.in_register(bound)), second = vec(places_.in_register(x));
    const Xbyak::Xmm to = vec(places_.take_over(id, {x, bound}));
    if (least)
      wide_ ? vminpd(to, first, second) : vminps(to, first, second);
    else
      wide_ ? vmaxpd(to, first, second) : vmaxps(to, first, second);
    return;
  }
  const Id a = value(n.args[0]), b = value(n.args[1]);
  places_.hold({a, b});
  const int x = places_.in_register(a), y = places_.in_register(b), best = scratch();
  if (least)
    wide_ ? vminpd(vec(best), vec(x), vec(y)) : vminps(vec(best), vec(x), vec(y));
  else
    wide_ ? vmaxpd(vec(best), vec(x), vec(y)) : vmaxps(vec(best), vec(x), vec(y));
  // The instruction gives the second operand if one is NaN.
  if (avx512_) {
    const Xbyak::Opmask nan = scratch_mask();
    wide_ ? vcmppd(nan, vec(x), vec(x), kUnordered) : vcmpps(nan, vec(x), vec(x), kUnordered);
    const int to = places_.take_over(id, {a, b});
    wide_ ? vblendmpd(vec(to) | nan, vec(best), vec(x)) : vblendmps(vec(to) | nan, vec(best), vec(x));
  } else {
    const int to = places_.take(id);
    wide_ ? vcmppd(vec(to), vec(x), vec(x), kUnordered) : vcmpps(vec(to), vec(x), vec(x), kUnordered);
    wide_ ? vblendvpd(ymm(to), ymm(best), ymm(x), ymm(to)) : vblendvps(ymm(to), ymm(best), ymm(x), ymm(to));
  }
}

void Emitter::compare(Id id, const Code& n) {
  const bool floating = is_floating(e_[n.args[0]].type);
  const Predicate p = predicate_of(n.op);
  if (!avx512_ && floating) {
    return binary(id, n, false, [&](const auto& to, const auto& x, const Operand& y) {
      wide_ ? vcmppd(to, x, y, p) : vcmpps(to, x, y, p);
    });
  }
  const Id a = value(n.args[0]), b = value(n.args[1]);
  places_.hold({a, b});
  const int x = places_.in_register(a);
  if (avx512_) {
    make_readable(b);
    const Place y = places_[b];
    const Xbyak::Opmask to = mask(places_.take(id));
    const auto emit = [&](const Operand& o) {
      if (floating)
        wide_ ? vcmppd(to, vec(x), o, p) : vcmpps(to, vec(x), o, p);
      else
        wide_ ? vpcmpq(to, vec(x), o, integer_predicate(p)) : vpcmpd(to, vec(x), o, integer_predicate(p));
    };
    y.reg >= 0 ? emit(vec(y.reg)) : emit(memory(y));
    return;
  }
  // AVX2 has == and > of integers.
  const int y = places_.in_register(b);
  const Xbyak::Ymm to = ymm(places_.take_over(id, {a, b}));
  const bool swapped = p == kLt || p == kGe;
  const Xbyak::Ymm first = ymm(swapped ? y : x), second = ymm(swapped ? x : y);
  if (p == kEq || p == kNe)
    wide_ ? vpcmpeqq(to, first, second) : vpcmpeqd(to, first, second);
  else
    wide_ ? vpcmpgtq(to, first, second) : vpcmpgtd(to, first, second);
  if (p == kNe || p == kLe || p == kGe) vxorps(to, to, at_constant(constant(~uint64_t{0})));
}

void Emitter::choose(Id id, const Code& n) {
  const Id m = value(n.args[0]), a = value(n.args[1]), b = value(n.args[2]);
  places_.hold({m, a, b});
  const int chooses = places_.in_register(m), y = places_.in_register(b);
  if (places_[id].mask) {  // (m & a) | (~m & b)
    const int x = places_.in_register(a);
    kandq(scratch_mask(), mask(chooses), mask(x));
    const int to = places_.take_over(id, {b});
    kandnq(mask(to), mask(chooses), mask(y));
    korq(mask(to), mask(to), scratch_mask());
    return;
  }
  make_readable(a);
  const Place x = places_[a];
  const int to = places_.take_over(id, {b, a});
  const auto emit = [&](const Operand& o) {
    if (avx512_)
      wide_ ? vblendmpd(vec(to) | mask(chooses), vec(y), o) : vblendmps(vec(to) | mask(chooses), vec(y), o);
    else
      wide_ ? vblendvpd(ymm(to), ymm(y), o, ymm(chooses)) : vblendvps(ymm(to), ymm(y), o, ymm(chooses));
  };
  if (x.reg < 0)
    emit(memory(x));
  else if (avx512_)
    emit(vec(x.reg));
  else
    emit(ymm(x.reg));
}

void Emitter::cast(Id id, const Code& n) {
  const Id a = value(n.args[0]);
  const Type from = e_[n.args[0]].type;
  places_.hold({a});
  const int x = places_.in_register(a);
  const int to = places_.take_over(id, {a});
  if (from == Type::Mask)
    one_or_zero(to, x, n.type);
  else if (n.type == Type::Mask)
    not_zero(to, x, from);
  else
    convert(to, x, from, n.type);
}

// An integer of 4 bytes is made of a float by way of one of 8, wrapping.
void Emitter::convert(int to, int from, Type was, Type type) {
  const bool was_wide = expr::item_size(was) == 8, is_wide = expr::item_size(type) == 8;
  if (is_floating(was) && is_floating(type)) {
    is_wide ? vcvtps2pd(wide(to), narrow(from)) : vcvtpd2ps(narrow(to), wide(from));
  } else if (is_floating(was)) {
    const int whole = is_wide ? to : scratch();
    was_wide ? vcvttpd2qq(wide(whole), wide(from)) : vcvttps2qq(wide(whole), narrow(from));
    if (!is_wide) vpmovqd(narrow(to), wide(whole));
  } else if (!is_floating(type)) {
    is_wide ? vpmovsxdq(wide(to), narrow(from)) : vpmovqd(narrow(to), wide(from));
  } else if (was_wide) {
    is_wide ? vcvtqq2pd(wide(to), wide(from)) : vcvtqq2ps(narrow(to), wide(from));
  } else {
    is_wide ? vcvtdq2pd(wide(to), narrow(from)) : vcvtdq2ps(narrow(to), narrow(from));
  }
}

void Emitter::not_zero(int to, int from, Type type) {
  of_type(type);
  const Xbyak::Address zero = at_constant(constant(0));
  if (avx512_ && is_floating(type)) {
    wide_ ? vcmppd(mask(to), vec(from), zero, kNe) : vcmpps(mask(to), vec(from), zero, kNe);
  } else if (avx512_) {
    wide_ ? vptestmq(mask(to), vec(from), vec(from)) : vptestmd(mask(to), vec(from), vec(from));
  } else if (is_floating(type)) {
    wide_ ? vcmppd(vec(to), vec(from), zero, kNe) : vcmpps(vec(to), vec(from), zero, kNe);
  } else {
    wide_ ? vpcmpeqq(vec(to), vec(from), zero) : vpcmpeqd(vec(to), vec(from), zero);
    vxorps(vec(to), vec(to), at_constant(constant(~uint64_t{0})));
  }
}

void Emitter::one_or_zero(int to, int from, Type type) {
  of_type(type);
  const uint64_t at = constant(one(type));
  if (!avx512_)
    vandps(vec(to), vec(from), at_constant(at));
  else if (wide_)
    vbroadcastsd(Xbyak::Ymm(Xbyak::Zmm(to)) | mask(from) | T_z, qword[r10 + at * 8]);
  else
    vbroadcastss(Xbyak::Ymm(Xbyak::Zmm(to)) | mask(from) | T_z, dword[r10 + at * 8]);
}

}  // namespace tenon::cpu::jit
