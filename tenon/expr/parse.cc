#include "tenon/expr/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>

#include "tenon/core/error.h"
#include "tenon/expr/function.h"
#include "tenon/schema/edit_distance.h"

namespace tenon::expr {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

struct InfixOp {
  std::string_view text;
  Op op;
  int precedence;
};
// Longest first, so that `<=` is not read as `<`.
constexpr InfixOp kInfix[] = {
    {"==", Op::Eq, 4}, {"!=", Op::Ne, 4}, {"<=", Op::Le, 4}, {">=", Op::Ge, 4}, {"<", Op::Lt, 4},
    {">", Op::Gt, 4},  {"|", Op::Or, 1},  {"^", Op::Xor, 2}, {"&", Op::And, 3}, {"+", Op::Add, 5},
    {"-", Op::Sub, 5}, {"*", Op::Mul, 6}, {"/", Op::Div, 6},
};
constexpr int kComparison = 4;
// Deeper nesting than anyone writes; keeps hostile text from exhausting the stack.
constexpr int kMaxDepth = 256;
constexpr size_t kMaxText = 8192;

// Ops that only definitions may use: what they see differs between compute types.
bool is_bit_pattern(TypeRule rule) {
  return rule == TypeRule::ToBits || rule == TypeRule::FromBits || rule == TypeRule::BitShift ||
         rule == TypeRule::Part;
}

bool is_called(TypeRule rule) {
  return rule != TypeRule::Leaf && rule != TypeRule::Convert && rule != TypeRule::Row &&
         rule != TypeRule::Reserved;
}

struct CastName {
  std::string_view text;
  Type type;
};
constexpr CastName kCasts[] = {{"same", Type::Same},   {"wide", Type::Wide}, {"float32", Type::F32},
                               {"float64", Type::F64}, {"int32", Type::I32}, {"int64", Type::I64},
                               {"bool", Type::Mask}};

Type cast_named(std::string_view text) {
  for (const CastName& c : kCasts) {
    if (c.text == text) return c.type;
  }
  return Type::Open;
}

class Parser {
 public:
  Parser(Builder& g, std::string_view text, std::span<const Binding> names, bool internal, bool rows)
      : g_(g), text_(text), names_(names.begin(), names.end()), internal_(internal), rows_(rows) {}

  NodeId program() {
    skip_space();
    definitions();
    const NodeId root = expression(0);
    if (pos_ < text_.size()) fail(fmt::format("unexpected '{}'", text_[pos_]), pos_);
    return root;
  }

 private:
  void definitions() {
    for (;;) {
      if (take_word("let"))
        definition();
      else if (internal_ && take_word("for"))
        repeated();
      else
        return;
    }
  }

  void definition() {
    const size_t at = pos_;
    const std::string_view name = word();
    if (name.empty()) fail("expected a name after `let`", at);
    expect("=");
    const NodeId value = expression(0);
    expect(";");
    names_.push_back({name, value});
  }

  // for k = 1 to 9 { let s = s + k; }: the definitions in braces, once for each k, upward or downward.
  void repeated() {
    const std::string_view name = word();
    expect("=");
    const int64_t first = whole_number();
    if (!take_word("to")) fail("expected `to`", pos_);
    const int64_t last = whole_number();
    expect("{");
    const size_t body = pos_;
    const int64_t step = first <= last ? 1 : -1;
    for (int64_t k = first; k != last + step; k += step) {
      pos_ = body;
      names_.push_back({name, g_.literal(k)});
      definitions();
    }
    expect("}");
  }

  int64_t whole_number() {
    const size_t at = pos_;
    const NodeId node = literal(false);
    if (!g_.literal_of(node).integer) fail("expected a whole number", at);
    return g_.literal_of(node).i;
  }

  [[noreturn]] void fail(const std::string& what, size_t at) const {
    // Definitions span lines: show the one that the column is in.
    const size_t begin = at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;
    const size_t end = std::min(text_.find('\n', at), text_.size());
    const std::string_view line = text_.substr(begin, end - begin);
    throw_error(ErrorKind::Value, fmt::format("expression: {} at column {}\n  {}\n  {:>{}}", what,
                                              at - begin + 1, line, '^', at - begin + 1));
  }

  void skip_space() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }

  bool take(std::string_view token) {
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    skip_space();
    return true;
  }

  void expect(std::string_view token) {
    if (take(token)) return;
    fail(pos_ < text_.size() ? fmt::format("expected '{}', got '{}'", token, text_[pos_])
                             : fmt::format("expected '{}', got the end", token),
         pos_);
  }

  std::string_view peek_word() const {
    size_t end = pos_;
    if (end < text_.size() && is_name_start(text_[end])) {
      while (end < text_.size() && is_name(text_[end])) ++end;
    }
    return text_.substr(pos_, end - pos_);
  }

  std::string_view word() {
    const std::string_view w = peek_word();
    pos_ += w.size();
    skip_space();
    return w;
  }

  bool take_word(std::string_view wanted) {
    if (peek_word() != wanted) return false;
    word();
    return true;
  }

  const InfixOp* peek_infix() const {
    const std::string_view rest = text_.substr(pos_);
    if (rest.starts_with("**")) return nullptr;
    for (const InfixOp& op : kInfix) {
      if (rest.starts_with(op.text)) return &op;
    }
    return nullptr;
  }

  NodeId expression(int lowest) {
    if (++depth_ > kMaxDepth) fail("nested too deeply", pos_);
    NodeId left = unary();
    for (const InfixOp* op = peek_infix(); op != nullptr && op->precedence > lowest; op = peek_infix()) {
      take(op->text);
      const NodeId right = expression(op->precedence);
      left = g_.make(op->op, {left, right});
      const InfixOp* next = peek_infix();
      if (op->precedence == kComparison && next != nullptr && next->precedence == kComparison) {
        fail("comparisons do not chain; use (a < b) & (b < c)", pos_);
      }
    }
    --depth_;
    return left;
  }

  NodeId unary() {
    if (++depth_ > kMaxDepth) fail("nested too deeply", pos_);
    NodeId result;
    if (take("-")) {
      // A minus before a literal is part of it, so that -0.0 and -9223372036854775808 can be written.
      const bool number = pos_ < text_.size() && (is_digit(text_[pos_]) || text_[pos_] == '.');
      result = number ? negative_number() : g_.make(Op::Neg, {unary()});
    } else if (take("~")) {
      result = g_.make(Op::Not, {unary()});
    } else if (take("!")) {
      result = g_.make(Op::Not, {g_.as_mask(unary())});
    } else {
      result = power(primary());
    }
    --depth_;
    return result;
  }

  NodeId negative_number() {
    const size_t at = pos_;
    const NodeId value = literal(true);
    if (!text_.substr(pos_).starts_with("**")) return value;
    pos_ = at;  // -2 ** 2 is -(2 ** 2)
    return g_.make(Op::Neg, {power(literal(false))});
  }

  NodeId power(NodeId base) {
    if (!take("**")) return base;
    return g_.call("pow", {base, unary()});
  }

  NodeId primary() {
    const size_t at = pos_;
    if (pos_ == text_.size()) fail("expected an operand, got the end", at);
    if (is_digit(text_[pos_]) || text_[pos_] == '.') return literal(false);
    if (take("(")) {
      const NodeId inner = expression(0);
      expect(")");
      return inner;
    }
    const std::string_view name = word();
    if (name.empty()) fail(fmt::format("unexpected '{}'", text_[at]), at);
    if (take("(")) return name == "given" ? given() : call(name, at);
    for (size_t i = names_.size(); i-- > 0;) {
      if (names_[i].name == name) return names_[i].node;
    }
    if (name == "inf") return g_.literal(std::numeric_limits<double>::infinity());
    if (name == "nan") return g_.literal(std::numeric_limits<double>::quiet_NaN());
    if (name == "pi") return g_.literal(std::numbers::pi);
    if (rows_ && name == "length") return g_.length();
    if (rows_ && name == "position") return g_.position();
    fail_unknown("name", name, at, false);
  }

  NodeId call(std::string_view name, size_t at) {
    std::vector<NodeId> args;
    if (!take(")")) {
      do args.push_back(expression(0));
      while (take(","));
      expect(")");
    }
    const auto check_count = [&](size_t arity) {
      if (args.size() != arity) {
        fail(fmt::format("`{}` takes {} argument{}, got {}", name, arity, arity == 1 ? "" : "s", args.size()),
             at);
      }
    };
    if (rows_) {
      const NodeId of_row = row_call(name, args);
      if (of_row != kNoNode) return of_row;
    }
    if (name == "poly") return polynomial(args, at);
    if (name == "stored") return stored(args, at);
    if (const Type to = cast_named(name); to != Type::Open) {
      check_count(1);
      return g_.cast(to, args[0]);
    }
    const uint16_t function = find_function(name);
    if (function != kNoFunction && (internal_ || !functions()[function].internal)) {
      check_count(functions()[function].arity);
      return g_.call(name, args);
    }
    for (int i = 0; i < kNumOps; ++i) {
      const OpInfo& row = info(static_cast<Op>(i));
      if (!is_called(row.rule) || row.name != name || (is_bit_pattern(row.rule) && !internal_)) continue;
      check_count(row.arity);
      return g_.make(row.op, args);
    }
    fail_unknown("function", name, at, true);
  }

  // Reducers, by their name and count of operands: max(x, y) is the operation, max(x) the largest of the row.
  NodeId row_call(std::string_view name, std::span<const NodeId> args) {
    for (int k = 0; k < kNumReduceKinds; ++k) {
      const auto kind = static_cast<ReduceKind>(k);
      if (name == expr::name(kind) && args.size() == static_cast<size_t>(num_operands(kind)))
        return g_.reduce(kind, args);
    }
    if (name == "hold" && args.size() == 1) return g_.hold(args[0]);
    if (name == "mean" && args.size() == 1) {
      const NodeId sum = g_.reduce(ReduceKind::Sum, {args[0]});
      return g_.make(Op::Div, {sum, g_.cast(g_[sum].type, g_.length())});
    }
    // The element at a place.
    if (name == "at" && args.size() == 2)
      return g_.reduce(ReduceKind::First, {g_.make(Op::Eq, {g_.position(), args[1]}), args[0]});
    return kNoNode;
  }

  // given(name): whether the call brings that operand.
  NodeId given() {
    const size_t at = pos_;
    const std::string_view name = word();
    const bool known = std::any_of(names_.begin(), names_.end(),
                                   [&](const Binding& b) { return b.name == name && g_.is_symbol(b.node); });
    if (!known) fail("`given` takes the name of an operand", at);
    expect(")");
    return g_.given(name);
  }

  // stored(x), stored(x, operand): as the result's dtype, or the operand's, stores it.
  NodeId stored(std::span<const NodeId> args, size_t at) {
    if (args.empty() || args.size() > 2)
      fail(fmt::format("`stored` takes 1 or 2 arguments, got {}", args.size()), at);
    if (args.size() == 1) return g_.stored(args[0]);
    if (g_[args[1]].op != Op::Load) fail("`stored` rounds as a tensor operand is stored; name one", at);
    return g_.stored(args[0], args[1]);
  }

  // poly(x, c0, c1, c2) is c0 + x * (c1 + x * c2), by fused multiply-adds.
  NodeId polynomial(std::span<const NodeId> args, size_t at) {
    if (args.size() < 3) fail("`poly` takes a variable and at least two coefficients", at);
    NodeId sum = args.back();
    for (size_t i = args.size() - 2; i >= 1; --i) sum = g_.make(Op::Fma, {sum, args[0], args[i]});
    return sum;
  }

  [[noreturn]] void fail_unknown(std::string_view what, std::string_view name, size_t at,
                                 bool function) const {
    std::string_view best;
    size_t distance = 3;
    const auto consider = [&](std::string_view candidate) {
      const size_t d = schema::edit_distance(name, candidate);
      if (d < distance && d < candidate.size()) best = candidate, distance = d;
    };
    if (function) {
      for (const Function& f : functions()) {
        if (!f.internal) consider(f.name);
      }
      for (int i = 0; i < kNumOps; ++i) {
        const OpInfo& row = info(static_cast<Op>(i));
        if (is_called(row.rule) && !is_bit_pattern(row.rule)) consider(row.name);
      }
      for (const auto& [text, type] : kCasts) consider(text);
    } else {
      for (const Binding& b : names_) consider(b.name);
    }
    const std::string hint = best.empty() ? "" : fmt::format(", did you mean '{}'?", best);
    fail(fmt::format("unknown {} '{}'{}", what, name, hint), at);
  }

  NodeId literal(bool negative) {
    const size_t at = pos_;
    const std::string_view rest = text_.substr(pos_);
    const bool hex = rest.starts_with("0x");
    size_t end = hex ? 2 : 0;
    bool floating = false;
    while (end < rest.size()) {
      const char c = rest[end];
      const bool exponent = hex ? c == 'p' : c == 'e' || c == 'E';
      if (exponent && end + 1 < rest.size() && (rest[end + 1] == '-' || rest[end + 1] == '+')) ++end;
      if (exponent || c == '.')
        floating = true;
      else if (!is_name(c))
        break;
      ++end;
    }
    const char* const first = rest.data() + (hex ? 2 : 0);
    const char* const last = rest.data() + end;
    pos_ += end;
    Literal value{.integer = !floating};
    std::from_chars_result read{};
    if (floating) {
      read = std::from_chars(first, last, value.d, hex ? std::chars_format::hex : std::chars_format::general);
      if (negative) value.d = -value.d;
    } else {
      uint64_t magnitude = 0;
      read = std::from_chars(first, last, magnitude, hex ? 16 : 10);
      // Decimal literals are numbers and must fit; hexadecimal ones are bit patterns.
      const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
      if (!hex && magnitude > most) read.ec = std::errc::result_out_of_range;
      value.i = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
    }
    if (read.ec == std::errc::result_out_of_range) fail("number out of range", at);
    if (read.ec != std::errc() || read.ptr != last) fail("malformed number", at);
    skip_space();
    return g_.literal(value);
  }

  Builder& g_;
  std::string_view text_;
  std::vector<Binding> names_;
  bool internal_, rows_;
  size_t pos_ = 0;
  int depth_ = 0;
};

}  // namespace

NodeId parse_bound(Builder& g, std::string_view text, std::span<const Binding> names) {
  return Parser(g, text, names, true, false).program();
}

namespace {

NodeId parse_over(Builder& g, std::string_view text, std::span<const Symbol> symbols, bool rows) {
  TENON_CHECK(text.size() <= kMaxText, Value,
              fmt::format("expression: text of {} characters, at most {} are taken", text.size(), kMaxText));
  std::vector<Binding> names;
  for (const Symbol& s : symbols) names.push_back({s.name, g.symbol(s.name, s.kind, s.rank)});
  return Parser(g, text, names, false, rows).program();
}

}  // namespace

NodeId parse(Builder& g, std::string_view text, std::span<const Symbol> symbols) {
  return parse_over(g, text, symbols, false);
}
NodeId parse_rows(Builder& g, std::string_view text, std::span<const Symbol> symbols) {
  return parse_over(g, text, symbols, true);
}

}  // namespace tenon::expr
