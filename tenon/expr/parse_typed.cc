#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <unordered_map>

#include "tenon/core/error.h"
#include "tenon/expr/builder.h"
#include "tenon/expr/function.h"
#include "tenon/expr/spec.h"
#include "tenon/expr/typed_text.h"

namespace tenon::expr {

namespace {

class TypedParser {
 public:
  explicit TypedParser(std::string_view text) : text_(text) {}

  ExpressionPtr parse() {
    parts_.level = Level::Typed;
    space();
    if (take_word("primitive")) parts_.level = Level::Primitive, expect(";");
    if (take_word("relaxed")) parts_.relaxed = true, expect(";");
    if (take_word("in")) slots(parts_.inputs, false);
    if (take_word("number")) slots(parts_.numbers, true);
    while (take_word("let")) {
      const std::string_view name = word();
      expect("=");
      const NodeId value = expression();
      if (!names_.emplace(name, value).second) fail("a name is given twice");
      expect(";");
    }
    while (take_word("out")) output();
    if (at_ < text_.size()) fail("expected `out` or the end");
    ExpressionPtr e = g_.finish(std::move(parts_));
    check(*e);
    return e;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw_error(ErrorKind::Value, fmt::format("expression: {} at column {}\n  {}\n  {:>{}}", what, at_ + 1,
                                              text_, '^', at_ + 1));
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    space();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("expected '{}'", token));
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string_view peek() const {
    size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  std::string_view word() {
    const std::string_view w = peek();
    if (w.empty()) fail("expected a name");
    at_ += w.size();
    space();
    return w;
  }
  bool take_word(std::string_view wanted) {
    if (peek() != wanted) return false;
    word();
    return true;
  }
  uint64_t integer() {
    const std::string_view w = word();
    uint64_t value = 0;
    const auto read = std::from_chars(w.data(), w.data() + w.size(), value);
    if (read.ec != std::errc() || read.ptr != w.data() + w.size()) fail("expected a whole number");
    return value;
  }

  void place(Slot& s, const std::vector<Slot>& list) {
    s.operand = static_cast<uint16_t>(
        list.empty() ? 0 : list.back().operand + (list.back().part == Part::Re ? 0 : 1));
    if (take("@")) s.operand = static_cast<uint16_t>(integer());
    if (take(".")) {
      const std::string_view part = word();
      if (part != "re" && part != "im") fail("a part is re or im");
      s.part = part == "re" ? Part::Re : Part::Im;
    }
  }

  DType dtype_name() {
    const auto d = parse_dtype(word());
    if (!d) fail("expected a dtype");
    return *d;
  }

  void slots(std::vector<Slot>& list, bool number) {
    do {
      Slot s{.rank = number ? Rank::Number : Rank::Element};
      const std::string_view name = word();
      place(s, list);
      expect(":");
      Type type;
      if (number) {
        type = parse_suffix(word());
        if (!is_compute_type(type)) fail("expected f32, f64, i32 or i64");
        s.dtype = dtype(type);
      } else {
        s.dtype = dtype_name();
        type = carrier(s.dtype);
        if (take_word("number")) s.rank = Rank::Number;
        if (take_word("row")) s.rank = Rank::Row;
        if (take_word("column")) s.rank = Rank::Column;
      }
      const NodeId id = g_.add({.op = number ? Op::Number : Op::Load,
                                .type = type,
                                .flags = static_cast<uint8_t>(s.rank),
                                .bits = list.size()});
      if (!names_.emplace(name, id).second) fail("a name is given twice");
      list.push_back(s);
    } while (take(","));
    expect(";");
  }

  void output() {
    Slot s;
    place(s, parts_.outputs);
    s.dtype = dtype_name();
    expect(":");
    s.node = expression();
    s.rank = g_[s.node].rank();
    parts_.outputs.push_back(s);
    expect(";");
  }

  NodeId expression() {
    if (++depth_ > 256) fail("nested too deeply");
    const NodeId id = operand();
    --depth_;
    return id;
  }

  NodeId operand() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("-") || (!rest.empty() && rest[0] >= '0' && rest[0] <= '9')) return literal();
    const std::string_view name = peek();
    if (name == "nan" || name == "inf") return literal();
    word();
    if (name == "true" || name == "false")
      return g_.add({.op = Op::Literal, .type = Type::Mask, .bits = name == "true" ? 1u : 0u});
    if (take("[")) return converted(name);
    if (take("(")) return call(name);
    const auto known = names_.find(name);
    if (known == names_.end() && name == "length") return g_.length();
    if (known == names_.end() && name == "position") return g_.position();
    if (known == names_.end()) fail(fmt::format("unknown name '{}'", name));
    return known->second;
  }

  // sum[row](x): not the call of an operation of the same name.
  NodeId reduced(std::string_view name) {
    Node n{.op = Op::Reduce};
    for (int k = 0; k < kNumReduceKinds; ++k) {
      const auto kind = static_cast<ReduceKind>(k);
      if (name != expr::name(kind)) continue;
      expect("]");
      expect("(");
      do {
        if (n.arity == 2) fail("too many operands");
        n.args[n.arity++] = expression();
      } while (take(","));
      expect(")");
      n.type = gives_place(kind) ? Type::I64 : g_[n.args[n.arity - 1]].type;
      n.bits = static_cast<uint64_t>(k);
      return g_.add(n);
    }
    fail("expected sum[row], ..., prod_im[row]");
  }

  NodeId converted(std::string_view name) {
    if (take_word("row")) return reduced(name);
    Node n{.arity = 1};
    if (name == "cast") {
      n.op = Op::Cast;
      n.type = parse_suffix(word());
      if (n.type == Type::Open) fail("expected a type");
    } else if (name == "stored") {
      n.op = Op::RoundTo;
      const DType d = dtype_name();
      n.bits = static_cast<uint64_t>(d);
      n.type = carrier(d);
    } else {
      fail("expected cast[..] or stored[..]");
    }
    expect("]");
    expect("(");
    n.args[0] = expression();
    expect(")");
    return g_.add(n);
  }

  NodeId call(std::string_view name) {
    Node n;
    const uint16_t function = find_function(name);
    if (function != kNoFunction) {
      n.op = Op::Call;
      n.bits = function;
    } else {
      for (int i = 0; i < kNumOps && n.op == Op::Literal; ++i) {
        const OpInfo& row = info(static_cast<Op>(i));
        if (row.name == name && row.rule != TypeRule::Leaf && row.rule != TypeRule::Convert) n.op = row.op;
      }
      if (n.op == Op::Literal) fail(fmt::format("unknown operation '{}'", name));
    }
    do {
      if (has_count(n.op) && n.arity == 1) {
        n.bits = integer();
        break;
      }
      if (n.arity == 3) fail("too many operands");
      n.args[n.arity++] = expression();
    } while (take(","));
    expect(")");
    const Type t = g_[n.args[n.op == Op::Where && n.arity == 3 ? 1 : 0]].type;
    const TypeRule rule = info(n.op).rule;
    n.type = rule == TypeRule::Compare || (n.op == Op::Call && functions()[n.bits].mask) ? Type::Mask
             : rule == TypeRule::ToBits                                                  ? pattern_of(t)
             : rule == TypeRule::FromBits ? (t == Type::I32 ? Type::F32 : Type::F64)
                                          : t;
    return g_.add(n);
  }

  NodeId literal() {
    const size_t end = text_.find(':', at_);
    if (end == std::string_view::npos) fail("a literal needs its type, as 0.5:f32");
    std::string_view digits = text_.substr(at_, end - at_);
    const size_t begin = at_;
    at_ = end + 1;
    const Type type = parse_suffix(word());
    const size_t after = at_;
    at_ = begin;
    Node n{.op = Op::Literal, .type = type};
    const auto read = [&](auto value, auto... how) {
      const auto got = std::from_chars(digits.data(), digits.data() + digits.size(), value, how...);
      if (got.ec != std::errc() || got.ptr != digits.data() + digits.size()) fail("malformed literal");
      return value;
    };
    if (digits.starts_with("0x")) {
      digits.remove_prefix(2);
      n.bits = read(uint64_t{0}, 16);
    } else if (type == Type::F32) {
      n.bits = digits == "nan" ? 0x7FC00000u : std::bit_cast<uint32_t>(read(0.0f));
    } else if (type == Type::F64) {
      n.bits = digits == "nan" ? 0x7FF8000000000000u : std::bit_cast<uint64_t>(read(0.0));
    } else if (type == Type::I32) {
      n.bits = static_cast<uint32_t>(read(int32_t{0}));
    } else if (type == Type::I64) {
      n.bits = static_cast<uint64_t>(read(int64_t{0}));
    } else {
      fail("a literal is of f32, f64, i32 or i64");
    }
    at_ = after;
    return g_.add(n);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Builder g_;
  ExpressionParts parts_;
  std::unordered_map<std::string_view, NodeId> names_;
};

}  // namespace

ExpressionPtr parse_typed(std::string_view text) { return TypedParser(text).parse(); }

}  // namespace tenon::expr
