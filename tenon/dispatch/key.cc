#include "tenon/dispatch/key.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "tenon/core/device.h"
#include "tenon/core/error.h"
#include "tenon/core/foreign_devices.h"

namespace tenon {
namespace {

struct AliasName {
  std::string_view name;
  DispatchKey key;
};
// The first spelling of each is the one that is printed.
constexpr AliasName kAliases[] = {
    {"CompositeImplicit", kCompositeImplicit},
    {"CompositeExplicit", kCompositeExplicit},
    {"CompositeDense", kCompositeDense},
    {"Autograd", kAutogradAlias},
    {"CatchAll", kCompositeImplicit},
    {"CompositeImplicitAutograd", kCompositeImplicit},
    {"CompositeExplicitAutograd", kCompositeExplicit},
};

// SparseCsr before Sparse: the longer prefix first. No backend's own key begins with a prefix.
constexpr Functionality kPrefixes[] = {Functionality::Autograd, Functionality::SparseCsr,
                                       Functionality::Sparse, Functionality::Quantized,
                                       Functionality::Blocked};

// Without its prefix, if it has one.
std::pair<Functionality, std::string_view> split_prefix(std::string_view name) {
  for (const Functionality f : kPrefixes) {
    const std::string_view prefix = tenon::name(f);
    if (name.size() > prefix.size() && name.starts_with(prefix)) return {f, name.substr(prefix.size())};
  }
  return {Functionality::Dense, name};
}

std::optional<DispatchKey> key_without_backend(std::string_view name) {
  for (const auto& alias : kAliases) {
    if (alias.name == name) return alias.key;
  }
  for (int i = 0; i < kNumFunctionalities; ++i) {
    const auto f = static_cast<Functionality>(i);
    if (!is_per_backend(f) && tenon::name(f) == name) return DispatchKey(f);
  }
  return std::nullopt;
}

std::optional<Backend> known_backend(std::string_view key) noexcept {
  if (key == "PrivateUse1") return find_private_use_backend();
  return find_backend_by_key(key);
}

Backend reserved_backend(std::string_view key) {
  if (key == "PrivateUse1") return private_use_backend();
  if (const auto known = known_backend(key)) return *known;
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return register_backend(lower, key);
}

}  // namespace

std::string key_name(DispatchKey key) {
  for (const auto& alias : kAliases) {
    if (alias.key == key) return std::string(alias.name);
  }
  std::string text(name(key.functionality));
  if (is_per_backend(key.functionality)) text += backend_key(key.backend);
  return text;
}

std::optional<DispatchKey> find_key(std::string_view name) noexcept {
  if (const auto key = key_without_backend(name)) return key;
  const auto [functionality, backend] = split_prefix(name);
  if (const auto known = known_backend(backend)) return DispatchKey(functionality, *known);
  return std::nullopt;
}

DispatchKey key_parse(std::string_view name) {
  if (const auto key = find_key(name)) return *key;
  throw_error(
      ErrorKind::Value,
      fmt::format("dispatch key: '{}' is not one, or its device is not registered; examples: CPU, Meta, "
                  "AutogradCPU, BackendSelect, Autograd, CompositeImplicit, CompositeExplicit",
                  name));
}

DispatchKey key_to_register(std::string_view name) {
  if (const auto key = find_key(name)) return *key;
  const auto [functionality, backend] = split_prefix(name);
  const bool spelled =
      !backend.empty() && std::isupper(static_cast<unsigned char>(backend[0])) &&
      std::all_of(backend.begin(), backend.end(), [](unsigned char c) { return std::isalnum(c); });
  TENON_CHECK(
      spelled, Value,
      fmt::format("dispatch key: '{}' is not one; examples: CPU, Meta, AutogradCPU, BackendSelect, Autograd, "
                  "CompositeImplicit, CompositeExplicit",
                  name));
  return DispatchKey(functionality, reserved_backend(backend));
}

bool is_known_key(std::string_view name) noexcept {
  constexpr std::string_view kOthers[] = {"OpenCL", "PrivateUse1", "PrivateUse2", "PrivateUse3"};
  const std::string_view device = split_prefix(name).second;
  return find_key(name) || std::ranges::find(kOthers, device) != std::end(kOthers) ||
         std::ranges::any_of(kForeignDevices, [&](const auto& known) { return known.second == device; });
}

bool is_alias_key(DispatchKey key) noexcept { return key.kind != DispatchKey::Kind::Runtime; }

bool is_included_in_alias(DispatchKey key, DispatchKey alias) noexcept {
  if (key == alias) return true;
  if (is_alias_key(key)) return false;
  switch (alias.kind) {
    case DispatchKey::Kind::AutogradAlias:
      return key.functionality == Functionality::Autograd;
    case DispatchKey::Kind::CompositeExplicit:
      return key.functionality <= Functionality::Sparse;
    case DispatchKey::Kind::CompositeDense:
      return key.functionality == Functionality::Dense;
    case DispatchKey::Kind::CompositeImplicit:
      return is_per_backend(key.functionality);
    case DispatchKey::Kind::Runtime:
      break;
  }
  return false;
}

DispatchKey key_for_device(std::string_view device) {
  return DispatchKey(Functionality::Dense, Device(device).backend);
}

std::vector<DispatchKey> keys_of(DispatchKeySet set) {
  std::vector<DispatchKey> keys;
  for (int i = 0; i < kNumFunctionalities; ++i) {
    const auto f = static_cast<Functionality>(i);
    if (!set.has(f)) continue;
    if (!is_per_backend(f)) {
      keys.emplace_back(f);
      continue;
    }
    for (Backend b = 0; b < 32; ++b) {
      if (set.has_backend(b)) keys.emplace_back(f, b);
    }
  }
  return keys;
}

std::string to_string(DispatchKeySet set) {
  std::string text = "DispatchKeySet(";
  bool first = true;
  for (const DispatchKey key : keys_of(set)) {
    if (!first) text += ", ";
    text += key_name(key);
    first = false;
  }
  return text + ")";
}

}  // namespace tenon
