#include "tenon/schema/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "tenon/schema/edit_distance.h"

namespace tenon::schema {
namespace {

// What people write who come from C++, Python or NumPy; edit distance alone would not find these.
constexpr std::pair<std::string_view, std::string_view> kHabits[] = {
    {"int64_t", "int"},     {"int64", "int"},        {"long", "int"},          {"integer", "int"},
    {"double", "float"},    {"float32", "float"},    {"boolean", "bool"},      {"string", "str"},
    {"string_view", "str"}, {"dtype", "ScalarType"}, {"DType", "ScalarType"},  {"number", "Scalar"},
    {"Number", "Scalar"},   {"IntArrayRef", "int"},  {"TensorList", "Tensor"}, {"Optional", "Tensor"},
};

struct EnumWord {
  std::string_view word;
  int64_t number;  // The enumerator's, here and in PyTorch.
  std::string_view cpp;
};

constexpr EnumWord kLayouts[] = {{"strided", 0, "Layout::Strided"},
                                 {"sparse_coo", 1, "Layout::Sparse"},
                                 {"sparse_csr", 2, "Layout::SparseCsr"},
                                 {"blocked", 3, "Layout::Blocked"}};
constexpr EnumWord kFormats[] = {{"contiguous_format", 0, "MemoryFormat::Contiguous"},
                                 {"preserve_format", 1, "MemoryFormat::Preserve"},
                                 {"channels_last", 2, "MemoryFormat::ChannelsLast"},
                                 {"channels_last_3d", 3, "MemoryFormat::ChannelsLast3d"}};
std::span<const EnumWord> words_of(BaseType base) noexcept {
  switch (base) {
    case BaseType::Layout:
      return kLayouts;
    case BaseType::MemoryFormat:
      return kFormats;
    default:
      return {};
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::string_view base_name(BaseType base, bool symbolic) noexcept {
  const BaseTypeInfo& info = base_type_info(base);
  return symbolic && !info.symbolic.empty() ? info.symbolic : info.name;
}

std::optional<Type> find_base(std::string_view word) noexcept {
  for (const BaseTypeInfo& b : kBaseTypes) {
    if (b.name == word) return Type{.base = b.base};
    if (b.symbolic == word && !word.empty()) return Type{.base = b.base, .symbolic = true};
  }
  return std::nullopt;
}

std::string_view suggest_base(std::string_view word) {
  for (const auto& [habit, meant] : kHabits) {
    if (habit == word) return meant;
  }
  constexpr size_t kLongestName = 12;
  if (word.size() > kLongestName + 2) return {};
  std::string_view best;
  // Two slips at most, and fewer than would rewrite half of a short word.
  size_t limit = std::min<size_t>(2, word.size() / 2) + 1;
  for (const BaseTypeInfo& b : kBaseTypes) {
    for (const std::string_view name : {b.name, b.symbolic}) {
      const size_t distance = name.empty() ? limit : edit_distance(lower(word), lower(name));
      if (distance < limit) {
        limit = distance;
        best = name;
      }
    }
  }
  return best;
}

std::optional<std::string> find_word(BaseType base, std::string_view word) {
  if (base == BaseType::Device) return std::string(word);
  if (base == BaseType::ScalarType) {
    const std::optional<DType> dtype = parse_dtype(word);
    return dtype ? std::optional<std::string>(name(*dtype)) : std::nullopt;
  }
  if (base == BaseType::Layout && word == "sparse") return "sparse_coo";
  for (const EnumWord& w : words_of(base)) {
    if (w.word == word) return std::string(word);
  }
  return std::nullopt;
}

std::optional<std::string> find_numbered_word(BaseType base, int64_t number) {
  if (base == BaseType::ScalarType) {
    for (const DType t : kDTypes) {
      if (dtype_info(t).torch == number) return std::string(name(t));
    }
    return std::nullopt;
  }
  for (const EnumWord& w : words_of(base)) {
    if (w.number == number && number >= 0) return std::string(w.word);
  }
  return std::nullopt;
}

int64_t word_number(BaseType base, std::string_view word) noexcept {
  if (base == BaseType::ScalarType) return static_cast<int64_t>(parse_dtype(word).value_or(DType::Float32));
  for (const EnumWord& w : words_of(base)) {
    if (w.word == word) return w.number;
  }
  return 0;
}

std::optional<int64_t> find_int_word(std::string_view word) noexcept {
  if (word == "Mean") return 1;
  if (word == "Sum") return 2;
  return std::nullopt;
}

std::string cpp_word(BaseType base, std::string_view word) {
  if (base == BaseType::ScalarType) {
    if (const std::optional<DType> t = parse_dtype(word))
      return fmt::format("DType::{}", dtype_info(*t).enumerator);
  }
  for (const EnumWord& w : words_of(base)) {
    if (w.word == word) return std::string(w.cpp);
  }
  return fmt::format("Device(\"{}\")", word);
}

}  // namespace tenon::schema
