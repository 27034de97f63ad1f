#include <fmt/format.h>

#include "tenon/expr/typed_text.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/text/text.h"
#include "tenon/graph/text/words.h"

namespace tenon::graph {

std::string to_string(const Geometry& g) {
  std::string text = fmt::format("{}{}", name(g.dtype), tenon::to_string(g.sizes));
  if (!(g.strides == dense_strides(g.sizes))) text += ":" + tenon::to_string(g.strides);
  if (g.offset != 0) text += fmt::format("{:+}", g.offset);
  if (g.wrapped_number) text += " number";
  return text;
}

namespace {

std::string float_text(double v) {
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text;
}
std::string text_of(double v) { return float_text(v); }
std::string text_of(int64_t v) { return fmt::format("{}", v); }
std::string text_of(bool v) { return v ? "true" : "false"; }
std::string text_of(DType v) { return std::string(name(v)); }
std::string text_of(Device v) { return tenon::to_string(v); }
std::string text_of(Layout v) { return std::string(name(v)); }
std::string text_of(MemoryFormat v) { return std::string(name(v)); }
std::string text_of(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::Bool:
      return text_of(v.to_bool());
    case Scalar::Kind::Int:
      return text_of(v.to_int());
    case Scalar::Kind::Float:
      return text_of(v.to_double());
    case Scalar::Kind::Complex:
      break;
  }
  return fmt::format("({}, {})", float_text(v.to_complex().real()), float_text(v.to_complex().imag()));
}
// Values that no text can hold, which no legal graph has.
std::string text_of(const Tensor&) { return "?"; }
std::string text_of(const Generator&) { return "?"; }
std::string text_of(const tenon::Storage&) { return "?"; }
std::string text_of(const CellList<char>& v) {
  std::string text = "\"";
  for (const char c : v) {
    if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (static_cast<unsigned char>(c) < 32)
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += c;
  }
  return text + "\"";
}
template <class T>
std::string text_of(const CellList<T>& list) {
  std::string text = "[";
  for (const T& v : list) text += (text.size() > 1 ? ", " : "") + text_of(v);
  return text + "]";
}

std::string attribute_text(const Stack& stack, size_t i) {
  std::string text = "none";
  detail::for_each_base([&]<schema::BaseType b>() {
    using V = detail::ValueType<b>;
    if (stack.tag(i) == V::tag) text = text_of(stack.at<typename V::Owned>(i));
    if constexpr (V::list_tag != CellTag::None) {
      if (stack.tag(i) == V::list_tag) text = text_of(stack.at<CellList<typename V::Owned>>(i));
    }
  });
  return text;
}

template <class List, class F>
std::string join(const List& list, F&& text_of_one) {
  std::string text;
  bool first = true;
  for (const auto& one : list) {
    if (!std::exchange(first, false)) text += ", ";
    text += text_of_one(one);
  }
  return text;
}

class Printer {
 public:
  Printer(const Graph& graph, bool lines) : g_(graph), lines_(lines), versions_(versions_of(graph)) {}

  std::string print() {
    text_ = "graph 1\n";
    for (size_t i = 0; i < g_.storages.size(); ++i) {
      const Storage& s = g_.storages[i];
      text_ += fmt::format("storage %{} {} {}{}{}\n", i, s.nbytes, tenon::to_string(s.device),
                           s.is_input ? " input" : "", s.is_output ? " output" : "");
    }
    for (size_t i = 0; i < g_.numbers.size(); ++i)
      text_ += fmt::format("number ${} {}\n", i, name(g_.numbers[i]));
    for (const Node& node : g_.nodes) {
      call(node, "", node.region == nullptr);
      if (node.region) region(*node.region);
      line(node);
    }
    return std::move(text_);
  }

 private:
  std::string value(ValueId v) const {
    if (v >= g_.values.size() || versions_[v] == kNone) return "%?";
    return fmt::format("%{}.{}", g_.values[v].storage, versions_[v]);
  }
  std::string geometry(GeometryId id) const {
    return id < g_.num_geometries() ? to_string(g_.geometry(id)) : "?";
  }
  std::string use(const Use& u) const {
    if (u.value == kNone && u.geometry == kNone) return "none";
    return fmt::format("{} {}", u.value == kNone ? "_" : value(u.value), geometry(u.geometry));
  }
  std::string argument(const Argument& a) const {
    using Kind = Argument::Kind;
    const auto number = [](uint32_t n) { return fmt::format("${}", n); };
    const auto one_use = [&](const Use& u) { return use(u); };
    switch (a.kind) {
      case Kind::None:
        return "none";
      case Kind::Use:
        return join(g_.uses(a), one_use);
      case Kind::Uses:
        return "[" + join(g_.uses(a), one_use) + "]";
      case Kind::Number:
        return join(g_.numbers_of(a), number);
      case Kind::Numbers:
        return "[" + join(g_.numbers_of(a), number) + "]";
      case Kind::Attribute:
        break;
    }
    return attribute_text(g_.attributes(), a.range.first);
  }
  /// `previous`: the members of a region say which version a def follows, its node does not.
  void call(const Node& node, std::string_view indent, bool previous) {
    text_ += indent;
    text_ += join(g_.defs(node), [&](const Def& d) {
      const ValueId before = d.value < g_.values.size() ? g_.values[d.value].previous : kNone;
      const std::string after = previous && before != kNone ? "(" + value(before) + ")" : "";
      return fmt::format("{}{} {}", value(d.value), after, geometry(d.geometry));
    });
    if (node.defs.count > 0) text_ += " = ";
    text_ += fmt::format("{}({})", node.op.full_name(),
                         join(g_.arguments(node), [&](const Argument& a) { return argument(a); }));
  }
  void line(const Node& node) {
    if (lines_ && node.line) text_ += "  # " + describe_source(node.line);
    text_ += "\n";
  }
  void region(const Region& r) {
    text_ += fmt::format(" {} {{\n", r.name);
    for (const Node& member : r.members) {
      call(member, "  ", true);
      line(member);
    }
    if (!r.numbers.empty()) {
      text_ += fmt::format("  numbers ({})\n", join(r.numbers, [](const NumberSource& n) {
                             return fmt::format("{}.{}", n.member, n.slot);
                           }));
    }
    if (!r.over.empty()) text_ += fmt::format("  over {}\n", tenon::to_string(r.over));
    if (r.anchor_member != kNone) text_ += fmt::format("  anchor {}\n", r.anchor_member);
    for (const RegionPart& p : r.prologue) part("prologue", p);
    if (!r.body.empty()) part("body", r.body);
    if (!r.epilogue.empty()) part("epilogue", r.epilogue);
    if (!r.engine.empty()) engine(r);
    text_ += "}";
  }
  void engine(const Region& r) {
    text_ += "  engine " + r.engine;
    if (!r.knobs.empty()) {
      text_ += fmt::format(" ({})", join(r.knobs, [](const auto& knob) {
                             return fmt::format("{} {}", knob.first, knob.second);
                           }));
    }
    text_ += "\n";
  }
  void part(std::string_view kind, const RegionPart& p) {
    text_ += fmt::format("  {}", kind);
    if (!p.empty()) {
      text_ += fmt::format(
          " ({}) ({}) ({}): {}",
          join(p.inputs, [](uint32_t i) { return i == kAnchorResult ? "anchor" : fmt::format("{}", i); }),
          join(p.numbers, [](uint32_t i) { return fmt::format("{}", i); }),
          join(p.outputs, [](uint32_t i) { return fmt::format("{}", i); }), expr::to_string(*p.expression));
    }
    text_ += "\n";
  }

  const Graph& g_;
  const bool lines_;
  const std::vector<uint32_t> versions_;
  std::string text_;
};

}  // namespace

std::string to_string(const Graph& graph, bool lines) { return Printer(graph, lines).print(); }

}  // namespace tenon::graph
