#include <fmt/format.h>

#include <map>
#include <set>

#include "tenon/expr/typed_text.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/lexer.h"
#include "tenon/graph/text/parse_value.h"
#include "tenon/graph/text/text.h"
#include "tenon/graph/text/words.h"

namespace tenon::graph {
namespace {

using schema::BaseType;

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Graph parse() {
    if (!lexer_.take_word("graph")) lexer_.fail("expected 'graph 1'");
    const size_t at = lexer_.position();
    if (lexer_.number<uint32_t>("a version") != 1) lexer_.fail_at(at, "this is not version 1 of the form");
    while (lexer_.take_word("storage")) storage();
    while (lexer_.take_word("number")) number();
    while (!lexer_.at_end()) {
      starts_.push_back(lexer_.position());
      g_.nodes.push_back(node(false));
    }
    for (const auto& [name, value] : names_) {
      if (!defined_.contains(value) && g_.values[value].producer != kNone)
        lexer_.fail(fmt::format("no node writes %{}.{}", name.first, name.second));
    }
    g_.renumber();
    if (const Violation violation = verify(g_)) {
      const size_t at = violation.node < starts_.size() ? starts_[violation.node] : 0;
      lexer_.fail_at(at, violation.sentence);
    }
    return std::move(g_);
  }

 private:
  using Name = std::pair<StorageId, uint32_t>;

  void storage() {
    lexer_.expect("%");
    const size_t at = lexer_.position();
    if (lexer_.number<uint32_t>("a storage's number") != g_.storages.size())
      lexer_.fail_at(at, fmt::format("storages are numbered in order: this is %{}", g_.storages.size()));
    Storage s{.nbytes = lexer_.number<uint64_t>("a number of bytes")};
    s.device = device_value(lexer_);
    s.is_input = lexer_.take_word("input");
    s.is_output = lexer_.take_word("output");
    const StorageId id = g_.add_storage(s);
    if (s.is_input) names_[{id, 0}] = g_.add_input_value(id);
  }

  void number() {
    lexer_.expect("$");
    const size_t at = lexer_.position();
    if (lexer_.number<uint32_t>("a number's number") != g_.numbers.size())
      lexer_.fail_at(at, fmt::format("numbers are numbered in order: this is ${}", g_.numbers.size()));
    const auto kind = parse_kind(lexer_.word());
    if (!kind) lexer_.fail("expected bool, int, float or complex");
    g_.add_number(*kind);
  }

  // Values

  Name value_name() {
    lexer_.expect("%");
    const StorageId storage = lexer_.number<uint32_t>("a storage's number");
    if (storage >= g_.storages.size()) lexer_.fail("there is no such storage");
    lexer_.expect(".");
    return {storage, lexer_.number<uint32_t>("a version")};
  }
  /// A value that is read.
  ValueId known_value() {
    const size_t at = lexer_.position();
    const auto found = names_.find(value_name());
    if (found == names_.end()) lexer_.fail_at(at, "this version is not written before");
    return found->second;
  }
  /// What a node writes: the text before the operator.
  struct Written {
    size_t at;
    Name name;
    ValueId previous = kNone;
    GeometryId geometry = kNone;
  };
  Written written() {
    Written w{lexer_.position(), value_name()};
    if (lexer_.take("(")) {
      w.previous = known_value();
      lexer_.expect(")");
    }
    w.geometry = geometry();
    return w;
  }
  /// The value that is written. The node of a region names what its members write after it.
  void add_def(const Written& w, bool of_region) {
    auto [found, is_new] = names_.emplace(w.name, kNone);
    if (is_new) {
      g_.values.push_back({w.name.first, 0, kNone});
      found->second = static_cast<ValueId>(g_.values.size() - 1);
    }
    const ValueId value = found->second;
    const bool free =
        of_region ? is_new : g_.values[value].producer != kNone && defined_.insert(value).second;
    if (!free) lexer_.fail_at(w.at, "this version is written before");
    if (w.previous != kNone) g_.values[value].previous = w.previous;
    g_.add_def({value, w.geometry});
  }

  GeometryId geometry() {
    const auto dtype = parse_dtype(lexer_.word());
    if (!dtype) lexer_.fail("expected a dtype");
    Geometry g{.dtype = *dtype};
    dims(g.sizes);
    g.strides = dense_strides(g.sizes);
    if (lexer_.take(":")) dims(g.strides);
    if (lexer_.take("+"))
      g.offset = lexer_.number<int64_t>("an offset");
    else if (lexer_.peek("-"))
      g.offset = lexer_.number<int64_t>("an offset");
    g.wrapped_number = lexer_.take_word("number");
    return g_.add_geometry(g);
  }
  void dims(Dims& list) {
    list.clear();
    elements([&] { list.push_back(lexer_.number<int64_t>("a whole number")); });
    if (list.size() > 64) lexer_.fail("a tensor has at most 64 dimensions");
  }
  /// "[a, b]", each element read by `one`.
  template <class F>
  void elements(F&& one) {
    lexer_.expect("[");
    if (lexer_.take("]")) return;
    do one();
    while (lexer_.take(","));
    lexer_.expect("]");
  }

  Use use() {
    if (lexer_.take_word("none")) return {};
    if (lexer_.take_word("_")) return {kNone, geometry()};
    const ValueId value = known_value();
    return {value, geometry()};
  }

  // Arguments

  uint32_t number_use() {
    lexer_.expect("$");
    const auto n = lexer_.number<uint32_t>("a number's number");
    if (n >= g_.numbers.size()) lexer_.fail("there is no such number");
    return n;
  }

  void argument(const schema::Type& type) {
    const bool is_number =
        type.base == BaseType::Scalar || type.base == BaseType::Float || type.base == BaseType::Int;
    if (lexer_.take_word("none")) {
      g_.add_none();
    } else if (type.base == BaseType::Tensor && !type.list) {
      g_.add_use(use());
    } else if (type.base == BaseType::Tensor) {
      std::vector<Use> list;
      elements([&] { list.push_back(use()); });
      g_.add_uses(list);
    } else if (is_number && lexer_.peek("$")) {
      g_.add_number_use(number_use());
    } else if (is_number && type.list &&
               (lexer_.peek("[$") || (lexer_.peek("[]") && type.base != BaseType::Int))) {
      std::vector<uint32_t> list;
      elements([&] { list.push_back(number_use()); });
      g_.add_number_uses(list);
    } else {
      attribute(type);
    }
  }

  void attribute(const schema::Type& type) {
    Stack boxed;
    push_value(lexer_, type, boxed);
    g_.add_attribute(boxed, 0);
  }

  // Nodes

  Node node(bool member) {
    std::vector<Written> defs;
    if (lexer_.peek("%")) {
      do defs.push_back(written());
      while (lexer_.take(","));
      lexer_.expect("=");
    }
    const size_t at = lexer_.position();
    const std::string_view name = lexer_.word("_:.");
    const auto op = find_operator(name);
    if (!op) {
      lexer_.fail_at(at,
                     name.empty() ? "expected an operator" : fmt::format("there is no operator '{}'", name));
    }
    const std::optional<RegionKind> kind = region_kind(*op);
    if (kind && member) lexer_.fail_at(at, "a member of a region is no region");
    lexer_.expect("(");
    bool first = true;
    for (const schema::Argument& declared : op->schema().arguments) {
      if (!std::exchange(first, false)) lexer_.expect(",");
      argument(declared.type);
    }
    lexer_.expect(")");
    for (const Written& w : defs) add_def(w, kind.has_value());
    Node result = g_.make_node(*op);
    if (kind) result.region = region(*kind);
    return result;
  }

  RegionPtr region(RegionKind kind) {
    RegionPtr region(new Region);
    region->kind = kind;
    region->name = std::string(lexer_.word());
    if (region->name.empty()) lexer_.fail("expected the name of the region");
    lexer_.expect("{");
    while (!lexer_.take("}")) {
      if (lexer_.at_end()) lexer_.fail("a region has no end");
      if (lexer_.take_word("numbers"))
        group([&] { region->numbers.push_back(number_source(*region)); });
      else if (lexer_.take_word("over"))
        dims(region->over);
      else if (lexer_.take_word("anchor"))
        region->anchor_member = lexer_.number<uint32_t>("a member");
      else if (lexer_.take_word("prologue"))
        region->prologue.push_back(part());
      else if (lexer_.take_word("body"))
        region->body = part();
      else if (lexer_.take_word("epilogue"))
        region->epilogue = part();
      else if (lexer_.take_word("engine"))
        engine(*region);
      else
        region->members.push_back(node(true));
    }
    return region;
  }

  void engine(Region& region) {
    region.engine = std::string(lexer_.word());
    if (region.engine.empty()) lexer_.fail("expected the name of an engine");
    if (!lexer_.peek("(")) return;
    group([&] {
      std::string knob(lexer_.word());
      if (knob.empty()) lexer_.fail("expected the name of a knob");
      region.knobs.emplace_back(std::move(knob), lexer_.number<int64_t>("the value of a knob"));
    });
  }

  NumberSource number_source(const Region& region) {
    const size_t at = lexer_.position();
    const auto member = lexer_.number<uint32_t>("a member");
    lexer_.expect(".");
    const auto slot = lexer_.number<uint32_t>("the place of a number");
    if (member >= region.members.size()) lexer_.fail_at(at, "there is no such member");
    const auto lowered = lower_call(g_, region.members[member]);
    if (!lowered || slot >= lowered->numbers.size()) lexer_.fail_at(at, "the member has no such number");
    return {member, slot, lowered->numbers[slot]};
  }

  RegionPart part() {
    RegionPart p;
    if (!lexer_.peek("(")) return p;
    group([&] {
      p.inputs.push_back(lexer_.take_word("anchor") ? kAnchorResult
                                                    : lexer_.number<uint32_t>("the place of a use"));
    });
    group([&] { p.numbers.push_back(lexer_.number<uint32_t>("the place of a number")); });
    group([&] { p.outputs.push_back(lexer_.number<uint32_t>("the place of a def")); });
    lexer_.expect(":");
    const size_t at = lexer_.position();
    try {
      p.expression = expr::parse_typed(lexer_.rest_of_line());
    } catch (const Error& error) {
      lexer_.fail_at(at, error.what());
    }
    return p;
  }
  /// "(a, b)".
  template <class F>
  void group(F&& one) {
    lexer_.expect("(");
    if (lexer_.take(")")) return;
    do one();
    while (lexer_.take(","));
    lexer_.expect(")");
  }

  Lexer lexer_;
  Graph g_;
  std::map<Name, ValueId> names_;
  std::set<ValueId> defined_;   // by a node that is no region
  std::vector<size_t> starts_;  // of nodes
};

}  // namespace

Graph parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace tenon::graph
