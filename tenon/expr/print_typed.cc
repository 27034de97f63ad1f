#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tenon/expr/function.h"
#include "tenon/expr/typed_text.h"

namespace tenon::expr {

namespace {

template <class F>
std::string float_text(F value, uint64_t bits, uint64_t one_nan, Type type) {
  if (std::isnan(value))
    return bits == one_nan ? fmt::format("nan:{}", suffix(type))
                           : fmt::format("0x{:x}:{}", bits, suffix(type));
  if (std::isinf(value)) return fmt::format("{}inf:{}", value < 0 ? "-" : "", suffix(type));
  return fmt::format("{}:{}", value, suffix(type));  // the shortest that reads back
}

std::string literal_text(const Node& n) {
  switch (n.type) {
    case Type::Mask:
      return n.bits != 0 ? "true" : "false";
    case Type::F32:
      return float_text(std::bit_cast<float>(static_cast<uint32_t>(n.bits)), n.bits, 0x7FC00000u, n.type);
    case Type::F64:
      return float_text(std::bit_cast<double>(n.bits), n.bits, 0x7FF8000000000000u, n.type);
    case Type::I32:
      return fmt::format("{}:i32", static_cast<int32_t>(static_cast<uint32_t>(n.bits)));
    default:
      return fmt::format("{}:i64", static_cast<int64_t>(n.bits));
  }
}

class Printer {
 public:
  Printer(const Expression& e, std::span<const std::string_view> inputs,
          std::span<const std::string_view> numbers)
      : e_(e), inputs_(inputs), numbers_(numbers), uses_(e.num_nodes), text_(e.num_nodes) {}

  std::string print() {
    std::string out = e_.level == Level::Primitive ? "primitive; " : "";
    if (e_.relaxed) out += "relaxed; ";
    out += slots("in", e_.inputs());
    out += slots("number", e_.numbers());
    for (const Node& n : e_.nodes()) {
      for (int i = 0; i < n.arity; ++i) ++uses_[n.args[i]];
    }
    for (const Slot& s : e_.outputs()) ++uses_[s.node];
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      text_[id] = text(e_[id]);
      if (uses_[id] < 2 || e_[id].arity == 0) continue;
      const std::string name = fresh_name();
      out += fmt::format("let {} = {}; ", name, text_[id]);
      text_[id] = name;
    }
    for (size_t i = 0; i < e_.num_outputs; ++i) {
      const Slot& s = e_.outputs()[i];
      out += fmt::format("out{} {}: {}; ", place(e_.outputs(), i), tenon::name(s.dtype), text_[s.node]);
    }
    out.pop_back();
    return out;
  }

 private:
  // "@2.re" where a slot is not simply the next operand.
  static std::string place(std::span<const Slot> list, size_t i) {
    const Slot& s = list[i];
    const int next = i == 0 ? 0 : list[i - 1].operand + (list[i - 1].part == Part::Re ? 0 : 1);
    std::string text = s.operand == next ? "" : fmt::format("@{}", s.operand);
    if (s.part != Part::Whole) text += s.part == Part::Re ? ".re" : ".im";
    return text;
  }

  std::string fresh_name() {
    for (;;) {
      const std::string name = fmt::format("t{}", ++lets_);
      const auto taken = [&](auto names) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      if (!taken(inputs_) && !taken(numbers_)) return name;
    }
  }

  std::string name(bool number, size_t i) const {
    const auto names = number ? numbers_ : inputs_;
    return i < names.size() ? std::string(names[i]) : fmt::format("{}{}", number ? "n" : "x", i);
  }

  std::string slots(std::string_view word, std::span<const Slot> list) const {
    const bool number = word == "number";
    std::string text;
    for (size_t i = 0; i < list.size(); ++i) {
      text += fmt::format("{}{}{}: {}", i == 0 ? "" : ", ", name(number, i), place(list, i),
                          number ? suffix(carrier(list[i].dtype)) : tenon::name(list[i].dtype));
      constexpr std::string_view kRanks[] = {" number", " row", " column", ""};
      if (!number) text += kRanks[static_cast<int>(list[i].rank)];
    }
    return text.empty() ? "" : fmt::format("{} {}; ", word, text);
  }

  std::string text(const Node& n) const {
    switch (n.op) {
      case Op::Literal:
        return literal_text(n);
      case Op::Load:
        return name(false, n.bits);
      case Op::Number:
        return name(true, n.bits);
      default:
        break;
    }
    std::string args;
    for (int i = 0; i < n.arity; ++i) args += fmt::format("{}{}", i == 0 ? "" : ", ", text_[n.args[i]]);
    if (has_count(n.op)) args += fmt::format(", {}", n.bits);
    if (n.op == Op::Cast) return fmt::format("cast[{}]({})", suffix(n.type), args);
    if (n.op == Op::Reduce)
      return fmt::format("{}[row]({})", expr::name(static_cast<ReduceKind>(n.bits)), args);
    if (n.op == Op::Length || n.op == Op::Iota) return std::string(info(n.op).name);
    if (n.op == Op::RoundTo)
      return fmt::format("stored[{}]({})", tenon::name(static_cast<DType>(n.bits)), args);
    return fmt::format("{}({})", n.op == Op::Call ? functions()[n.bits].name : info(n.op).name, args);
  }

  const Expression& e_;
  std::span<const std::string_view> inputs_, numbers_;
  std::vector<uint32_t> uses_;
  std::vector<std::string> text_;
  int lets_ = 0;
};

}  // namespace

std::string to_string(const Expression& e, std::span<const std::string_view> inputs,
                      std::span<const std::string_view> numbers) {
  return Printer(e, inputs, numbers).print();
}

}  // namespace tenon::expr
