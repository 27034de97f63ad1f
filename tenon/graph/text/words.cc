#include "tenon/graph/text/words.h"

#include <algorithm>
#include <charconv>

namespace tenon::graph {
namespace {

constexpr std::string_view kKinds[] = {"bool", "int", "float", "complex"};
constexpr std::string_view kFormats[] = {"contiguous_format", "preserve_format", "channels_last",
                                         "channels_last_3d"};
constexpr Layout kLayouts[] = {Layout::Strided, Layout::Sparse, Layout::SparseCsr, Layout::Blocked};

template <class Enum, size_t N>
std::optional<Enum> find(const std::string_view (&words)[N], std::string_view word) noexcept {
  const auto found = std::find(std::begin(words), std::end(words), word);
  if (found == std::end(words)) return std::nullopt;
  return static_cast<Enum>(found - words);
}

}  // namespace

std::string_view name(Scalar::Kind kind) noexcept { return kKinds[static_cast<size_t>(kind)]; }
std::optional<Scalar::Kind> parse_kind(std::string_view word) noexcept {
  return find<Scalar::Kind>(kKinds, word);
}

std::string_view name(MemoryFormat format) noexcept { return kFormats[static_cast<size_t>(format)]; }
std::optional<MemoryFormat> parse_memory_format(std::string_view word) noexcept {
  return find<MemoryFormat>(kFormats, word);
}

std::optional<Layout> parse_layout(std::string_view word) noexcept {
  for (const Layout layout : kLayouts) {
    if (name(layout) == word) return layout;
  }
  return std::nullopt;
}

std::optional<Device> parse_device(std::string_view text) noexcept {
  const size_t colon = text.find(':');
  const std::optional<Backend> backend = find_backend(text.substr(0, colon));
  if (!backend) return std::nullopt;
  Device device(*backend);
  if (colon == std::string_view::npos) return device;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, device.index);
  if (read.ec != std::errc() || read.ptr != end || device.index < 0) return std::nullopt;
  return device;
}

Dims dense_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  // Wraps for sizes that no storage holds.
  uint64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = static_cast<int64_t>(next);
    next *= static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1));
  }
  return strides;
}

}  // namespace tenon::graph
