// DispatchKey: one row of an operator's table by the name that users write: CPU, AutogradCPU,
// CompositeImplicit. Used by registration and by the tools that print tables. A call itself uses only
// DispatchKeySet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/key_set.h"

namespace tenon {

/// A place where a kernel can be registered: a functionality on one backend, a functionality that has no
/// backends, or an alias that stands for several.
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
/// The reverse; also PyTorch's spellings (CompositeImplicitAutograd, CatchAll, PrivateUse1,
/// AutogradPrivateUse1). A question only: throws Error{Value} for a name that is no key, and for one of a
/// backend that nobody has registered.
DispatchKey key_parse(std::string_view name);
/// The same for a registration, which may come before its device: a backend that nobody registered yet gets
/// its place reserved.
DispatchKey key_to_register(std::string_view name);
/// Null where `key_parse` throws.
std::optional<DispatchKey> find_key(std::string_view name) noexcept;
/// Whether the name is a key, or one of PyTorch's for devices that are not built in: their kernels may come
/// before their device. Anything else is likely misspelt.
bool is_known_key(std::string_view name) noexcept;
bool is_alias_key(DispatchKey key) noexcept;
/// Whether registering at `alias` offers a kernel to `key`.
bool is_included_in_alias(DispatchKey key, DispatchKey alias) noexcept;
/// The dense key of a device's backend.
DispatchKey key_for_device(std::string_view device);

/// The runtime keys of a set in rising priority.
std::vector<DispatchKey> keys_of(DispatchKeySet set);
/// "DispatchKeySet(CPU, AutogradCPU)", in rising priority.
std::string to_string(DispatchKeySet set);

}  // namespace tenon
