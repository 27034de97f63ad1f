// DispatchKey: a key under which kernels are registered, by the name that users write: CPU, AutogradCPU,
// CompositeImplicit. Used by registration and by tools that print tables. Calls use DispatchKeySet only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/key_set.h"

namespace tenon {

/// A key: a functionality on one backend, a functionality without backends, or an alias for several keys.
struct DispatchKey {
  enum class Kind : uint8_t {
    Runtime,            ///< A functionality, on `backend` where it is crossed with backends.
    CompositeImplicit,  ///< Catch-all: runs anywhere, above Autograd, differentiable through what it calls.
    CompositeExplicit,  ///< Runs on every backend and layout, below Autograd.
    /// Runs on dense tensors of every backend that has what the kernel needs (a stub filled in, ...), below
    /// Autograd: the built-in bodies.
    CompositeDense,
    AutogradAlias,  ///< Autograd on every backend.
  };
  Kind kind = Kind::Runtime;
  Functionality functionality = Functionality::Dense;
  Backend backend = kCpuBackend;

  constexpr DispatchKey() = default;
  constexpr DispatchKey(Functionality f, Backend b = kCpuBackend) : functionality(f), backend(b) {}
  constexpr explicit DispatchKey(Kind k) : kind(k) {}
  friend constexpr bool operator==(DispatchKey, DispatchKey) = default;
};

inline constexpr DispatchKey kCompositeImplicit{DispatchKey::Kind::CompositeImplicit};
inline constexpr DispatchKey kCompositeExplicit{DispatchKey::Kind::CompositeExplicit};
inline constexpr DispatchKey kCompositeDense{DispatchKey::Kind::CompositeDense};
inline constexpr DispatchKey kAutogradAlias{DispatchKey::Kind::AutogradAlias};

/// "CPU", "AutogradCUDA", "SparseCPU", "BackendSelect", "CompositeImplicit", "Autograd".
std::string key_name(DispatchKey key);
/// The key of a name; accepts PyTorch's spellings too (CompositeImplicitAutograd, CatchAll, PrivateUse1,
/// AutogradPrivateUse1). Registers nothing: throws Error{Value} for a name that is no key, and for a key of a
/// backend that is not registered.
DispatchKey key_parse(std::string_view name);
/// As key_parse, for a registration, which may come before its device: a backend that is not registered yet
/// is assigned its number.
DispatchKey key_to_register(std::string_view name);
/// As key_parse, but null where that throws.
std::optional<DispatchKey> find_key(std::string_view name) noexcept;
/// Whether the name is a key, or one of PyTorch's keys for devices that are not built in, whose kernels may
/// come before the device. Any other name is probably misspelt.
bool is_known_key(std::string_view name) noexcept;
bool is_alias_key(DispatchKey key) noexcept;
/// Whether a kernel registered for `alias` also serves `key`.
bool is_included_in_alias(DispatchKey key, DispatchKey alias) noexcept;
/// The dense key of a device's backend.
DispatchKey key_for_device(std::string_view device);

/// The runtime keys of a set in rising priority.
std::vector<DispatchKey> keys_of(DispatchKeySet set);
/// "DispatchKeySet(CPU, AutogradCPU)", in rising priority.
std::string to_string(DispatchKeySet set);

}  // namespace tenon
