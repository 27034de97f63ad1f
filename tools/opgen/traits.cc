#include "tools/opgen/traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

namespace tenon::opgen {
namespace {

using schema::BaseType;

/// The operators that others are made of. Source: PyTorch's Core ATen IR; those of 2.9 that there are here.
constexpr std::string_view kCore =
    "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _embedding_bag "
    "_local_scalar_dense _log_softmax _native_batch_norm_legit _native_batch_norm_legit.no_stats "
    "_native_batch_norm_legit_no_training _softmax _to_copy abs acos acosh adaptive_avg_pool1d "
    "add.Scalar add.Tensor addmm alias amax amin any any.dim any.dims arange.start_step argmax "
    "argmin as_strided asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool2d_backward "
    "avg_pool3d bitwise_and.Scalar bitwise_and.Tensor bitwise_not bitwise_or.Scalar "
    "bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm cat ceil clamp clamp.Tensor clone "
    "col2im constant_pad_nd convolution convolution_backward copy cos cosh cumsum diagonal "
    "div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu embedding embedding_dense_backward "
    "empty.memory_format empty_strided eq.Scalar eq.Tensor erf exp expand expm1 fill.Scalar flip "
    "floor fmod.Scalar fmod.Tensor full full_like gather ge.Scalar ge.Tensor gelu gt.Scalar "
    "gt.Tensor hardtanh index.Tensor index_put index_select isinf isnan le.Scalar le.Tensor "
    "leaky_relu log log10 log1p log2 logical_and logical_not logical_or logical_xor lt.Scalar "
    "lt.Tensor masked_scatter max.dim max_pool2d_with_indices max_pool2d_with_indices_backward "
    "max_pool3d_with_indices maximum mean mean.dim min.dim minimum mm mul.Scalar mul.Tensor "
    "native_dropout native_group_norm native_group_norm_backward native_layer_norm "
    "native_layer_norm_backward ne.Scalar ne.Tensor neg nonzero permute pow.Scalar pow.Tensor_Scalar "
    "pow.Tensor_Tensor prod prod.dim_int rand randn randperm reciprocal reflection_pad1d "
    "reflection_pad2d reflection_pad3d relu remainder.Scalar remainder.Tensor repeat "
    "replication_pad2d replication_pad3d resize_ round rsqrt scalar_tensor scatter.src scatter.value "
    "scatter_add scatter_reduce.two select.int select_scatter sigmoid sign sin sinh slice.Tensor "
    "slice_scatter sort split_with_sizes sqrt squeeze.dim squeeze.dims sub.Scalar sub.Tensor "
    "sum.dim_IntList tan tanh topk trunc unsqueeze upsample_bilinear2d.vec upsample_nearest2d.vec "
    "var.correction var.dim view where.self ";

bool is_core(const FunctionSchema& schema) {
  static const std::set<std::string> all = [] {
    std::istringstream text{std::string(kCore)};
    return std::set<std::string>(std::istream_iterator<std::string>(text), {});
  }();
  return all.contains(schema.overload.empty() ? schema.name : schema.name + "." + schema.overload);
}

/// Those of one form, in C++.
std::string tags_trait(const OpDef& def, const Operator& op) {
  const FunctionSchema& schema = op.schema;
  Tags tags = def.traits.tags;
  if (is_core(schema)) tags.add(Tag::core);
  if (op.form == Form::Inplace) tags.add(Tag::inplace);
  if (op.form == Form::Out) tags.add(Tag::out);
  if (def.copies_out(op)) tags.add(Tag::generated);
  const bool has_generator = std::ranges::any_of(
      schema.arguments, [](const schema::Argument& a) { return a.type.base == BaseType::Generator; });
  if (has_generator) tags.add(Tag::nondeterministic_seeded);
  std::string text;
  for (uint32_t i = 0; i < kNumTags; ++i) {
    const Tag tag{static_cast<uint8_t>(i)};
    if (tags.has(tag)) text += fmt::format("{}Tag::{}", text.empty() ? "" : ", ", name(tag));
  }
  return text.empty() ? "" : fmt::format(".tags = {{{}}}", text);
}

bool is_double_or_scalar(const schema::Argument& a) {
  return !a.type.list && (a.type.base == BaseType::Scalar || a.type.base == BaseType::Float);
}

std::string equals_trait(const Traits& traits, const FunctionSchema& schema) {
  if (traits.equals == "0" || traits.equals == "1")
    return fmt::format(".equals = {{EqualsTrait::Kind::Constant, 0, {}}}", traits.equals);
  const size_t i = *schema.argument_index(traits.equals);
  return fmt::format(".equals = {{EqualsTrait::Kind::{}, {}}}",
                     schema.arguments[i].type.is_tensor() ? "Tensor" : "Number", i);
}

/// Built-in operators that take a place in a stream call its two numbers so.
std::string stream_trait(const Traits& traits, const FunctionSchema& schema) {
  const auto seed = schema.argument_index("seed"), offset = schema.argument_index("offset");
  if (!seed || !offset) return "";
  const auto chance = schema.argument_index(traits.draws_unless_zero);
  return fmt::format(".stream = {{{}, {}, {}}}", *seed, *offset, chance ? static_cast<int>(*chance) : -1);
}

}  // namespace

std::string traits_of(const OpDef& def, const Operator& op) {
  const Traits& traits = def.traits;
  const FunctionSchema& schema = op.schema;
  std::vector<std::string> parts;
  uint64_t writes_only = 0;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const auto& names = traits.writes_only;
    if (std::ranges::find(names, schema.arguments[i].name) != names.end()) writes_only |= uint64_t{1} << i;
  }
  if (writes_only != 0) parts.push_back(fmt::format(".writes_only = {:#x}", writes_only));
  if (std::string tags = tags_trait(def, op); !tags.empty()) parts.push_back(std::move(tags));
  if (!traits.equals.empty()) parts.push_back(equals_trait(traits, schema));
  if (std::string stream = stream_trait(traits, schema); !stream.empty()) parts.push_back(std::move(stream));
  // What writes its result elsewhere is called by itself.
  if (traits.convolution && op.form == Form::Functional)
    parts.push_back(".anchor = {AnchorTrait::Kind::Convolution}");
  if (!traits.matmul.empty() && op.form == Form::Functional)
    parts.push_back(
        fmt::format(".anchor = {{AnchorTrait::Kind::Matmul, {}}}", *schema.argument_index(traits.matmul)));
  const std::pair<const char*, bool> flags[] = {{"value_errors", traits.value_errors},
                                                {"shape_numbers", traits.shape_numbers},
                                                {"uninitialized", traits.uninitialized}};
  for (const auto& [name, on] : flags) {
    if (on) parts.push_back(fmt::format(".{} = true", name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void check_traits(const OpDef& def, const YamlEntry& entry) {
  const FunctionSchema& schema = def.schema();
  const Traits& traits = def.traits;
  const auto fail = [&](const std::string& message) { entry.fail_in("traits", message); };
  try {
    check_tags(traits.tags, schema);
  } catch (const Error& e) {
    entry.fail_in("tags", e.what());
  }
  for (const std::string& name : traits.writes_only) {
    const auto i = schema.argument_index(name);
    if (!i || !schema.arguments[*i].is_write())
      fail(fmt::format("writes_only: '{}' is no argument that the schema writes", name));
  }
  if (!traits.equals.empty() && traits.equals != "0" && traits.equals != "1") {
    const auto i = schema.argument_index(traits.equals);
    if (!i || !(schema.arguments[*i].type.is_tensor() || is_double_or_scalar(schema.arguments[*i])))
      fail(
          fmt::format("equals: expected 0, 1, or a tensor or number of the schema, got '{}'", traits.equals));
  }
  if (!traits.matmul.empty()) {
    const auto i = schema.argument_index(traits.matmul);
    if (!i || !schema.arguments[*i].type.is_tensor() || *i + 1 >= schema.arguments.size() ||
        !schema.arguments[*i + 1].type.is_tensor())
      fail(fmt::format("anchor: '{}' is no tensor of the schema that another one follows", traits.matmul));
  }
  if (!traits.draws_unless_zero.empty()) {
    const auto i = schema.argument_index(traits.draws_unless_zero);
    if (!i || !is_double_or_scalar(schema.arguments[*i]))
      fail(fmt::format("draws_unless_zero: '{}' is no number of the schema", traits.draws_unless_zero));
  }
}

}  // namespace tenon::opgen
