// DispatchKeySet: which functionalities and backends take part in a call, in one 64-bit word. Used by
// tensors, which carry one each, and by the dispatcher. Independent of operators; dispatch/key.h has
// the names of keys that users see.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace tenon {

/// A stage that a call may pass through, in rising order of priority. Bits 32 to 63 of a key set.
enum class Functionality : uint8_t {
  Dense,
  Blocked,
  Quantized,
  SparseCsr,
  Sparse,
  BackendSelect,
  Python,
  Record,
  Autograd,
  Autocast,
  Profiler,
};
inline constexpr int kNumFunctionalities = 11;

/// The spelling of a functionality's keys: a prefix of the backend's key where each backend has one
/// ("Autograd" in AutogradCPU; Dense has no prefix), otherwise the whole key.
constexpr std::string_view name(Functionality f) noexcept {
  constexpr std::string_view kNames[kNumFunctionalities] = {
      "",       "Blocked", "Quantized", "SparseCsr", "Sparse",  "BackendSelect",
      "Python", "Record",  "Autograd",  "Autocast",  "Profiler"};
  return kNames[static_cast<int>(f)];
}
/// Whether a functionality has a kernel for each backend (Dense, Autograd, ...) or a single one (Profiler,
/// ...).
constexpr bool is_per_backend(Functionality f) noexcept {
  return f <= Functionality::Sparse || f == Functionality::Autograd;
}

/// The number of a backend; there are at most 32: cpu is the lowest, meta the highest, others follow in
/// the order in which they are registered. Bits 0 to 31 of a key set.
using Backend = uint8_t;
inline constexpr Backend kCpuBackend = 0;
inline constexpr Backend kMetaBackend = 31;

class DispatchKeySet {
 public:
  constexpr DispatchKeySet() noexcept = default;
  constexpr explicit DispatchKeySet(uint64_t bits) noexcept : bits_(bits) {}
  constexpr explicit DispatchKeySet(Functionality f) noexcept
      : bits_(uint64_t{1} << (32 + static_cast<int>(f))) {}
  constexpr DispatchKeySet(Functionality f, Backend b) noexcept
      : bits_((uint64_t{1} << (32 + static_cast<int>(f))) | (uint64_t{1} << b)) {}

  constexpr uint64_t bits() const noexcept { return bits_; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr bool has(Functionality f) const noexcept { return (bits_ & DispatchKeySet(f).bits_) != 0; }
  constexpr bool has_backend(Backend b) const noexcept { return (bits_ >> b) & 1; }
  constexpr bool has_all(DispatchKeySet o) const noexcept { return (bits_ & o.bits_) == o.bits_; }

  constexpr DispatchKeySet operator|(DispatchKeySet o) const noexcept {
    return DispatchKeySet(bits_ | o.bits_);
  }
  constexpr DispatchKeySet operator&(DispatchKeySet o) const noexcept {
    return DispatchKeySet(bits_ & o.bits_);
  }
  /// The functionalities of this set that are not in `o`. Backend bits stay, because each functionality
  /// applies to all backends of the set.
  constexpr DispatchKeySet operator-(DispatchKeySet o) const noexcept {
    return DispatchKeySet(bits_ & ~(o.bits_ & kFunctionalityBits));
  }
  DispatchKeySet& operator|=(DispatchKeySet o) noexcept { return *this = *this | o; }
  friend constexpr bool operator==(DispatchKeySet, DispatchKeySet) noexcept = default;

  /// The highest backend in the set; cpu when there is none.
  constexpr Backend backend() const noexcept {
    return static_cast<Backend>(31 ^ std::countl_zero(static_cast<uint32_t>(bits_) | 1u));
  }
  /// The highest functionality; Dense when there is none.
  constexpr Functionality functionality() const noexcept {
    return static_cast<Functionality>(31 ^ std::countl_zero(static_cast<uint32_t>(bits_ >> 32) | 1u));
  }
  /// The keys below `f`: what a kernel at `f` passes to `redispatch`.
  constexpr DispatchKeySet below(Functionality f) const noexcept {
    return DispatchKeySet(bits_ & ((uint64_t{1} << (32 + static_cast<int>(f))) - 1));
  }

  static constexpr uint64_t kBackendBits = 0xFFFFFFFFull;
  static constexpr uint64_t kFunctionalityBits = ~kBackendBits;

 private:
  uint64_t bits_ = 0;
};

inline constexpr DispatchKeySet kAutogradKeys{Functionality::Autograd};

}  // namespace tenon
