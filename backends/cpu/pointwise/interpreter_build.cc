#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/pointwise/interpreter.h"
#include "backends/cpu/pointwise/primitive_table.h"
#include "tenon/core/error.h"
#include "tenon/expr/function.h"
#include "tenon/expr/lower.h"
#include "tenon/expr/primitives.h"

namespace tenon::cpu {

using expr::Lane;
using expr::Lowered;
using expr::LoweredNode;
using expr::Op;

namespace {

constexpr uint32_t kNone = ~uint32_t{0};

uint16_t primitive_of(const LoweredNode& n, expr::ComputeType type) {
  const bool logic = expr::info(n.op).rule == expr::TypeRule::Bitwise && n.lane == Lane::Mask;
  const uint16_t number =
      expr::find_primitive({.op = n.op, .function = n.function, .type = type, .on_masks = logic});
  TENON_CHECK(
      number != expr::kNoPrimitive, Type,
      fmt::format("interpreter: `{}` is not for {}",
                  n.op == Op::Call ? expr::functions()[n.function].name : expr::info(n.op).name, name(type)));
  return number;
}

}  // namespace

// Turns lowered nodes, whose order is already one of execution, into instructions: places for values first,
// then the instructions over them. A register is free again after the last instruction that reads it.
class ProgramBuilder {
 public:
  ProgramBuilder(Program& program, const Lowered& e, size_t num_inputs)
      : p_(program), e_(e), place_(e.nodes.size(), 0), last_use_(e.nodes.size(), kNone) {
    p_.num_inputs_ = static_cast<uint16_t>(num_inputs);
    p_.num_outputs_ = static_cast<uint16_t>(e.outputs.size());
  }

  void build() {
    find_last_uses();
    choose_direct_outputs();
    // Constants and values over constants keep their registers for the whole call.
    for (uint32_t id = 0; id < e_.nodes.size(); ++id) {
      if (e_.nodes[id].uniform) place_[id] = take_register();
    }
    for (uint32_t id = 0; id < e_.nodes.size(); ++id) assign(id);
    // Registers are counted only now, and inputs and outputs come after them.
    p_.num_registers_ = next_register_;
    for (uint32_t id = 0; id < e_.nodes.size(); ++id) emit(id);
    for (size_t i = 0; i < e_.outputs.size(); ++i) {
      const uint32_t id = e_.outputs[i];
      if (direct_[i]) continue;
      p_.copies_.push_back({real_place(id), output_place(i)});
    }
  }

 private:
  static constexpr uint32_t kInputTag = 1u << 30, kOutputTag = 1u << 31;

  bool is_input(uint32_t id) const { return e_.nodes[id].op == Op::Symbol && !e_.nodes[id].scalar; }

  void find_last_uses() {
    for (uint32_t id = 0; id < e_.nodes.size(); ++id) {
      const LoweredNode& n = e_.nodes[id];
      for (int i = 0; i < n.arity; ++i) {
        last_use_[n.args[i]] = id;
        if (is_input(n.args[i])) last_input_read_ = id;
      }
    }
    for (uint32_t id : e_.outputs) {
      if (is_input(id)) last_input_read_ = kNone - 1;  // a copy at the end of the tile reads it
    }
  }

  // An output may be the same memory as an input: it is written in place only once no input is read any more.
  void choose_direct_outputs() {
    direct_.assign(e_.outputs.size(), false);
    for (size_t i = 0; i < e_.outputs.size(); ++i) {
      const uint32_t id = e_.outputs[i];
      const bool computed = e_.nodes[id].arity > 0 && !e_.nodes[id].uniform;
      const bool again = std::find(e_.outputs.begin(), e_.outputs.begin() + static_cast<long>(i), id) !=
                         e_.outputs.begin() + static_cast<long>(i);
      if (!computed || again) continue;
      if (id >= last_input_read_) {
        direct_[i] = true;
        place_[id] = kOutputTag | static_cast<uint32_t>(i);
      } else {
        last_use_[id] = kNone;  // kept until the copies at the end
      }
    }
  }

  uint16_t take_register() {
    if (!free_.empty()) {
      const uint16_t r = free_.back();
      free_.pop_back();
      return r;
    }
    TENON_CHECK(next_register_ < 0x3FFF, Value, "interpreter: the expression needs too many registers");
    return next_register_++;
  }

  void assign(uint32_t id) {
    const LoweredNode& n = e_.nodes[id];
    if (n.uniform) return;
    if (is_input(id)) {
      place_[id] = kInputTag | static_cast<uint32_t>(n.bits);
      return;
    }
    // Operands that die here may give their register to the result: primitives are safe in place.
    for (int i = 0; i < n.arity; ++i) {
      const uint32_t a = n.args[i];
      const bool first = std::find(n.args, n.args + i, a) == n.args + i;
      const bool in_register = !e_.nodes[a].uniform && (place_[a] & (kInputTag | kOutputTag)) == 0;
      if (first && in_register && last_use_[a] == id) free_.push_back(static_cast<uint16_t>(place_[a]));
    }
    if ((place_[id] & kOutputTag) == 0) place_[id] = take_register();
  }

  Program::Place real_place(uint32_t id) const {
    const uint32_t place = place_[id];
    if ((place & kOutputTag) != 0) return output_place(place & ~kOutputTag);
    if ((place & kInputTag) != 0)
      return static_cast<Program::Place>(p_.num_registers_ + (place & ~kInputTag));
    return static_cast<Program::Place>(place);
  }

  Program::Place output_place(size_t i) const {
    return static_cast<Program::Place>(p_.num_registers_ + p_.num_inputs_ + i);
  }

  void emit(uint32_t id) {
    const LoweredNode& n = e_.nodes[id];
    if (n.arity == 0) {
      if (n.uniform) p_.constants_.push_back({real_place(id), n.op == Op::Symbol, n.bits});
      return;
    }
    Program::Instruction instruction{
        .primitive = primitive_of(n, e_.type), .arity = n.arity, .to = real_place(id)};
    for (int i = 0; i < n.arity; ++i) instruction.from[i] = real_place(n.args[i]);
    for (int t = 0; t < kNumCpuTargets; ++t) {
      instruction.kernels[t] = primitive(instruction.primitive, static_cast<CpuTarget>(t));
    }
    (n.uniform ? p_.uniform_ : p_.body_).push_back(instruction);
  }

  Program& p_;
  const Lowered& e_;
  std::vector<uint32_t> place_, last_use_;
  std::vector<bool> direct_;
  std::vector<uint16_t> free_;
  uint16_t next_register_ = 0;
  uint32_t last_input_read_ = 0;
};

Program::Program(const expr::Graph& g, const expr::Kernel& kernel) : type_(kernel.type) {
  const Lowered lowered = expr::lower(g, kernel);
  ProgramBuilder(*this, lowered, kernel.inputs.size()).build();
}

std::string Program::to_string() const {
  const auto place = [this](Place p) {
    if (p < num_registers_) return fmt::format("r{}", p);
    const int i = p - num_registers_;
    return i < num_inputs_ ? fmt::format("in{}", i) : fmt::format("out{}", i - num_inputs_);
  };
  std::string text;
  for (const Constant& c : constants_) {
    text += c.is_scalar ? fmt::format("{} = scalar {}\n", place(c.to), c.bits_or_index)
                        : fmt::format("{} = 0x{:x}\n", place(c.to), c.bits_or_index);
  }
  for (const auto* list : {&uniform_, &body_}) {
    for (const Instruction& i : *list) {
      const expr::Primitive& p = expr::primitives()[i.primitive];
      text += fmt::format("{} = {}(", place(i.to),
                          p.op == Op::Call ? expr::functions()[p.function].name : expr::info(p.op).name);
      for (int a = 0; a < i.arity; ++a) text += fmt::format("{}{}", a > 0 ? ", " : "", place(i.from[a]));
      text += ")\n";
    }
  }
  for (const Copy& c : copies_) text += fmt::format("{} = {}\n", place(c.to), place(c.from));
  return text;
}

}  // namespace tenon::cpu
