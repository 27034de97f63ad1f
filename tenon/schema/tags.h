// Tag, Tags: what an operator's declaration says of it besides its schema, under PyTorch's names. `op.tags`
// shows them, and library.opcheck tests those that can be observed. Used by declarations, by opgen and by
// OperatorTraits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace tenon {

namespace schema {
struct FunctionSchema;
}

/// Numbers keep their meaning, because plug-ins pass them (TenonTag): new ones are appended.
enum class Tag : uint8_t {
  core,                        ///< One of the operators that others are made of.
  cudagraph_unsafe,            ///< Not to be captured.
  data_dependent_output,       ///< The results are numbers made of tensors' values.
  dynamic_output_shape,        ///< The results' shapes follow from tensors' values.
  flexible_layout,             ///< The results' strides are the kernel's choice.
  generated,                   ///< Made from another form.
  inplace,                     ///< Writes `self` and returns it.
  inplace_view,                ///< Changes the sizes or strides of `self`.
  maybe_aliasing_or_mutating,  ///< May return or write an argument that the schema does not say.
  needs_contiguous_strides,    ///< Takes contiguous arguments.
  needs_exact_strides,         ///< Takes arguments with the strides of eager mode.
  needs_fixed_stride_order,    ///< Takes arguments whose strides have the order of eager mode.
  nondeterministic_bitwise,    ///< Two calls may differ in rounding.
  nondeterministic_seeded,     ///< Draws from a generator's stream.
  out,                         ///< Writes its result into an argument.
  out_variant,                 ///< As `out`.
  pointwise,                   ///< An element of the result depends on the arguments' elements at its place.
  pt2_compliant_tag,           ///< Passes the checks of opcheck.
  reduction,                   ///< Dimensions of the argument become one number.
  view_copy,                   ///< Copies what another operator gives as a view.
};

inline constexpr std::string_view kTagNames[] = {
    "core",
    "cudagraph_unsafe",
    "data_dependent_output",
    "dynamic_output_shape",
    "flexible_layout",
    "generated",
    "inplace",
    "inplace_view",
    "maybe_aliasing_or_mutating",
    "needs_contiguous_strides",
    "needs_exact_strides",
    "needs_fixed_stride_order",
    "nondeterministic_bitwise",
    "nondeterministic_seeded",
    "out",
    "out_variant",
    "pointwise",
    "pt2_compliant_tag",
    "reduction",
    "view_copy",
};
inline constexpr uint32_t kNumTags = std::size(kTagNames);
static_assert(static_cast<uint32_t>(Tag::view_copy) + 1 == kNumTags);

constexpr std::string_view name(Tag tag) noexcept { return kTagNames[static_cast<uint8_t>(tag)]; }

/// The tag of that name. Throws Error{Value}, which names those that are spelled almost like it.
Tag parse_tag(std::string_view text);

/// A set of tags.
class Tags {
 public:
  constexpr Tags() = default;
  constexpr Tags(std::initializer_list<Tag> tags) {
    for (const Tag tag : tags) add(tag);
  }

  constexpr void add(Tag tag) noexcept { bits_ |= bit(tag); }
  constexpr bool has(Tag tag) const noexcept { return (bits_ & bit(tag)) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  friend constexpr auto operator<=>(const Tags&, const Tags&) = default;

 private:
  static constexpr uint32_t bit(Tag tag) noexcept { return 1u << static_cast<uint8_t>(tag); }
  uint32_t bits_ = 0;
};

/// Throws Error{Value} for a tag that contradicts the schema: `inplace`, say, where nothing is written.
void check_tags(Tags tags, const schema::FunctionSchema& schema);

}  // namespace tenon
