#include "tenon/graph/ir/key.h"

#include "tenon/expr/expression.h"
#include "tenon/expr/mixer.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {
namespace {

void mix(expr::Mixer& mixer, int64_t v) { mixer.add(static_cast<uint64_t>(v)); }
void mix(expr::Mixer& mixer, double v) { mixer.add(std::bit_cast<uint64_t>(v)); }
void mix(expr::Mixer& mixer, bool v) { mixer.add(uint64_t{v}); }
void mix(expr::Mixer& mixer, char v) { mixer.add(uint64_t{static_cast<unsigned char>(v)}); }
void mix(expr::Mixer& mixer, DType v) { mixer.add(static_cast<uint64_t>(v)); }
void mix(expr::Mixer& mixer, Layout v) { mixer.add(static_cast<uint64_t>(v)); }
void mix(expr::Mixer& mixer, MemoryFormat v) { mixer.add(static_cast<uint64_t>(v)); }
void mix(expr::Mixer& mixer, Device v) {
  // By name: numbers of backends follow the order in which a process loads them.
  mixer.add(backend_name(v.backend));
  mix(mixer, int64_t{v.index});
}
void mix(expr::Mixer& mixer, const Scalar& v) {
  mixer.add(static_cast<uint64_t>(v.kind()));
  mix(mixer, v.to_int());
  mix(mixer, v.to_complex().real());
  mix(mixer, v.to_complex().imag());
}
// Not in legal graphs.
void mix(expr::Mixer&, const Tensor&) {}
void mix(expr::Mixer&, const Generator&) {}
void mix(expr::Mixer&, const tenon::Storage&) {}
template <class T>
void mix(expr::Mixer& mixer, const CellList<T>& list) {
  mixer.add(uint64_t{list.size()});
  for (const T& v : list) mix(mixer, v);
}

void mix_attribute(expr::Mixer& mixer, const Stack& stack, size_t i) {
  detail::for_each_base([&]<schema::BaseType b>() {
    using V = detail::ValueType<b>;
    using Stored = typename detail::CellType<typename V::Owned>::Stored;
    if (stack.tag(i) == V::tag) mix(mixer, stack.at<Stored>(i));
    if constexpr (V::list_tag != CellTag::None) {
      if (stack.tag(i) == V::list_tag) mix(mixer, stack.at<CellList<typename V::Owned>>(i));
    }
  });
}

class KeyMaker {
 public:
  explicit KeyMaker(const Graph& graph)
      : g_(graph),
        versions_(versions_of(graph)),
        storages_(graph.storages.size(), kNone),
        numbers_(graph.numbers.size(), kNone),
        geometries_(graph.num_geometries(), kNone) {}

  /// Of one call as it is, for which no order has to be found.
  static expr::Key make(const Graph& graph, const Node& node) {
    KeyMaker maker(graph, nullptr);
    maker.mixer_.add(kKeyVersion);
    maker.call(node);
    return maker.mixer_.take();
  }
  expr::Key make() {
    mixer_.add(kKeyVersion);
    for (const Node& node : g_.nodes) {
      call(node);
      if (node.region) region(*node.region);
    }
    return mixer_.take();
  }

 private:
  KeyMaker(const Graph& graph, std::nullptr_t) : g_(graph), as_it_stands_(true) {}

  /// A row of a table: its number by first appearance; true the first time.
  bool first(std::vector<uint32_t>& order, uint32_t& next, uint32_t id) {
    const bool is_new = order[id] == kNone;
    if (is_new) order[id] = next++;
    mixer_.add(uint64_t{order[id]});
    return is_new;
  }

  void value(ValueId v) {
    if (v == kNone) return mixer_.add(kNone);
    const StorageId id = g_.values[v].storage;
    if (as_it_stands_) return mixer_.add(uint64_t{id});
    if (first(storages_, next_storage_, id)) {
      const Storage& s = g_.storages[id];
      mixer_.add(s.nbytes);
      mix(mixer_, s.device);
      mixer_.add(uint64_t{s.is_input} | uint64_t{s.is_output} << 1);
    }
    mixer_.add(uint64_t{versions_[v]});
  }
  void geometry(GeometryId id) {
    if (id == kNone) return mixer_.add(kNone);
    if (!as_it_stands_ && !first(geometries_, next_geometry_, id)) return;
    const Geometry& g = g_.geometry(id);
    mixer_.add(static_cast<uint64_t>(g.dtype) | uint64_t{g.wrapped_number} << 8 |
               uint64_t{g.sizes.size()} << 16);
    mix(mixer_, g.offset);
    for (const int64_t size : g.sizes) mix(mixer_, size);
    for (const int64_t stride : g.strides) mix(mixer_, stride);
  }
  void number(uint32_t n) {
    if (as_it_stands_) return mixer_.add(uint64_t{n});
    if (first(numbers_, next_number_, n)) mixer_.add(static_cast<uint64_t>(g_.numbers[n]));
  }

  void argument(const Argument& a) {
    // A list without a number is one whether it was taken for an attribute or not.
    const bool no_numbers = a.kind == Argument::Kind::Attribute && is_empty_list(a.range.first);
    mixer_.add(static_cast<uint64_t>(no_numbers ? Argument::Kind::Numbers : a.kind));
    for (const Use& u : g_.uses(a)) {
      value(u.value);
      geometry(u.geometry);
    }
    for (const uint32_t n : g_.numbers_of(a)) number(n);
    if (a.kind != Argument::Kind::Attribute)
      mixer_.add(uint64_t{a.range.count});
    else if (no_numbers)
      mixer_.add(uint64_t{0});
    else
      mix_attribute(mixer_, g_.attributes(), a.range.first);
  }
  bool is_empty_list(uint32_t i) const {
    const Stack& stack = g_.attributes();
    return (stack.tag(i) == CellTag::FloatList && stack.at<CellList<double>>(i).size() == 0) ||
           (stack.tag(i) == CellTag::ScalarList && stack.at<CellList<Scalar>>(i).size() == 0);
  }

  void call(const Node& node) {
    mixer_.add(node.op.name());
    mixer_.add(node.op.overload());
    for (const Argument& a : g_.arguments(node)) argument(a);
    mixer_.add(uint64_t{node.defs.count});
    for (const Def& d : g_.defs(node)) {
      value(d.value);
      value(g_.values[d.value].previous);
      geometry(d.geometry);
    }
  }

  void part(const RegionPart& p) {
    mixer_.add(uint64_t{p.empty()});
    if (p.empty()) return;
    mixer_.add(p.expression->key);
    for (const uint32_t i : p.inputs) mixer_.add(uint64_t{i});
    for (const uint32_t i : p.numbers) mixer_.add(uint64_t{i});
    for (const uint32_t i : p.outputs) mixer_.add(uint64_t{i});
  }
  void region(const Region& r) {
    mixer_.add(uint64_t{r.members.size()});
    mixer_.add(uint64_t{r.anchor_member});
    for (const int64_t d : r.over) mix(mixer_, d);
    for (const Node& member : r.members) call(member);
    for (const NumberSource& n : r.numbers) mixer_.add(uint64_t{n.member} << 32 | n.slot);
    for (const RegionPart& p : r.prologue) part(p);
    part(r.body);
    part(r.epilogue);
  }

  const Graph& g_;
  const bool as_it_stands_ = false;
  const std::vector<uint32_t> versions_;
  std::vector<uint32_t> storages_, numbers_, geometries_;
  uint32_t next_storage_ = 0, next_number_ = 0, next_geometry_ = 0;
  expr::Mixer mixer_;
};

}  // namespace

expr::Key key_of(const Graph& graph) { return KeyMaker(graph).make(); }
expr::Key key_of_call(const Graph& graph, const Node& node) { return KeyMaker::make(graph, node); }

}  // namespace tenon::graph
