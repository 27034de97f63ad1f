#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "backends/cpu/pointwise/conversion.h"
#include "backends/cpu/pointwise/interpreter.h"
#include "backends/cpu/pointwise/primitive_table.h"
#include "tenon/core/error.h"
#include "tenon/expr/function.h"
#include "tenon/expr/primitives.h"
#include "tenon/expr/scalar.h"

namespace tenon::cpu {

using expr::Expression;
using expr::Node;
using expr::NodeId;
using expr::Op;
using expr::Type;

namespace {

constexpr uint32_t kNone = ~uint32_t{0};

// One value of a program: a constant, an input, or what an instruction makes.
struct Step {
  enum class Kind : uint8_t { Constant, Number, Input, Primitive, Conversion };
  Kind kind = Kind::Constant;
  bool uniform = false;  // the same in all elements of a call
  uint8_t arity = 0;
  uint8_t item_size = 4;
  uint16_t primitive = 0;
  uint32_t args[3] = {};
  uint64_t bits = 0;  // of a constant; the slot of a number or an input
  const cpu::Conversion* conversion = nullptr;
};

// Turns nodes into steps, in an order of execution. A mask is a number, 1 or 0, of the type that it was made
// in, and is converted where another type asks for it.
class Steps {
 public:
  explicit Steps(const Expression& e)
      : e_(e), value_(e.num_nodes, kNone), mask_type_(e.num_nodes, Type::F32) {
    for (const Node& n : e.nodes()) {
      if (!is_compute_type(n.type)) continue;
      any_type_ = n.type;
      break;
    }
    steps.reserve(e.num_nodes);
    for (NodeId id = 0; id < e.num_nodes; ++id) value_[id] = make(id);
    for (const expr::Slot& s : e.outputs()) {
      const DType held = e[s.node].type == Type::Mask ? dtype(mask_type_[s.node]) : dtype(e[s.node].type);
      // Another output may be the memory of an input that is stored as it is: it is copied before any is
      // written.
      const bool input = steps[value_[s.node]].kind == Step::Kind::Input && e.num_outputs > 1;
      outputs.push_back(input ? converted(value_[s.node], held, held) : value_[s.node]);
      output_conversions.push_back(held == real_dtype(s.dtype) ? nullptr
                                                               : convert(held, real_dtype(s.dtype)));
    }
  }

  std::vector<Step> steps;
  std::vector<uint32_t> outputs;
  std::vector<const Conversion*> output_conversions;  // null: stored as it is

 private:
  uint32_t add(Step s) {
    s.uniform = s.kind == Step::Kind::Constant || s.kind == Step::Kind::Number || s.arity > 0;
    for (int i = 0; i < s.arity; ++i) s.uniform = s.uniform && steps[s.args[i]].uniform;
    steps.push_back(s);
    return static_cast<uint32_t>(steps.size() - 1);
  }

  static const Conversion* convert(DType from, DType to) {
    const Conversion* c = conversion(from, to);
    TENON_CHECK(
        c, NotImplemented,
        fmt::format("interpreter: no conversion between {} and {}", tenon::name(from), tenon::name(to)));
    return c;
  }

  uint32_t converted(uint32_t step, DType from, DType to) {
    return add({.kind = Step::Kind::Conversion,
                .arity = 1,
                .item_size = static_cast<uint8_t>(tenon::item_size(to)),
                .args = {step},
                .conversion = convert(from, to)});
  }

  uint32_t constant(uint64_t bits, Type type) {
    return add({.item_size = static_cast<uint8_t>(item_size(type)), .bits = bits});
  }

  // The value of a node; of a mask, as 1 and 0 of `type`.
  uint32_t operand(NodeId id, Type type) {
    if (e_[id].type != Type::Mask || mask_type_[id] == type) return value_[id];
    uint32_t& known = masks_.try_emplace({id, type}, kNone).first->second;
    if (known == kNone) known = converted(value_[id], dtype(mask_type_[id]), dtype(type));
    return known;
  }

  uint32_t make(NodeId id) {
    const Node& n = e_[id];
    const bool mask = n.type == Type::Mask;
    if (mask) mask_type_[id] = any_type_;
    switch (n.op) {
      case Op::Literal:
        return mask ? constant(expr::convert_scalar(n.bits, Type::Mask, any_type_), any_type_)
                    : constant(n.bits, n.type);
      case Op::Number:
        return add({.kind = Step::Kind::Number,
                    .item_size = static_cast<uint8_t>(item_size(n.type)),
                    .bits = n.bits});
      case Op::Load:
        return load(n);
      case Op::Cast:
        return cast(id, n);
      case Op::RoundTo: {
        const auto d = static_cast<DType>(n.bits);
        return converted(converted(value_[n.args[0]], dtype(n.type), d), d, dtype(n.type));
      }
      default:
        return operation(id, n);
    }
  }

  uint32_t load(const Node& n) {
    const DType stored = real_dtype(e_.inputs()[n.bits].dtype);
    const uint32_t input = add({.kind = Step::Kind::Input, .bits = n.bits});
    const DType held = dtype(n.type == Type::Mask ? any_type_ : n.type);
    return stored == held ? input : converted(input, stored, held);
  }

  uint32_t cast(NodeId id, const Node& n) {
    const NodeId from = n.args[0];
    if (e_[from].type == Type::Mask) return operand(from, n.type);
    const Type type = e_[from].type;
    if (n.type != Type::Mask) return converted(value_[from], dtype(type), dtype(n.type));
    mask_type_[id] = type;
    const uint32_t zero = constant(0, type);
    return primitive({.op = Op::Ne, .type = type}, n, {value_[from], zero});
  }

  uint32_t operation(NodeId id, const Node& n) {
    // The type that a primitive computes in, and that its masks have.
    Type type = n.type;
    for (int i = 0; i < n.arity && !is_compute_type(type); ++i) type = e_[n.args[i]].type;
    for (int i = 0; i < n.arity && !is_compute_type(type); ++i) type = mask_type_[n.args[i]];
    const bool logic = expr::info(n.op).rule == expr::TypeRule::Bitwise && n.type == Type::Mask;
    if (n.type == Type::Mask) mask_type_[id] = type;
    uint32_t args[3] = {};
    for (int i = 0; i < n.arity; ++i) args[i] = operand(n.args[i], type);
    return primitive({.op = n.op,
                      .function = static_cast<uint16_t>(n.op == Op::Call ? n.bits : 0),
                      .type = type,
                      .on_masks = logic},
                     n, {args[0], args[1], args[2]});
  }

  uint32_t primitive(const expr::Primitive& wanted, const Node& n, const std::array<uint32_t, 3>& args) {
    const uint16_t number = expr::find_primitive(wanted);
    TENON_CHECK(number != expr::kNoPrimitive, NotImplemented,
                fmt::format("interpreter: `{}` of {} is for definitions alone",
                            n.op == Op::Call ? expr::functions()[n.bits].name : expr::info(n.op).name,
                            suffix(wanted.type)));
    return add({.kind = Step::Kind::Primitive,
                .arity = n.op == Op::Cast ? uint8_t{2} : n.arity,
                .item_size = static_cast<uint8_t>(item_size(wanted.type)),
                .primitive = number,
                .args = {args[0], args[1], args[2]}});
  }

  const Expression& e_;
  std::vector<uint32_t> value_;
  std::vector<Type> mask_type_;
  std::map<std::pair<NodeId, Type>, uint32_t> masks_;
  Type any_type_ = Type::F32;
};

}  // namespace

// Turns steps into instructions: places for values first, then the instructions over them. A register is free
// again after the last instruction that reads it.
class ProgramBuilder {
 public:
  ProgramBuilder(Program& program, const Expression& e, const Steps& s)
      : p_(program), s_(s.steps), steps_(s), place_(s_.size(), 0), last_use_(s_.size(), kNone) {
    p_.num_inputs_ = e.num_inputs;
    p_.num_outputs_ = e.num_outputs;
    for (const auto& list : {e.inputs(), e.outputs()}) {
      for (const expr::Slot& slot : list)
        // Nothing is read where nothing is used: the part of a complex operand, say.
        p_.item_sizes_.push_back(
            slot.node == expr::kNoNode ? 0 : static_cast<uint8_t>(tenon::item_size(real_dtype(slot.dtype))));
    }
    for (const uint8_t size : p_.item_sizes_) p_.register_item_size_ = std::max(p_.register_item_size_, size);
    for (const Step& step : s_) p_.register_item_size_ = std::max(p_.register_item_size_, step.item_size);
  }

  void build(size_t tile) {
    find_last_uses();
    choose_direct_outputs();
    // Constants and values over constants keep their registers for the whole call.
    for (uint32_t id = 0; id < s_.size(); ++id) {
      if (s_[id].uniform) place_[id] = take_register();
    }
    const uint16_t num_uniform = next_register_;
    for (uint32_t id = 0; id < s_.size(); ++id) assign(id);
    // Registers are counted only now, and inputs and outputs come after them.
    p_.num_registers_ = next_register_;
    p_.tile_ = tile ? (tile + Program::kGranule - 1) / Program::kGranule * Program::kGranule
                    : tile_for(static_cast<size_t>(next_register_ - num_uniform) * p_.register_item_size_);
    for (uint32_t id = 0; id < s_.size(); ++id) emit(id);
    p_.uniform_elements_ = Program::kGranule;
    for (size_t i = 0; i < steps_.outputs.size(); ++i) {
      // What is copied to an output must fill a tile.
      if (s_[steps_.outputs[i]].uniform) p_.uniform_elements_ = p_.tile_;
      if (direct_[i]) continue;
      p_.stores_.push_back({real_place(steps_.outputs[i]), output_place(i), steps_.output_conversions[i]});
    }
  }

 private:
  static constexpr uint32_t kInputTag = 1u << 30, kOutputTag = 1u << 31;

  // Each instruction is a call, so that longer tiles are faster, as long as those that it takes turns with
  // stay in the cache next to what is read and written.
  static size_t tile_for(size_t bytes_of_an_element) {
    constexpr size_t kBytes = size_t{16} << 10, kLeast = 256, kMost = 1024;
    const size_t fit = kBytes / std::max<size_t>(bytes_of_an_element, 1);
    return std::clamp(fit / kLeast * kLeast, kLeast, kMost);
  }

  bool is_input(uint32_t id) const { return s_[id].kind == Step::Kind::Input; }

  void find_last_uses() {
    for (uint32_t id = 0; id < s_.size(); ++id) {
      for (int i = 0; i < s_[id].arity; ++i) {
        last_use_[s_[id].args[i]] = id;
        if (is_input(s_[id].args[i])) last_input_read_ = id;
      }
    }
    for (uint32_t id : steps_.outputs) {
      if (is_input(id)) last_input_read_ = kNone - 1;  // a copy at the end of the tile reads it
    }
  }

  // An output may be the same memory as an input: it is written in place only once no input is read any more.
  void choose_direct_outputs() {
    const auto& outputs = steps_.outputs;
    direct_.assign(outputs.size(), false);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const uint32_t id = outputs[i];
      const bool computed = s_[id].arity > 0 && !s_[id].uniform;
      const auto end = outputs.begin() + static_cast<long>(i);
      if (!computed) continue;
      const bool again = std::find(outputs.begin(), end, id) != end;
      if (!again && !steps_.output_conversions[i] && id >= last_input_read_) {
        direct_[i] = true;
        place_[id] = kOutputTag | static_cast<uint32_t>(i);
      } else if (!again || (place_[id] & kOutputTag) == 0) {
        last_use_[id] = kNone;  // kept until the stores at the end
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
    const Step& n = s_[id];
    if (n.uniform) return;
    if (is_input(id)) {
      place_[id] = kInputTag | static_cast<uint32_t>(n.bits);
      return;
    }
    // Operands that die here may give their register to the result: primitives are safe in place. Conversions
    // are not, where the sizes differ.
    const bool in_place = n.kind == Step::Kind::Primitive;
    if (in_place) free_operands(id);
    if ((place_[id] & kOutputTag) == 0) place_[id] = take_register();
    if (!in_place) free_operands(id);
  }

  void free_operands(uint32_t id) {
    const Step& n = s_[id];
    for (int i = 0; i < n.arity; ++i) {
      const uint32_t a = n.args[i];
      const bool first = std::find(n.args, n.args + i, a) == n.args + i;
      const bool in_register = !s_[a].uniform && (place_[a] & (kInputTag | kOutputTag)) == 0;
      if (first && in_register && last_use_[a] == id) free_.push_back(static_cast<uint16_t>(place_[a]));
    }
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
    const Step& n = s_[id];
    if (n.arity == 0) {
      if (n.uniform)
        p_.constants_.push_back({real_place(id), n.kind == Step::Kind::Number, n.item_size, n.bits});
      return;
    }
    Program::Instruction instruction{.number = n.primitive, .arity = n.arity, .to = real_place(id)};
    for (int i = 0; i < n.arity; ++i) {
      instruction.from[i] = real_place(n.args[i]);
      if (!n.uniform && s_[n.args[i]].uniform) instruction.repeated |= 2u << i;
    }
    if (n.kind == Step::Kind::Conversion) {
      instruction.converts = true;
      instruction.context = n.conversion;
      std::fill(std::begin(instruction.kernels), std::end(instruction.kernels), &run_conversion);
    } else {
      for (int t = 0; t < kNumCpuTargets; ++t)
        instruction.kernels[t] = primitive(n.primitive, static_cast<CpuTarget>(t));
    }
    (n.uniform ? p_.uniform_ : p_.body_).push_back(instruction);
  }

  Program& p_;
  const std::vector<Step>& s_;
  const Steps& steps_;
  std::vector<uint32_t> place_, last_use_;
  std::vector<bool> direct_;
  std::vector<uint16_t> free_;
  uint16_t next_register_ = 0;
  uint32_t last_input_read_ = 0;
};

Program::Program(const Expression& e, size_t tile) {
  TENON_CHECK(e.level != expr::Level::Written, Internal, "interpreter: a typed expression was expected");
  const Steps steps(e);
  ProgramBuilder(*this, e, steps).build(tile);
}

std::string Program::to_string() const {
  const auto place = [this](Place p) {
    if (p < num_registers_) return fmt::format("r{}", p);
    const int i = p - num_registers_;
    return i < num_inputs_ ? fmt::format("in{}", i) : fmt::format("out{}", i - num_inputs_);
  };
  const auto conversion_name = [](const void* context) {
    const auto& c = *static_cast<const Conversion*>(context);
    return fmt::format("convert[{}, {}]", tenon::name(c.from), tenon::name(c.to));
  };
  const auto primitive_name = [](uint16_t number) {
    const expr::Primitive& p = expr::primitives()[number];
    return std::string(p.op == Op::Call ? expr::functions()[p.function].name : expr::info(p.op).name);
  };
  std::string text;
  for (const Constant& c : constants_) {
    text += c.is_number ? fmt::format("{} = number {}\n", place(c.to), c.bits_or_index)
                        : fmt::format("{} = 0x{:x}\n", place(c.to), c.bits_or_index);
  }
  for (const auto* list : {&uniform_, &body_}) {
    for (const Instruction& i : *list) {
      text += fmt::format("{} = {}(", place(i.to),
                          i.converts ? conversion_name(i.context) : primitive_name(i.number));
      for (int a = 0; a < i.arity; ++a) text += fmt::format("{}{}", a > 0 ? ", " : "", place(i.from[a]));
      text += ")\n";
    }
  }
  for (const Store& s : stores_) {
    text += s.conversion
                ? fmt::format("{} = {}({})\n", place(s.to), conversion_name(s.conversion), place(s.from))
                : fmt::format("{} = {}\n", place(s.to), place(s.from));
  }
  return text;
}

}  // namespace tenon::cpu
