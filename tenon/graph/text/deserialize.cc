#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tenon/expr/typed_text.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/bytes.h"
#include "tenon/graph/text/words.h"

namespace tenon::graph {

bool is_utf8(std::string_view text) noexcept {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = at(i);
    const size_t more = lead < 0x80   ? 0
                        : lead < 0xC2 ? 4
                        : lead < 0xE0 ? 1
                        : lead < 0xF0 ? 2
                        : lead < 0xF5 ? 3
                                      : 4;
    if (more == 4 || more >= text.size() - i) return false;
    unsigned code = more == 0 ? lead : lead & (0x3Fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      if ((at(i + k) & 0xC0) != 0x80) return false;
      code = code << 6 | (at(i + k) & 0x3Fu);
    }
    const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += more + 1;
  }
  return true;
}

void ByteReader::fail_at(size_t position, const std::string& problem) {
  throw_error(ErrorKind::Value, fmt::format("graph: byte {}: {}", position, problem));
}

namespace {

using schema::BaseType;

class Deserializer {
 public:
  explicit Deserializer(std::span<const std::byte> bytes) : in_(bytes) {}

  Graph run() {
    header();
    for (size_t n = in_.count(); n > 0; --n) texts_.push_back(in_.text());
    tables();
    std::vector<size_t> starts;
    for (size_t n = in_.count(); n > 0; --n) {
      starts.push_back(in_.position());
      g_.nodes.push_back(node(false));
    }
    if (!in_.at_end()) in_.fail("bytes follow the last node");
    g_.renumber();
    if (const Violation violation = verify(g_))
      in_.fail_at(violation.node < starts.size() ? starts[violation.node] : 0, violation.sentence);
    return std::move(g_);
  }

 private:
  void header() {
    if (in_.rest().size() < kMagic.size() || in_.characters(kMagic.size()) != kMagic)
      in_.fail_at(0, "this is no graph in binary form");
    const size_t at = in_.position();
    if (const uint64_t version = in_.fixed(); version != kBinaryVersion)
      in_.fail_at(at, fmt::format("this is version {} of the form; this build reads version {}", version,
                                  kBinaryVersion));
    const uint64_t length = in_.fixed(), sum = in_.fixed();
    if (length != in_.rest().size())
      in_.fail(fmt::format("{} bytes should follow, and {} do", length, in_.rest().size()));
    if (sum != checksum(in_.rest())) in_.fail("the bytes that follow are not those that were written");
  }

  const std::string& text() { return texts_[in_.below(texts_.size(), "string")]; }
  /// What a name denotes.
  template <class F>
  auto named(F&& parse, std::string_view what) {
    const size_t at = in_.position();
    const std::string& word = text();
    const auto value = parse(word);
    if (!value) in_.fail_at(at, fmt::format("'{}' is no {}", word, what));
    return *value;
  }
  template <class F>
  void list(F&& one) {
    for (size_t n = in_.count(); n > 0; --n) one();
  }

  void tables() {
    list([&] {
      Storage s{.nbytes = in_.number()};
      s.device = named(parse_device, "device that is there");
      const uint32_t flags = in_.below(4, "kind of storage");
      s.is_input = (flags & 1) != 0;
      s.is_output = (flags & 2) != 0;
      g_.add_storage(s);
    });
    list([&] { g_.add_number(static_cast<Scalar::Kind>(in_.below(4, "kind of number"))); });
    list([&] { geometries_.push_back(g_.add_geometry(geometry())); });
    list([&] {
      Value v{.storage = in_.id(g_.storages.size(), "storage")};
      // Values may follow later ones.
      v.previous = in_.id(kNone - 1, "value");
      v.producer = in_.boolean() ? 0 : kNone;
      g_.values.push_back(v);
    });
  }
  Geometry geometry() {
    Geometry g{.dtype = named([](const std::string& word) { return parse_dtype(word); }, "dtype")};
    g.wrapped_number = in_.boolean();
    g.offset = in_.signed_number();
    const size_t ndim = in_.below(65, "number of dimensions");
    for (Dims* all : {&g.sizes, &g.strides}) {
      for (size_t d = 0; d < ndim; ++d) all->push_back(in_.signed_number());
    }
    return g;
  }

  /// A value of a storage.
  ValueId value() {
    const size_t at = in_.position();
    const ValueId id = in_.below(g_.values.size(), "value");
    check_value(id, at);
    return id;
  }
  void check_value(ValueId id, size_t at) const {
    if (g_.values[id].storage == kNone) in_.fail_at(at, "the value is of no storage");
  }
  Use use() {
    const size_t at = in_.position();
    Use u{.value = in_.id(g_.values.size(), "value")};
    if (u.value != kNone) check_value(u.value, at);
    const uint32_t geometry = in_.id(geometries_.size(), "geometry");
    if (geometry == kNone && u.value != kNone) in_.fail_at(at, "a value is read without a geometry");
    if (geometry != kNone) u.geometry = geometries_[geometry];
    return u;
  }

  void argument(const schema::Type& type) {
    using Kind = Argument::Kind;
    const size_t at = in_.position();
    const auto kind =
        static_cast<Kind>(in_.below(static_cast<uint64_t>(Kind::Attribute) + 1, "kind of argument"));
    const bool is_tensor = type.base == BaseType::Tensor;
    const bool is_number =
        type.base == BaseType::Scalar || type.base == BaseType::Float || type.base == BaseType::Int;
    const auto fits = [&](bool right) {
      if (!right) in_.fail_at(at, "the argument is of type " + to_string(type));
    };
    const auto number = [&] { return in_.below(g_.numbers.size(), "number"); };
    switch (kind) {
      case Kind::None:
        return g_.add_none();
      case Kind::Use:
        fits(is_tensor && !type.list);
        return g_.add_use(use());
      case Kind::Uses: {
        fits(is_tensor && type.list);
        std::vector<Use> all;
        list([&] { all.push_back(use()); });
        return g_.add_uses(all);
      }
      case Kind::Number:
        fits(is_number && !type.list);
        return g_.add_number_use(number());
      case Kind::Numbers: {
        fits(is_number && type.list);
        std::vector<uint32_t> all;
        list([&] { all.push_back(number()); });
        return g_.add_number_uses(all);
      }
      case Kind::Attribute:
        return fits(attribute(type));
    }
  }

  /// False for a type that no attribute has.
  bool attribute(const schema::Type& type) {
    bool found = false;
    detail::for_each_base([&]<BaseType b>() {
      using V = detail::ValueType<b>;
      if constexpr (b != BaseType::Tensor && b != BaseType::Generator && b != BaseType::Storage) {
        if (type.base != b) return;
        Stack boxed;
        if (!type.list) {
          boxed.push(element<b>());
        } else if constexpr (V::list_tag != CellTag::None) {
          const size_t n = in_.count();
          const auto all = std::make_unique<typename V::Owned[]>(n);
          for (size_t i = 0; i < n; ++i) all[i] = element<b>();
          boxed.push(CellList<typename V::Owned>(std::span<const typename V::Owned>(all.get(), n)));
        } else {
          return;
        }
        found = true;
        g_.add_attribute(boxed, 0);
      }
    });
    return found;
  }
  template <BaseType b>
  auto element() {
    if constexpr (b == BaseType::Int) {
      return in_.signed_number();
    } else if constexpr (b == BaseType::Float) {
      return in_.real();
    } else if constexpr (b == BaseType::Bool) {
      return in_.boolean();
    } else if constexpr (b == BaseType::Str) {
      return text();
    } else if constexpr (b == BaseType::Scalar) {
      return in_.scalar();
    } else if constexpr (b == BaseType::ScalarType) {
      return named([](const std::string& word) { return parse_dtype(word); }, "dtype");
    } else if constexpr (b == BaseType::Layout) {
      return named(parse_layout, "layout");
    } else if constexpr (b == BaseType::MemoryFormat) {
      return named(parse_memory_format, "memory format");
    } else {
      static_assert(b == BaseType::Device);
      return named(parse_device, "device that is there");
    }
  }
  Node node(bool member) {
    const size_t at = in_.position();
    const OperatorHandle op = named(find_operator, "operator that is there");
    const std::optional<RegionKind> kind = region_kind(op);
    if (kind && member) in_.fail_at(at, "a member of a region is no region");
    list([&] {
      const ValueId written = value();
      g_.add_def({written, geometries_[in_.below(geometries_.size(), "geometry")]});
    });
    for (const schema::Argument& declared : op.schema().arguments) argument(declared.type);
    Node result = g_.make_node(op);
    if (kind) result.region = region(*kind);
    return result;
  }

  RegionPtr region(RegionKind kind) {
    RegionPtr r(new Region);
    r->kind = kind;
    r->name = text();
    list([&] { r->members.push_back(node(true)); });
    list([&] { r->numbers.push_back(number_source(*r)); });
    list([&] { r->over.push_back(in_.signed_number()); });
    r->anchor_member = in_.id(r->members.size(), "member");
    list([&] { r->prologue.push_back(part()); });
    r->body = part();
    r->epilogue = part();
    r->engine = text();
    list([&] {
      const std::string& knob = text();
      r->knobs.emplace_back(knob, in_.signed_number());
    });
    return r;
  }
  NumberSource number_source(const Region& region) {
    const size_t at = in_.position();
    const uint32_t member = in_.below(region.members.size(), "member");
    const auto lowered = lower_call(g_, region.members[member]);
    if (!lowered) in_.fail_at(at, "the member has no numbers");
    const uint32_t slot = in_.below(lowered->numbers.size(), "number of the member");
    return {member, slot, lowered->numbers[slot]};
  }
  RegionPart part() {
    RegionPart p;
    if (!in_.boolean()) return p;
    const size_t at = in_.position();
    try {
      p.expression = expr::parse_typed(text());
    } catch (const Error& error) {
      in_.fail_at(at, error.what());
    }
    list([&] { p.inputs.push_back(in_.id(kNone - 1, "use")); });
    list([&] { p.numbers.push_back(in_.below(kNone, "number")); });
    list([&] { p.outputs.push_back(in_.below(kNone, "def")); });
    return p;
  }

  ByteReader in_;
  Graph g_;
  std::vector<std::string> texts_;
  std::vector<GeometryId> geometries_;  // by their places in the file
};

}  // namespace

Graph deserialize(std::span<const std::byte> bytes) { return Deserializer(bytes).run(); }

}  // namespace tenon::graph
