// The words of a graph's text that no other room has a name for. Used by its printer and its parser.
#pragma once

#include <optional>
#include <string_view>

#include "tenon/core/device.h"
#include "tenon/core/dims.h"
#include "tenon/core/scalar.h"

namespace tenon::graph {

/// "bool", "int", "float", "complex".
std::string_view name(Scalar::Kind kind) noexcept;
std::optional<Scalar::Kind> parse_kind(std::string_view word) noexcept;
/// "contiguous_format", ...: as schemas have it.
std::string_view name(MemoryFormat format) noexcept;
std::optional<MemoryFormat> parse_memory_format(std::string_view word) noexcept;
std::optional<Layout> parse_layout(std::string_view word) noexcept;
/// "cuda:1". Unlike Device's constructor, it loads no device that is not there.
std::optional<Device> parse_device(std::string_view text) noexcept;

/// The strides that a dense tensor of these sizes has.
Dims dense_strides(const Dims& sizes);

}  // namespace tenon::graph
