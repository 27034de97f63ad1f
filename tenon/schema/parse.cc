#include <fmt/core.h>

#include <algorithm>

#include "tenon/schema/cursor.h"
#include "tenon/schema/parse_default.h"
#include "tenon/schema/schema.h"
#include "tenon/schema/words.h"

namespace tenon::schema {
namespace {

/// Larger than any fixed list of an operator; bounds what `int[N] x=0` unfolds to.
constexpr int32_t kMaxListSize = 64;

struct AnnotatedType {
  Type type;
  std::optional<Alias> alias;
  size_t alias_position = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text) {}

  FunctionSchema parse() {
    parse_name();
    parse_arguments();
    cursor_.expect("->");
    parse_returns();
    expect_end();
    return std::move(schema_);
  }

  Type parse_lone_type() {
    const AnnotatedType parsed = parse_type();
    if (parsed.alias) cursor_.fail_at(parsed.alias_position, "alias annotation on a type that stands alone");
    expect_end();
    return parsed.type;
  }

 private:
  void expect_end() {
    if (!cursor_.at_end()) cursor_.fail_expected("the end of the schema");
  }

  void parse_name() {
    schema_.name = cursor_.identifier("an operator name");
    if (cursor_.accept("::")) {
      schema_.ns = std::move(schema_.name);
      schema_.name = cursor_.identifier("an operator name after '::'");
    }
    if (cursor_.accept(".")) {
      const size_t position = cursor_.position();
      schema_.overload = cursor_.identifier("an overload name after '.'");
      // op.default is how Python spells the overload without a name, and dunders are attributes of every
      // object.
      if (schema_.overload == "default") {
        cursor_.fail_at(position, "overload name 'default'", " is taken by the overload without a name");
      }
      if (schema_.overload.starts_with("__")) {
        cursor_.fail_at(position, fmt::format("overload name '{}'", schema_.overload),
                        " must not start with two underscores");
      }
    }
  }

  void parse_arguments() {
    if (!cursor_.accept("(")) cursor_.fail_expected("'(' before the arguments");
    if (cursor_.accept(")")) return;
    bool kwarg_only = false;
    while (true) {
      const size_t position = cursor_.position();
      if (cursor_.accept("*")) {
        if (kwarg_only) cursor_.fail_at(position, "second '*'", "; arguments turn keyword-only once");
        kwarg_only = true;
        if (!cursor_.accept(",")) cursor_.fail_expected("',' and a keyword-only argument after '*'");
        continue;
      }
      parse_argument(kwarg_only);
      if (!cursor_.accept(",")) break;
    }
    if (!cursor_.accept(")")) cursor_.fail_expected("',' or ')' after an argument");
  }

  void parse_argument(bool kwarg_only) {
    AnnotatedType annotated = parse_type();
    Argument argument;
    argument.type = annotated.type;
    argument.alias = std::move(annotated.alias);
    argument.kwarg_only = kwarg_only;
    const size_t position = cursor_.position();
    argument.name = cursor_.identifier("an argument name");
    if (schema_.argument_index(argument.name)) {
      cursor_.fail_at(position, fmt::format("second argument named '{}'", argument.name));
    }
    if (cursor_.accept("=")) {
      argument.default_value = parse_default(cursor_, argument.type);
    } else if (!kwarg_only && !schema_.arguments.empty() && schema_.arguments.back().default_value.given()) {
      cursor_.fail_at(position, fmt::format("argument '{}' without a default", argument.name),
                      fmt::format(" follows '{}', which has one", schema_.arguments.back().name));
    }
    argument.is_out = kwarg_only && argument.is_write();
    schema_.arguments.push_back(std::move(argument));
  }

  void parse_returns() {
    if (!cursor_.accept("(")) {
      parse_return();
      return;
    }
    if (cursor_.accept(")")) return;
    do {
      parse_return();
    } while (cursor_.accept(","));
    if (!cursor_.accept(")")) cursor_.fail_expected("',' or ')' after a return");
  }

  void parse_return() {
    AnnotatedType annotated = parse_type();
    Return result;
    result.type = annotated.type;
    result.alias = std::move(annotated.alias);
    if (result.alias) check_return_alias(*result.alias, annotated.alias_position);
    const size_t position = cursor_.position();
    result.name = cursor_.accept_identifier();
    const bool taken =
        !result.name.empty() && std::any_of(schema_.returns.begin(), schema_.returns.end(),
                                            [&](const Return& r) { return r.name == result.name; });
    if (taken) cursor_.fail_at(position, fmt::format("second return named '{}'", result.name));
    schema_.returns.push_back(std::move(result));
  }

  /// A return can only share memory that came in, and be written only if an argument is.
  void check_return_alias(const Alias& alias, size_t position) {
    for (const std::string& set : alias.before) {
      if (set == "*") continue;
      bool known = false, written = false;
      for (const Argument& a : schema_.arguments) {
        if (!a.alias) continue;
        const auto holds = [&](const std::vector<std::string>& sets) {
          return std::find(sets.begin(), sets.end(), set) != sets.end();
        };
        if (!holds(a.alias->before) && !holds(a.alias->after)) continue;
        known = true;
        written |= a.alias->is_write;
      }
      if (!known) {
        cursor_.fail_at(position, fmt::format("returned alias set '{}'", set), " belongs to no argument");
      }
      if (alias.is_write && !written) {
        cursor_.fail_at(position, fmt::format("returned alias set '{}!'", set),
                        fmt::format(" is written by no argument; write ({}!) on the argument too", set));
      }
    }
  }

  AnnotatedType parse_type() {
    const size_t position = cursor_.position();
    const std::string_view word = cursor_.identifier("a type");
    const std::optional<Type> base = find_base(word);
    if (!base) {
      const std::string_view near = suggest_base(word);
      cursor_.fail_at(position, fmt::format("unknown type '{}'", word),
                      near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
    }
    AnnotatedType out;
    out.type = *base;
    out.alias_position = cursor_.position();
    if (cursor_.peek() == '(') {
      if (base->base != BaseType::Tensor) {
        cursor_.fail_at(out.alias_position, fmt::format("alias annotation on {}", word),
                        "; only Tensor has memory");
      }
      out.alias = parse_alias();
    }
    Type& type = out.type;
    type.optional = cursor_.accept("?");
    if (!cursor_.accept("[")) return out;
    type.list = true;
    type.element_optional = type.optional;
    if (!cursor_.accept("]")) type.list_size = parse_list_size();
    type.optional = cursor_.accept("?");
    return out;
  }

  int32_t parse_list_size() {
    const size_t position = cursor_.position();
    int32_t size = 0;
    while (cursor_.peek_raw() >= '0' && cursor_.peek_raw() <= '9') {
      size = std::min(size * 10 + (cursor_.take_raw() - '0'), kMaxListSize + 1);
    }
    if (cursor_.position_raw() == position) cursor_.fail_expected("']' or a list size");
    if (size < 1 || size > kMaxListSize) {
      cursor_.fail_at(position, fmt::format("list size '{}'", cursor_.since(position)),
                      fmt::format(" is not between 1 and {}", kMaxListSize));
    }
    cursor_.expect("]");
    return size;
  }

  Alias parse_alias() {
    Alias alias;
    cursor_.expect("(");
    alias.before = parse_alias_sets();
    alias.is_write = cursor_.accept("!");
    if (cursor_.accept("->")) alias.after = parse_alias_sets();
    if (!cursor_.accept(")")) cursor_.fail_expected("')' after an alias annotation");
    return alias;
  }

  std::vector<std::string> parse_alias_sets() {
    if (cursor_.accept("*")) return {"*"};
    std::vector<std::string> sets;
    do {
      sets.emplace_back(cursor_.identifier("an alias set"));
    } while (cursor_.accept("|"));
    return sets;
  }

  Cursor cursor_;
  FunctionSchema schema_;
};

}  // namespace

FunctionSchema parse_schema(std::string_view text) { return Parser(text).parse(); }

Type parse_type(std::string_view text) { return Parser(text).parse_lone_type(); }

}  // namespace tenon::schema
