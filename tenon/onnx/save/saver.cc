#include "tenon/onnx/save/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tenon/dispatch/operator.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/io/replace_file.h"
#include "tenon/onnx/types.h"

namespace tenon::onnx {
namespace {

using graph::Geometry;
using graph::ValueId;

/// Whether both have the same elements in the same order. Strides of dimensions of size 1 do not count.
bool same_elements(const Geometry& a, const Geometry& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  if (a.numel() == 0) return true;
  if (a.offset != b.offset) return false;
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

/// Whether it has each element of a storage once.
bool is_whole(const Geometry& g, size_t nbytes) {
  if (g.offset != 0 || static_cast<size_t>(g.numel()) * item_size(g.dtype) != nbytes) return false;
  int64_t reach = 1;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] > 1 && g.strides[d] <= 0) return false;
    reach += (g.sizes[d] - 1) * g.strides[d];
  }
  return g.numel() == 0 || reach == g.numel();
}

Tensor tensor_over(const Storage& storage, const Geometry& g) {
  return Tensor(TensorImpl::make(storage, g.dtype, g.sizes, g.strides, g.offset));
}

}  // namespace

Saver::Saver(const Inference& function, const SaveOptions& options)
    : graph_(function.graph()), signature_(function.signature()), function_(function), options_(options) {
  for (const auto& [id, storage] : signature_.constants) constants_.emplace(id, storage);
  used_.resize(graph_.values.size());
  last_.assign(graph_.storages.size(), graph::kNone);
  for (ValueId v = 0; v < graph_.values.size(); ++v) {
    const graph::Value& value = graph_.values[v];
    if (value.storage != graph::kNone) last_[value.storage] = v;
    if (value.previous != graph::kNone) used_[value.previous] = true;
  }
  for (const graph::Node& node : graph_.nodes)
    for (const graph::Use& use : graph_.uses(node))
      if (use.value != graph::kNone) used_[use.value] = true;
}

WrittenModel Saver::model() {
  for (size_t i = 0; i < function_.inputs().size(); ++i) add_input(i);
  for (size_t i = 0; i < function_.outputs().size(); ++i)
    for (const auto& t : signature_.tensors)
      if (t.uid == function_.inputs().size() + i) used_[last_[t.storage]] = true;
  for (const graph::Node& node : graph_.nodes) {
    call_ = text_of(node);
    try {
      add_node(node);
    } catch (const Unsaid& unsaid) {
      unsaid_.push_back(call_ + (unsaid.why.empty() ? "" : ": " + unsaid.why));
      for (const graph::Def& def : graph_.defs(node))
        held_.insert_or_assign(def.value, Held{fresh("absent"), graph_.geometry(def.geometry)});
    }
  }
  call_ = "a result";
  for (size_t i = 0; i < function_.outputs().size(); ++i) try {
      add_output(i);
    } catch (const Unsaid& unsaid) {
      unsaid_.push_back(call_ + ": " + unsaid.why);
    }
  std::vector<std::string> all;
  for (const std::string& text : unsaid_)
    if (std::ranges::find(all, text) == all.end()) all.push_back(text);
  TENON_CHECK(
      all.empty(), NotImplemented,
      fmt::format("onnx.save: ONNX has no operators for {} of the calls: {}. save_program writes them",
                  all.size(), fmt::join(all, "; ")));
  return std::move(model_);
}

std::string Saver::text_of(const graph::Node& node) const {
  std::string name = node.op.full_name();
  return node.line ? fmt::format("{} ({})", name, describe_source(node.line)) : name;
}

void Saver::add_node(const graph::Node& node) {
  std::string op = node.op.full_name();
  for (const graph::Use& use : graph_.uses(node))
    if (use.value != graph::kNone && !number_of(graph_.geometry(use.geometry).dtype))
      throw Unsaid{fmt::format("ONNX does not have {}", name(graph_.geometry(use.geometry).dtype))};
  // An operator that writes its first argument is written as the one that returns it.
  const size_t end = std::min(op.find('.'), op.size());
  if (end > 0 && op[end - 1] == '_') op.erase(end - 1, 1);
  if (const SavedRow* row = find_saved_row(op)) {
    SavedCall call(*this, node);
    return row->write(call);
  }
  if (const auto lowered = graph::lower_call(graph_, node)) return add_expression(node, *lowered);
  // Of a tensor without dimensions, it is the tensor.
  constexpr std::array kReductions{"sum", "prod", "mean", "amax", "amin"};
  const auto uses = graph_.uses(node);
  const auto defs = graph_.defs(node);
  const bool is_one = uses.size() == 1 && defs.size() == 1 && graph_.geometry(uses[0].geometry).sizes.empty();
  if (!is_one || std::ranges::find(kReductions, node.op.schema().name) == kReductions.end()) throw Unsaid{};
  const DType from = graph_.geometry(uses[0].geometry).dtype, to = graph_.geometry(defs[0].geometry).dtype;
  write(defs[0], cast(read(uses[0].value, graph_.geometry(uses[0].geometry)), from, to));
}

void Saver::add_input(size_t i) {
  const Inference::Port& port = function_.inputs()[i];
  Port written{.name = i < options_.input_names.size() ? options_.input_names[i] : fmt::format("input_{}", i),
               .dtype = port.dtype};
  TENON_CHECK(number_of(port.dtype), NotImplemented,
              fmt::format("onnx.save: input '{}' is of {}, which ONNX does not have", written.name,
                          name(port.dtype)));
  written.shape.emplace(port.sizes.begin(), port.sizes.end());
  for (const auto& axis : options_.dynamic_axes)
    if (axis.input == i) (*written.shape)[static_cast<size_t>(axis.axis)] = axis.name;
  taken_.emplace(written.name, 1);
  for (const auto& t : signature_.tensors) {
    if (t.uid != i) continue;
    for (ValueId v = 0; v < graph_.values.size(); ++v)
      if (graph_.values[v].storage == t.storage && graph_.values[v].producer == graph::kNone)
        held_.emplace(v, Held{written.name, Geometry{.dtype = port.dtype,
                                                     .sizes = port.sizes,
                                                     .strides = contiguous_strides(port.sizes)}});
  }
  model_.inputs.push_back(std::move(written));
}

void Saver::add_output(size_t i) {
  const Inference::Port& port = function_.outputs()[i];
  Port written{
      .name = i < options_.output_names.size() ? options_.output_names[i] : fmt::format("output_{}", i),
      .dtype = port.dtype};
  if (!number_of(port.dtype)) throw Unsaid{fmt::format("ONNX does not have {}", name(port.dtype))};
  written.shape.emplace(port.sizes.begin(), port.sizes.end());
  Name found;
  for (const auto& t : signature_.tensors)
    if (t.uid == function_.inputs().size() + i)
      found =
          read(last_[t.storage],
               Geometry{.dtype = port.dtype, .sizes = port.sizes, .strides = contiguous_strides(port.sizes)});
  if (found.empty()) found = constant(function_.constant_output(i));
  model_.nodes.push_back({"Identity", {found}, {written.name}, {}, call_});
  model_.outputs.push_back(std::move(written));
}

// Nodes and constants

Name Saver::fresh(std::string_view stem) { return fmt::format("{}_{}", stem, num_names_++); }

std::vector<Name> Saver::nodes(std::string_view op, std::vector<Name> inputs, WrittenAttributes attributes,
                               size_t num_outputs) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  std::vector<Name> outputs;
  for (size_t i = 0; i < num_outputs; ++i) outputs.push_back(fresh(op));
  model_.nodes.push_back({std::string(op), std::move(inputs), outputs, std::move(attributes), call_});
  return outputs;
}
Name Saver::node(std::string_view op, std::vector<Name> inputs, WrittenAttributes attributes) {
  return nodes(op, std::move(inputs), std::move(attributes), 1)[0];
}

Name Saver::constant(const Tensor& t, Name name) {
  model_.constants.push_back({name, t.detach().contiguous()});
  return name;
}
Name Saver::number(const Scalar& value, DType dtype) {
  return constant(full({}, value, TensorOptions(dtype)));
}
Name Saver::ints(IntArrayRef values) {
  model_.sizes.push_back({fresh("sizes"), {values.begin(), values.end()}});
  return model_.sizes.back().name;
}
Name Saver::size(int64_t value) {
  model_.sizes.push_back({fresh("size"), {value}, true});
  return model_.sizes.back().name;
}

Name Saver::cast(const Name& x, DType from, DType to) {
  return from == to ? x : node("Cast", {x}, {{"to", *number_of(to)}});
}

Name Saver::reshape(const Name& x, IntArrayRef from, IntArrayRef to) {
  if (std::ranges::equal(from, to)) return x;
  const auto ones = [](IntArrayRef more, IntArrayRef fewer) -> std::optional<std::vector<int64_t>> {
    std::vector<int64_t> axes;
    size_t next = 0;
    for (size_t d = 0; d < more.size(); ++d) {
      if (next < fewer.size() && more[d] == fewer[next] &&
          (more[d] != 1 || more.size() - d == fewer.size() - next))
        ++next;
      else if (more[d] == 1)
        axes.push_back(static_cast<int64_t>(d));
      else
        return std::nullopt;
    }
    if (next != fewer.size()) return std::nullopt;
    return axes;
  };
  if (from.size() > to.size())
    if (const auto axes = ones(from, to)) return node("Squeeze", {x, ints(*axes)});
  if (from.size() < to.size())
    if (const auto axes = ones(to, from)) return node("Unsqueeze", {x, ints(*axes)});
  const Name shape = ints(to);
  model_.sizes.back().is_shape = true;
  return node("Reshape", {x, shape}, {{"allowzero", int64_t{std::ranges::count(to, 0) > 0}}});
}
Name Saver::transpose(const Name& x, std::span<const int64_t> order) {
  if (std::ranges::is_sorted(order)) return x;
  return node("Transpose", {x}, {{"perm", std::vector<int64_t>(order.begin(), order.end())}});
}
Name Saver::expand(const Name& x, IntArrayRef from, IntArrayRef to) {
  return std::ranges::equal(from, to) ? x : node("Expand", {x, ints(to)});
}

// Values

Name Saver::read(ValueId value, const Geometry& wanted) {
  for (const auto& [key, name] : read_)
    if (key.first == value && same_elements(key.second, wanted)) return name;
  const graph::Value& v = graph_.values[value];
  const auto found = held_.find(value);
  Name name;
  if (found != held_.end()) {
    if (same_elements(found->second.geometry, wanted)) return found->second.name;
    name = view(found->second, wanted);
  } else {
    const auto storage = constants_.find(v.storage);
    if (storage == constants_.end() || v.producer != graph::kNone)
      throw Unsaid{"it reads memory that no call has written"};
    name = read_constant(value, storage->second, wanted);
  }
  read_.emplace_back(std::pair(value, wanted), name);
  return name;
}

/// A constant gets the name and form of a weight that it is, or the form in which it is read first.
Name Saver::read_constant(ValueId value, const Storage& storage, const Geometry& wanted) {
  for (size_t place = 0; place < options_.weights.size(); ++place) {
    const auto& [name, weight] = options_.weights[place];
    if (!weight.defined() || weight.storage() != storage || weight.layout() != Layout::Strided) continue;
    const Geometry g{.dtype = weight.dtype(),
                     .offset = weight.storage_offset(),
                     .sizes = weight.sizes().to_dims(),
                     .strides = weight.strides().to_dims()};
    const bool whole = is_whole(g, storage.nbytes());
    if (g.dtype != wanted.dtype || !(whole || same_elements(g, wanted))) continue;
    Name own = name;
    while (!taken_.try_emplace(own, 1).second) own += "_";
    const Held held{constant(weight, own), g};
    model_.constants.back().place = place;
    if (whole) held_.emplace(value, held);
    return same_elements(g, wanted) ? held.name : view(held, wanted);
  }
  // Dimensions without a stride are written as nodes, not as bytes.
  Geometry once = wanted;
  for (size_t d = 0; d < once.sizes.size(); ++d)
    if (once.strides[d] == 0 && once.sizes[d] > 0) once.sizes[d] = 1;
  const Name name = constant(tensor_over(storage, once));
  if (is_whole(once, storage.nbytes())) held_.emplace(value, Held{name, once});
  return expand(name, once.sizes, wanted.sizes);
}

/// The value as one tensor: of a constant that has none, all of its elements in the dtype of `wanted`.
const Saver::Held& Saver::held(ValueId value, const Geometry& wanted) {
  if (const auto found = held_.find(value); found != held_.end()) return found->second;
  const auto storage = constants_.find(graph_.values[value].storage);
  if (storage == constants_.end()) throw Unsaid{"it writes a part of memory that no call has written"};
  const Dims all{static_cast<int64_t>(storage->second.nbytes() / item_size(wanted.dtype))};
  const Geometry g{.dtype = wanted.dtype, .sizes = all, .strides = Dims{1}};
  return held_.emplace(value, Held{constant(tensor_over(storage->second, g)), g}).first->second;
}

void Saver::write(const graph::Def& def, const Name& name) {
  const graph::Value& value = graph_.values[def.value];
  const Geometry& at = graph_.geometry(def.geometry);
  if (value.previous != graph::kNone && !is_whole(at, graph_.storages[value.storage].nbytes)) {
    const Held base = held(value.previous, at);
    if (base.geometry.numel() != at.numel() && at.numel() > 0) {
      if (std::optional<Held> with = with_slice(base, at, name)) {
        held_.insert_or_assign(def.value, std::move(*with));
        return;
      }
    } else if (at.numel() == 0) {
      held_.insert_or_assign(def.value, base);
      return;
    }
  }
  held_.insert_or_assign(def.value, Held{name, at});
}

// Calls

const graph::Use& SavedCall::use(size_t i) const { return s.graph_.uses(argument(i))[0]; }
Name SavedCall::tensor(size_t i) const { return s.read(use(i).value, geometry(i)); }
std::vector<Name> SavedCall::tensors(size_t i) const {
  std::vector<Name> out;
  for (const graph::Use& u : s.graph_.uses(argument(i)))
    out.push_back(u.value == graph::kNone ? Name() : s.read(u.value, s.graph_.geometry(u.geometry)));
  return out;
}
std::vector<graph::Geometry> SavedCall::geometries(size_t i) const {
  std::vector<Geometry> out;
  for (const graph::Use& u : s.graph_.uses(argument(i)))
    out.push_back(u.value == graph::kNone ? Geometry() : s.graph_.geometry(u.geometry));
  return out;
}
std::pair<Name, bool> SavedCall::matrix(size_t i) const {
  Geometry turned = geometry(i);
  const size_t n = turned.sizes.size();
  std::swap(turned.sizes[n - 2], turned.sizes[n - 1]);
  std::swap(turned.strides[n - 2], turned.strides[n - 1]);
  const Name own = tensor(i);
  const auto held = s.held_.find(use(i).value);
  // What reading it has added, if anything, is not used then, and left out.
  if (held != s.held_.end() && held->second.name != own && same_elements(held->second.geometry, turned))
    return {held->second.name, true};
  return {own, false};
}
const Saver::Product* SavedCall::product(size_t i) const {
  const auto held = s.held_.find(use(i).value);
  if (held == s.held_.end()) return nullptr;
  const Geometry &own = held->second.geometry, &here = geometry(i);
  // The same rows, which may have more dimensions here.
  const bool same_rows = own.sizes.size() == 2 && own.strides == contiguous_strides(own.sizes) &&
                         here.strides == contiguous_strides(here.sizes) && own.offset == here.offset &&
                         own.numel() == here.numel() && own.sizes.back() == here.sizes.back();
  const auto found = s.products.find(held->second.name);
  return same_rows && found != s.products.end() ? &found->second : nullptr;
}
const graph::Geometry& SavedCall::geometry(size_t i) const { return s.graph_.geometry(use(i).geometry); }

Scalar SavedCall::number(size_t i) const {
  const graph::Argument& a = argument(i);
  if (const auto numbers = s.graph_.numbers_of(a); !numbers.empty()) return s.signature_.numbers[numbers[0]];
  const Stack& stack = s.graph_.attributes();
  const size_t at = a.range.first;
  switch (stack.tag(at)) {
    case CellTag::Bool:
      return Scalar(stack.at<bool>(at));
    case CellTag::Int:
      return Scalar(stack.at<int64_t>(at));
    case CellTag::Float:
      return Scalar(stack.at<double>(at));
    default:
      return stack.at<Scalar>(at);
  }
}
int64_t SavedCall::integer(size_t i) const { return number(i).to_int(); }
bool SavedCall::flag(size_t i) const { return number(i).to_bool(); }
std::vector<int64_t> SavedCall::ints(size_t i) const {
  const auto list = s.graph_.attributes().at<CellList<int64_t>>(argument(i).range.first).span();
  return {list.begin(), list.end()};
}
std::vector<double> SavedCall::floats(size_t i) const {
  const auto list = s.graph_.attributes().at<CellList<double>>(argument(i).range.first).span();
  return {list.begin(), list.end()};
}
std::string SavedCall::text(size_t i) const {
  const auto list = s.graph_.attributes().at<CellList<char>>(argument(i).range.first).span();
  return {list.begin(), list.end()};
}

const graph::Geometry& SavedCall::result_geometry(size_t i) const {
  return s.graph_.geometry(defs()[i].geometry);
}
bool SavedCall::is_used(size_t i) const { return i < defs().size() && s.used_[defs()[i].value]; }

const SavedRow* find_saved_row(std::string_view op) noexcept {
  for (const auto rows : {layer_rows(), move_rows()})
    for (const SavedRow& row : rows)
      if (row.op == op) return &row;
  return nullptr;
}

// Files

namespace {

void check(const Inference& function, const SaveOptions& options) {
  TENON_CHECK(options.opset >= kOldestSavedOpset && options.opset <= kNewestSavedOpset, Value,
              fmt::format("onnx.save: `opset` is {}, expected {} to {}", options.opset, kOldestSavedOpset,
                          kNewestSavedOpset));
  const auto check_names = [](const std::vector<std::string>& names, size_t count, const char* what) {
    TENON_CHECK(names.empty() || names.size() == count, Value,
                fmt::format("onnx.save: `{}_names` has {} names, and there are {} {}s", what, names.size(),
                            count, what));
  };
  check_names(options.input_names, function.inputs().size(), "input");
  check_names(options.output_names, function.outputs().size(), "output");
  std::vector<std::string> all = options.input_names;
  all.insert(all.end(), options.output_names.begin(), options.output_names.end());
  std::ranges::sort(all);
  const auto twice = std::ranges::adjacent_find(all);
  TENON_CHECK(twice == all.end() && (all.empty() || !all[0].empty()), Value,
              fmt::format("onnx.save: the name '{}' is given twice, or empty",
                          twice == all.end() ? std::string() : *twice));
  for (const auto& axis : options.dynamic_axes)
    TENON_CHECK(axis.input < function.inputs().size() && axis.axis >= 0 &&
                    axis.axis < std::ssize(function.inputs()[axis.input].sizes),
                Value,
                fmt::format("onnx.save: `dynamic_axes` names axis {} of input {}, which is not there",
                            axis.axis, axis.input));
}

}  // namespace

void save(std::span<const Inference* const> traces, const std::string& path, const SaveOptions& options) {
  TENON_CHECK(!traces.empty(), Value, "onnx.save: `traces` is empty");
  std::vector<WrittenModel> models;
  for (const Inference* const trace : traces) {
    check(*trace, options);
    try {
      models.push_back(Saver(*trace, options).model());
    } catch (const Error&) {
      // What ONNX cannot say for some sizes alone: the traces before it may show that it depends on them.
      if (!models.empty()) merge(std::move(models), traces.first(models.size()), options);
      throw;
    }
  }
  const std::string bytes = bytes_of(merge(std::move(models), traces, options), options.opset);
  const io::Bytes part(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  io::replace_file(path, std::span(&part, 1));
}
void save(const Inference& function, const std::string& path, const SaveOptions& options) {
  const Inference* const one = &function;
  save(std::span(&one, 1), path, options);
}

}  // namespace tenon::onnx
