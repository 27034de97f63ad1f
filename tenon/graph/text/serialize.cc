#include <map>

#include "tenon/expr/mixer.h"
#include "tenon/expr/typed_text.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/bytes.h"
#include "tenon/graph/text/words.h"

namespace tenon::graph {
namespace {

using schema::BaseType;

class Serializer {
 public:
  explicit Serializer(const Graph& graph) : g_(graph) {}

  std::vector<std::byte> run() {
    tables();
    out_.number(g_.nodes.size());
    for (const Node& node : g_.nodes) {
      call(node);
      if (node.region) region(*node.region);
    }
    ByteWriter body;
    body.number(texts_.size());
    for (const std::string& text : texts_) body.text(text);
    body.append(out_);
    ByteWriter file;
    file.characters(kMagic);
    file.fixed(kBinaryVersion);
    file.fixed(body.bytes().size());
    file.fixed(checksum(body.bytes()));
    file.append(body);
    return file.take();
  }

 private:
  void text(std::string_view text) {
    const auto [found, is_new] = places_.emplace(std::string(text), texts_.size());
    if (is_new) texts_.push_back(found->first);
    out_.number(found->second);
  }
  template <class List, class F>
  void list(const List& all, F&& one) {
    out_.number(all.size());
    for (const auto& each : all) one(each);
  }

  void tables() {
    list(g_.storages, [&](const Storage& s) {
      out_.number(s.nbytes);
      text(tenon::to_string(s.device));
      out_.byte(static_cast<uint8_t>(s.is_input | s.is_output << 1));
    });
    list(g_.numbers, [&](Scalar::Kind kind) { out_.byte(static_cast<uint8_t>(kind)); });
    out_.number(g_.num_geometries());
    for (GeometryId id = 0; id < g_.num_geometries(); ++id) geometry(g_.geometry(id));
    list(g_.values, [&](const Value& v) {
      out_.id(v.storage);
      out_.id(v.previous);
      out_.byte(v.producer != kNone);
    });
  }
  void geometry(const Geometry& g) {
    text(name(g.dtype));
    out_.byte(g.wrapped_number);
    out_.signed_number(g.offset);
    out_.number(g.sizes.size());
    for (const int64_t size : g.sizes) out_.signed_number(size);
    for (const int64_t stride : g.strides) out_.signed_number(stride);
  }

  void use(const Use& u) {
    out_.id(u.value);
    out_.id(u.geometry);
  }

  /// Each begins with its kind.
  void argument(const Argument& a) {
    out_.byte(static_cast<uint8_t>(a.kind));
    switch (a.kind) {
      case Argument::Kind::None:
        return;
      case Argument::Kind::Use:
        return use(g_.uses(a)[0]);
      case Argument::Kind::Uses:
        return list(g_.uses(a), [&](const Use& u) { use(u); });
      case Argument::Kind::Number:
        return out_.number(g_.numbers_of(a)[0]);
      case Argument::Kind::Numbers:
        return list(g_.numbers_of(a), [&](uint32_t n) { out_.number(n); });
      case Argument::Kind::Attribute:
        return attribute(a.range.first);
    }
  }
  /// The schema says which type it has, and whether it is a list.
  void attribute(size_t i) {
    const Stack& stack = g_.attributes();
    bool written = false;
    detail::for_each_base([&]<BaseType b>() {
      using V = detail::ValueType<b>;
      if constexpr (b != BaseType::Tensor && b != BaseType::Generator && b != BaseType::Storage) {
        if (written) return;
        if (stack.tag(i) == V::tag) {
          element(stack.at<typename V::Owned>(i));
          written = true;
        } else if constexpr (V::list_tag != CellTag::None) {
          if (stack.tag(i) != V::list_tag) return;
          list(stack.at<CellList<typename V::Owned>>(i), [&](const auto& each) { element(each); });
          written = true;
        }
      }
    });
    TENON_CHECK(written, Internal, "graph: an attribute has no binary form");
  }
  void element(int64_t v) { out_.signed_number(v); }
  void element(double v) { out_.real(v); }
  void element(bool v) { out_.byte(v); }
  void element(DType v) { text(name(v)); }
  void element(Device v) { text(tenon::to_string(v)); }
  void element(Layout v) { text(name(v)); }
  void element(MemoryFormat v) { text(name(v)); }
  void element(const CellList<char>& v) { text(std::string_view(v.begin(), v.size())); }
  void element(const Scalar& v) { out_.scalar(v); }

  void call(const Node& node) {
    text(node.op.full_name());
    list(g_.defs(node), [&](const Def& d) {
      out_.number(d.value);
      out_.number(d.geometry);
    });
    for (const Argument& a : g_.arguments(node)) argument(a);
  }
  void region(const Region& r) {
    text(r.name);
    list(r.members, [&](const Node& member) { call(member); });
    list(r.numbers, [&](const NumberSource& n) {
      out_.number(n.member);
      out_.number(n.slot);
    });
    list(r.over, [&](int64_t d) { out_.signed_number(d); });
    out_.id(r.anchor_member);
    list(r.prologue, [&](const RegionPart& p) { part(p); });
    part(r.body);
    part(r.epilogue);
    text(r.engine);
    list(r.knobs, [&](const auto& knob) {
      text(knob.first);
      out_.signed_number(knob.second);
    });
  }
  void part(const RegionPart& p) {
    out_.byte(!p.empty());
    if (p.empty()) return;
    text(expr::to_string(*p.expression));
    list(p.inputs, [&](uint32_t i) { out_.id(i); });
    list(p.numbers, [&](uint32_t i) { out_.number(i); });
    list(p.outputs, [&](uint32_t i) { out_.number(i); });
  }

  const Graph& g_;
  ByteWriter out_;
  std::map<std::string, size_t> places_;
  std::vector<std::string> texts_;
};

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  expr::Mixer mixer;
  mixer.add(uint64_t{bytes.size()});
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    for (size_t k = i; k < bytes.size() && k < i + 8; ++k) word = word << 8 | static_cast<uint8_t>(bytes[k]);
    mixer.add(word);
  }
  return mixer.take().low;
}

std::vector<std::byte> serialize(const Graph& graph) { return Serializer(graph).run(); }

}  // namespace tenon::graph
