// The devices of PyTorch that programs name whether there is one or not. Used by device.cc, which gives them
// places, and by the parser of dispatch keys.
#pragma once

#include <string_view>
#include <utility>

namespace tenon {

/// Names, and the spellings of their dispatch keys.
inline constexpr std::pair<std::string_view, std::string_view> kForeignDevices[] = {
    {"cuda", "CUDA"}, {"hip", "HIP"}, {"hpu", "HPU"},       {"ipu", "IPU"}, {"maia", "MAIA"}, {"mps", "MPS"},
    {"mtia", "MTIA"}, {"ve", "VE"},   {"vulkan", "Vulkan"}, {"xla", "XLA"}, {"xpu", "XPU"}};

}  // namespace tenon
