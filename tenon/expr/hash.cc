#include "tenon/expr/hash.h"

#include <bit>
#include <cmath>

#include "tenon/expr/definition.h"
#include "tenon/expr/function.h"
#include "tenon/expr/mixer.h"

namespace tenon::expr {

namespace {

void add_slot(Mixer& m, const Slot& s) {
  m.add(uint64_t{static_cast<uint8_t>(s.dtype)} | uint64_t{static_cast<uint8_t>(s.rank)} << 8 |
        uint64_t{static_cast<uint8_t>(s.part)} << 16 | uint64_t{static_cast<uint8_t>(s.reduces)} << 24 |
        uint64_t{s.operand} << 32 | uint64_t{s.flags} << 48);
}

uint64_t literal_bits(const Node& n) {
  const bool open = n.type == Type::Open && (n.flags & Node::kWhole) == 0;
  if (n.type == Type::F32 && std::isnan(std::bit_cast<float>(static_cast<uint32_t>(n.bits))))
    return 0x7FC00000u;
  if ((n.type == Type::F64 || open) && std::isnan(std::bit_cast<double>(n.bits))) return 0x7FF8000000000000u;
  return n.bits;
}

void add_call(Mixer& m, const Node& n, Level level) {
  const Function& f = functions()[n.bits];
  m.add(f.name);
  if (level == Level::Written) {
    for (const std::string_view body :
         {f.body, f.body_float, f.body_f32, f.body_f64, f.body_int, f.short_form})
      m.add(body);
  } else if (f.runs_in(n.type)) {  // else it is no legal call
    m.add(definition(static_cast<uint16_t>(n.bits), n.type).key);
  }
}

}  // namespace

Key key_of(const ExpressionParts& p) {
  std::vector<Key> hashes(p.nodes.size());
  for (size_t id = 0; id < p.nodes.size(); ++id) {
    const Node& n = p.nodes[id];
    Mixer m;
    m.add(uint64_t{static_cast<uint8_t>(n.op)} | uint64_t{static_cast<uint8_t>(n.type)} << 8 |
          uint64_t{n.arity} << 16 | uint64_t{n.flags} << 24);
    if (n.op != Op::Call) m.add(n.op == Op::Literal ? literal_bits(n) : n.bits);
    for (int i = 0; i < n.arity && i < 3; ++i) {
      if (n.args[i] < id) m.add(hashes[n.args[i]]);
    }
    if (n.op == Op::Call && n.bits < functions().size()) {
      Node typed = n;
      // A mask has no width of its own: what it is made from has.
      if (n.type == Type::Mask && n.arity > 0 && n.args[0] < id) typed.type = p.nodes[n.args[0]].type;
      add_call(m, typed, p.level);
    }
    hashes[id] = m.take();
  }
  Mixer m;
  m.add(kKeyVersion);
  m.add(uint64_t{static_cast<uint8_t>(p.level)} | uint64_t{p.relaxed} << 8);
  for (const auto* list : {&p.inputs, &p.numbers, &p.outputs}) {
    m.add(uint64_t{list->size()});
    for (const Slot& s : *list) add_slot(m, s);
  }
  for (const Slot& s : p.outputs) {
    if (s.node < hashes.size()) m.add(hashes[s.node]);
  }
  return m.take();
}

}  // namespace tenon::expr
