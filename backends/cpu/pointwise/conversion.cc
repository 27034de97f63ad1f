#include "backends/cpu/pointwise/conversion.h"

#include <array>

namespace tenon::cpu {

const Conversion* conversion(DType from, DType to) noexcept {
  static const auto table = [] {
    std::array<Conversion, kNumDTypes * kNumDTypes> all;
    for (int f = 0; f < kNumDTypes; ++f) {
      for (int t = 0; t < kNumDTypes; ++t) {
        const auto a = static_cast<DType>(f), b = static_cast<DType>(t);
        all[static_cast<size_t>(f * kNumDTypes + t)] = {convert_fn(a, b), a, b};
      }
    }
    return all;
  }();
  const Conversion& c =
      table[static_cast<size_t>(static_cast<int>(from) * kNumDTypes + static_cast<int>(to))];
  return c.convert ? &c : nullptr;
}

void run_conversion(void* const* ptrs, size_t n, const void* conversion, uint32_t /*repeated*/) {
  const auto& c = *static_cast<const Conversion*>(conversion);
  const auto from = static_cast<int64_t>(item_size(c.from)), to = static_cast<int64_t>(item_size(c.to));
  c.convert(ptrs[0], {to, 0}, ptrs[1], {from, 0}, static_cast<int64_t>(n), 1);
}

}  // namespace tenon::cpu
