#include "tenon/io/checkpoint_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

using Kind = Value::Kind;

constexpr size_t kMostDims = 64;
// Of the keys and devices of storages, which are copied and hashed.
constexpr size_t kMostName = 200;
// What the spelling of one tensor takes at least. A tensor without elements counts that much.
constexpr uint64_t kLeastTensor = 8;
constexpr const char* kAdvice =
    "; a checkpoint holds tensors, numbers and text, in dicts and lists. Nothing of it was executed. If a "
    "whole module was "
    "saved, save its state_dict()";

/// Types and functions that checkpoints name. Each is known by the name that the newest writer gives it.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"collections.OrderedDict", "OrderedDict"},
    {"collections.Counter", "Counter"},
    {"torch._utils._rebuild_tensor", "_rebuild_tensor"},
    {"torch._utils._rebuild_tensor_v2", "_rebuild_tensor_v2"},
    {"torch._utils._rebuild_tensor_v3", "_rebuild_tensor_v3"},
    {"torch._utils._rebuild_parameter", "_rebuild_parameter"},
    {"torch._utils._rebuild_parameter_with_state", "_rebuild_parameter_with_state"},
    {"torch._tensor._rebuild_from_type_v2", "_rebuild_from_type_v2"},
    {"tenon._C._rebuild_tensor", "tenon._rebuild_tensor"},
    {"torch.Tensor", "Tensor"},
    {"tenon.Tensor", "Tensor"},
    {"torch.nn.parameter.Parameter", "Parameter"},
    {"tenon.nn.parameter.Parameter", "Parameter"},
    {"torch.nn.parameter.Buffer", "Tensor"},
    {"torch.Size", "Size"},
    {"tenon.Size", "Size"},
    {"torch.device", "device"},
    {"tenon.device", "device"},
    {"__builtin__.complex", "complex"},
    {"builtins.complex", "complex"},
    {"__builtin__.set", "set"},
    {"builtins.set", "set"},
    {"__builtin__.bytearray", "bytearray"},
    {"builtins.bytearray", "bytearray"},
    {"_codecs.encode", "encode"},
};

/// PyTorch's dtypes that Tenon does not have.
constexpr std::string_view kAbsentDTypes[] = {
    "torch.uint16",          "torch.uint32",          "torch.uint64",         "torch.complex32",
    "torch.float8_e4m3fnuz", "torch.float8_e5m2fnuz", "torch.float8_e8m0fnu", "torch.float4_e2m1fn_x2",
};

/// What PyTorch has and Tenon does not, by the function that rebuilds it, and the way out.
constexpr std::pair<std::string_view, std::string_view> kAbsentValues[] = {
    {"torch._utils._rebuild_sparse_tensor", "a sparse tensor, and Tenon has none yet; save its to_dense()"},
    {"torch._utils._rebuild_sparse_csr_tensor",
     "a sparse tensor, and Tenon has none yet; save its to_dense()"},
    {"torch._utils._rebuild_nested_tensor", "a nested tensor, and Tenon has none yet; save its unbind()"},
    {"torch._utils._rebuild_qtensor",
     "a quantized tensor, and Tenon reads none from checkpoints of PyTorch yet; save its dequantize()"},
    {"torch._utils._rebuild_meta_tensor_no_storage",
     "a tensor on the meta device, which has no elements; save one that has"},
    {"torch.serialization._get_layout",
     "a layout, such as torch.strided, and Tenon has none yet; save its name"},
};

/// The dtypes of PyTorch's storages, which "torch.FloatStorage" and its kin name.
constexpr std::pair<std::string_view, DType> kStorages[] = {
    {"torch.storage.UntypedStorage", DType::UInt8},
    {"torch.DoubleStorage", DType::Float64},
    {"torch.FloatStorage", DType::Float32},
    {"torch.HalfStorage", DType::Float16},
    {"torch.BFloat16Storage", DType::BFloat16},
    {"torch.LongStorage", DType::Int64},
    {"torch.IntStorage", DType::Int32},
    {"torch.ShortStorage", DType::Int16},
    {"torch.CharStorage", DType::Int8},
    {"torch.ByteStorage", DType::UInt8},
    {"torch.BoolStorage", DType::Bool},
    {"torch.ComplexFloatStorage", DType::Complex64},
    {"torch.ComplexDoubleStorage", DType::Complex128},
};

template <class T>
const T* row_of(std::span<const std::pair<std::string_view, T>> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, [](const auto& row) { return row.first; });
  return found == rows.end() ? nullptr : &found->second;
}

/// "torch.float32", "tenon.float32".
std::optional<DType> dtype_named(std::string_view name) {
  for (const std::string_view module : {"torch.", "tenon._C.", "tenon."}) {
    if (!name.starts_with(module)) continue;
    for (const DType t : kDTypes)
      if (name.substr(module.size()) == tenon::name(t)) return t;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_object(std::string what) { refuse_pickle(std::move(what)); }

/// The arguments of one call, by number.
class Arguments {
 public:
  Arguments(std::string_view function, const Node::List& values) : function_(function), values_(values) {}

  size_t size() const { return values_.size(); }
  void between(size_t least, size_t most) const {
    if (size() < least || size() > most) refuse_object(fmt::format("{} has {} arguments", function_, size()));
  }
  const Node& at(size_t i) const { return *values_[i]; }
  Node* node(size_t i) const { return values_[i]; }
  template <class T>
  const T& get(size_t i, Kind kind, const char* what) const {
    const T* const value = at(i).kind == kind ? std::get_if<T>(&at(i).value) : nullptr;
    if (!value) wrong(i, what);
    return *value;
  }
  std::string_view text(size_t i) const { return get<std::string_view>(i, Kind::Text, "text"); }
  /// A text that names something.
  std::string_view name(size_t i) const {
    if (text(i).size() > kMostName) wrong(i, "a short text");
    return text(i);
  }
  bool boolean(size_t i) const { return get<bool>(i, Kind::Bool, "a bool"); }
  int64_t integer(size_t i) const { return get<int64_t>(i, Kind::Int, "an int"); }
  DType dtype(size_t i) const { return get<DType>(i, Kind::DType, "a dtype"); }
  Dims dims(size_t i) const {
    const Node::List& list = get<Node::List>(i, Kind::Tuple, "a tuple");
    if (list.size() > kMostDims) wrong(i, "a tuple of at most 64 numbers");
    Dims out;
    for (const Node* node : list) {
      const auto* const number = node->kind == Kind::Int ? std::get_if<int64_t>(&node->value) : nullptr;
      if (!number || *number < 0) wrong(i, "a tuple of numbers, none negative");
      out.push_back(*number);
    }
    return out;
  }
  [[noreturn]] void wrong(size_t i, const char* what) const {
    refuse_object(fmt::format("argument {} of {} must be {}", i + 1, function_, what));
  }

 private:
  const std::string_view function_;
  const Node::List& values_;
};

/// The bytes from the first element to the end of the last; strides are not negative.
uint64_t extent(const Dims& sizes, const Dims& strides, int64_t offset, DType dtype) {
  int64_t last = offset, count = 1;
  bool overflow = false, is_empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t step = 0;
    is_empty |= sizes[d] == 0;
    overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &step);
    overflow |= __builtin_add_overflow(last, step, &last);
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(sizes[d], 1), &count);
  }
  const auto item = static_cast<int64_t>(item_size(dtype));
  int64_t bytes = 0;
  overflow |= __builtin_mul_overflow(count, item, &bytes);
  if (overflow || last == std::numeric_limits<int64_t>::max() ||
      __builtin_mul_overflow(last + 1, item, &bytes))
    refuse_object("a tensor has more elements than can be counted");
  return is_empty ? 0 : static_cast<uint64_t>(bytes);
}

/// Sets are made of lists, and dicts of lists of pairs.
const Node::List& list_of(const Arguments& arguments, size_t i) {
  const Node& node = arguments.at(i);
  if ((node.kind != Kind::List && node.kind != Kind::Tuple) || !node.is_plain()) arguments.wrong(i, "a list");
  return node.list();
}

}  // namespace

Node* CheckpointObjects::named(Nodes& nodes, std::string_view name) {
  if (const auto dtype = dtype_named(name)) return add(nodes, Kind::DType, *dtype);
  if (const auto* known = row_of<std::string_view>(kNames, name))
    return add(nodes, Kind::None, Named{*known});
  for (const auto& [storage, dtype] : kStorages)
    if (storage == name) return add(nodes, Kind::None, Named{storage});
  for (const std::string_view absent : kAbsentDTypes)
    if (absent == name) return add(nodes, Kind::None, Named{absent});
  if (const auto* absent = row_of<std::string_view>(kAbsentValues, name))
    refuse_object(fmt::format("it holds {} ({})", *absent, name));
  refuse_object(fmt::format("it names {}{}", shown(name), kAdvice));
}

Node* CheckpointObjects::frozenset(Nodes& nodes, Node::List elements) {
  if (writer_ != Writer::Tenon)
    refuse_object("it holds a frozenset, as no checkpoint of PyTorch does; save a set");
  return add(nodes, Kind::Set, std::move(elements), true);
}

Node* CheckpointObjects::persistent(Nodes& nodes, const Node& id) {
  static const std::string kName = "a storage";
  if (id.kind != Kind::Tuple || !id.is_plain())
    refuse_object("a stored object has no tuple as its identifier");
  const Arguments arguments(kName, id.list());
  const size_t count_of_arguments = writer_ == Writer::Legacy ? 6 : 5;
  arguments.between(count_of_arguments, count_of_arguments);
  const auto* const named = std::get_if<Named>(&arguments.at(1).value);
  const DType* const dtype = named ? row_of<DType>(kStorages, named->name) : nullptr;
  if (arguments.text(0) != "storage" || !dtype) arguments.wrong(1, "a type of storage");
  const int64_t count = arguments.integer(4);
  uint64_t nbytes = 0;
  if (count < 0 || __builtin_mul_overflow(static_cast<uint64_t>(count), item_size(*dtype), &nbytes))
    arguments.wrong(4, "a number of elements");
  const std::string key(arguments.name(2)), location(arguments.name(3));
  const auto [number, first] = numbers_.try_emplace(key, storages_.size());
  if (first) storages_.push_back({key, location, nbytes, {}, item_size(*dtype)});
  if (storages_[number->second].nbytes != nbytes)
    refuse_object(fmt::format("storage '{}' has two sizes", shown(key)));
  StoredBytes out{number->second, *dtype, nbytes, 0};
  if (writer_ == Writer::Legacy && arguments.at(5).kind != Kind::None) {  // (key, offset, size): a part of it
    const Arguments part("a view of a storage", arguments.get<Node::List>(5, Kind::Tuple, "a tuple"));
    part.between(3, 3);
    const int64_t begin = part.integer(1), size = part.integer(2);
    if (begin < 0 || size < 0 || begin > count || size > count - begin)
      refuse_object(fmt::format("a view of storage '{}' reaches beyond it", shown(key)));
    out.offset = static_cast<uint64_t>(begin) * item_size(*dtype);
    out.nbytes = static_cast<uint64_t>(size) * item_size(*dtype);
  }
  return add(nodes, Kind::None, out);
}

/// (storage, offset, sizes, strides, requires_grad, hooks, [dtype of an untyped storage], [metadata])
Node* CheckpointObjects::rebuild_tensor(Nodes& nodes, std::string_view function, const Node::List& values) {
  const Arguments arguments("_rebuild_tensor", values);
  const bool typed = function == "_rebuild_tensor_v3";
  if (function == "_rebuild_tensor")
    arguments.between(4, 4);
  else
    arguments.between(6U + typed, 7U + typed);
  const auto* const stored = std::get_if<StoredBytes>(&arguments.at(0).value);
  if (!stored) arguments.wrong(0, "a storage");
  const auto* const absent = typed ? std::get_if<Named>(&arguments.at(6).value) : nullptr;
  View view{nullptr,
            stored->storage,
            absent  ? DType::UInt8
            : typed ? arguments.dtype(6)
                    : stored->dtype,
            arguments.dims(2),
            arguments.dims(3),
            arguments.integer(1),
            false};
  if (absent) view.absent = absent->name;
  if (arguments.size() > 4) view.requires_grad = arguments.boolean(4);
  if (const size_t at = typed ? 7 : 6; arguments.size() > at && arguments.at(at).kind != Kind::None) {
    const Node& metadata = arguments.at(at);
    if (metadata.kind != Kind::Dict) arguments.wrong(at, "a dict");
    const Node::List& pairs = metadata.list();
    constexpr size_t kMostMetadata = 16;
    if (pairs.size() > kMostMetadata) arguments.wrong(at, "a dict of few elements");
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto* const key =
          pairs[i]->kind == Kind::Text ? std::get_if<std::string_view>(&pairs[i]->value) : nullptr;
      const auto* const holds =
          pairs[i + 1]->kind == Kind::Bool ? std::get_if<bool>(&pairs[i + 1]->value) : nullptr;
      if (!key || !holds || (*key != "conj" && *key != "neg"))
        refuse_object("a tensor has metadata that is not known; save a copy of it without");
      (*key == "conj" ? view.conj : view.neg) = *holds;
    }
  }
  if (view.strides.size() != view.sizes.size()) arguments.wrong(3, "as long as the sizes");
  if (view.offset < 0) arguments.wrong(1, "0 or more");
  if (extent(view.sizes, view.strides, view.offset, view.dtype) > stored->nbytes)
    refuse_object(fmt::format("a tensor of shape {} reaches beyond its storage '{}' of {} bytes",
                              to_string(view.sizes), shown(storages_[stored->storage].key), stored->nbytes));
  if (stored->offset % item_size(view.dtype) != 0)
    refuse_object(fmt::format("a tensor of {} is over a view of a storage that begins between two elements",
                              name(view.dtype)));
  if (__builtin_add_overflow(view.offset, stored->offset / item_size(view.dtype), &view.offset))
    refuse_object("a tensor has more elements than can be counted");
  return add_view(nodes, std::move(view), false);
}

Node* CheckpointObjects::add_view(Nodes& nodes, View view, bool is_parameter) {
  const bool has_sign = is_floating_point(view.dtype) || is_complex(view.dtype);
  if (view.absent.empty() && ((view.neg && !has_sign) || (view.conj && !is_complex(view.dtype))))
    refuse_object(
        fmt::format("a tensor of {} is {}", name(view.dtype), view.conj ? "conjugated" : "negated"));
  if (view.requires_grad && view.absent.empty() && !has_sign)
    refuse_object(fmt::format("a tensor of {} requires grad", name(view.dtype)));
  allowance_.use(kLeastTensor);
  view.node = add(nodes, Kind::Tensor, Unread{views_.size()}, is_parameter);
  views_.push_back(std::move(view));
  return views_.back().node;
}

/// (type, bytes, sizes, dtype, requires_grad, [device])
Node* CheckpointObjects::rebuild_own_tensor(Nodes& nodes, const Node::List& values) {
  static const std::string kName = "tenon._rebuild_tensor";
  const Arguments arguments(kName, values);
  arguments.between(5, 6);
  const auto* const type = std::get_if<Named>(&arguments.at(0).value);
  if (!type || (type->name != "Tensor" && type->name != "Parameter")) arguments.wrong(0, "a type of tensors");
  const std::string_view bytes = arguments.get<std::string_view>(1, Kind::Bytes, "bytes");
  const Dims sizes = arguments.dims(2);
  const DType dtype = arguments.dtype(3);
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d > 0; --d) {
    strides[d - 1] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(sizes[d - 1], 1), &step))
      refuse_object("a tensor has more elements than can be counted");
  }
  if (extent(sizes, strides, 0, dtype) != bytes.size())
    refuse_object(fmt::format("a tensor of shape {} and dtype {} does not take {} bytes", to_string(sizes),
                              name(dtype), bytes.size()));
  allowance_.use(bytes.size());
  const std::string location(arguments.size() == 6 ? arguments.name(5) : "cpu");
  storages_.push_back({{}, location, bytes.size(), bytes});
  View view{nullptr, storages_.size() - 1, dtype, sizes, strides, 0, arguments.boolean(4)};
  return add_view(nodes, std::move(view), type->name == "Parameter");
}

namespace {

/// The state of an object, as an argument: a dict of attributes, or a pair of it and of what slots hold.
Node* attributes_of(const Arguments& arguments, size_t i) {
  Node* state = arguments.node(i);
  if (state->kind == Kind::Tuple && state->is_plain() && state->list().size() == 2) state = state->list()[0];
  if (state->is_plain() && state->kind == Kind::None) return nullptr;
  if (!state->is_plain() || state->kind != Kind::Dict) arguments.wrong(i, "a dict of attributes");
  return state;
}

}  // namespace

/// (tensor, requires_grad, hooks, [attributes])
Node* CheckpointObjects::rebuild_parameter(Nodes& nodes, std::string_view function,
                                           const Node::List& values) {
  const Arguments arguments(function, values);
  const bool has_state = function == "_rebuild_parameter_with_state";
  arguments.between(has_state ? 4 : 2, has_state ? 4 : 3);
  const auto* const data = std::get_if<Unread>(&arguments.at(0).value);
  if (!data) arguments.wrong(0, "a tensor");
  View view = views_[data->view];
  view.requires_grad = arguments.boolean(1);
  Node* const out = add_view(nodes, std::move(view), true);
  if (has_state) out->attributes = attributes_of(arguments, 3);
  return out;
}

Node::List CheckpointObjects::copy_of(const Node::List& list) {
  allowance_.use(list.size());
  return list;
}

Node* CheckpointObjects::call(Nodes& nodes, std::string_view function, const Node::List& values) {
  const Arguments arguments(function, values);
  if (function.starts_with("_rebuild_tensor")) return rebuild_tensor(nodes, function, values);
  if (function == "tenon._rebuild_tensor") return rebuild_own_tensor(nodes, values);
  if (function.starts_with("_rebuild_parameter")) return rebuild_parameter(nodes, function, values);
  if (function == "_rebuild_from_type_v2") {  // (function, type, its arguments, attributes)
    arguments.between(4, 4);
    const auto* const inner = std::get_if<Named>(&arguments.at(0).value);
    const auto* const type = std::get_if<Named>(&arguments.at(1).value);
    if (!inner || !inner->name.starts_with("_rebuild_tensor"))
      arguments.wrong(0, "a function that makes tensors");
    if (!type || (type->name != "Tensor" && type->name != "Parameter"))
      arguments.wrong(1, "a type of tensors");
    Node* const out = call(nodes, inner->name, arguments.get<Node::List>(2, Kind::Tuple, "a tuple"));
    out->attributes = attributes_of(arguments, 3);
    return out;
  }
  if (function == "OrderedDict") {
    arguments.between(0, 1);
    Node* const out = add(nodes, Kind::Dict, Node::List(), true);
    if (arguments.size() == 0) return out;
    for (const Node* pair : copy_of(list_of(arguments, 0))) {
      if ((pair->kind != Kind::List && pair->kind != Kind::Tuple) || !pair->is_plain() ||
          pair->list().size() != 2)
        arguments.wrong(0, "a list of pairs");
      out->list().insert(out->list().end(), pair->list().begin(), pair->list().end());
    }
    return out;
  }
  if (function == "Counter") {
    arguments.between(0, 1);
    if (arguments.size() == 1 && arguments.at(0).kind != Kind::Dict) arguments.wrong(0, "a dict");
    Node* const out =
        add(nodes, Kind::Dict, arguments.size() ? copy_of(arguments.at(0).list()) : Node::List());
    out->counts = true;
    return out;
  }
  if (function == "set") {
    arguments.between(0, 1);
    return add(nodes, Kind::Set, arguments.size() ? copy_of(list_of(arguments, 0)) : Node::List());
  }
  if (function == "Size") {
    arguments.between(1, 1);
    Node::List sizes = copy_of(list_of(arguments, 0));
    for (const Node* size : sizes)
      if (size->kind != Kind::Int) arguments.wrong(0, "a tuple of numbers");
    return add(nodes, Kind::Tuple, std::move(sizes), true);
  }
  if (function == "complex") {
    arguments.between(2, 2);
    const auto part = [&](size_t i) { return arguments.get<double>(i, Kind::Float, "a float"); };
    return add(nodes, Kind::Complex, std::complex<double>(part(0), part(1)));
  }
  if (function == "device") {
    arguments.between(1, 2);
    std::string text(arguments.name(0));
    if (arguments.size() == 2) text += fmt::format(":{}", arguments.integer(1));
    return add_text(nodes, Kind::Device, std::move(text));
  }
  if (function == "encode") {  // bytes, as protocol 2 has them
    arguments.between(2, 2);
    if (arguments.text(1) != "latin1") arguments.wrong(1, "'latin1'");
    const std::string_view text = arguments.text(0);
    allowance_.use(text.size());
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      auto c = static_cast<unsigned char>(text[i]);
      if (c >= 0x80) {
        if ((c != 0xc2 && c != 0xc3) || i + 1 == text.size()) arguments.wrong(0, "of Latin 1");
        c = static_cast<unsigned char>((c & 3) << 6 | (text[++i] & 0x3f));
      }
      out += static_cast<char>(c);
    }
    return add_text(nodes, Kind::Bytes, std::move(out));
  }
  if (function == "bytearray") {
    arguments.between(0, 1);
    if (arguments.size() == 0) return add(nodes, Kind::Bytes, std::string_view(), true);
    const std::string_view bytes = arguments.get<std::string_view>(0, Kind::Bytes, "bytes");
    return add(nodes, Kind::Bytes, bytes, true);
  }
  refuse_object(fmt::format("it calls {}{}", function, kAdvice));
}

}  // namespace tenon::io
