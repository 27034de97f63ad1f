#include "tenon/core/device.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <mutex>

#include "tenon/core/error.h"
#include "tenon/core/foreign_devices.h"

namespace tenon {
namespace {

constexpr std::string_view kPrivateUseName = "privateuseone", kPrivateUseKey = "PrivateUse1";

struct Spelling {
  std::string name, key;
  std::string former;                  ///< Who had a place that was given back.
  const Spelling* replaced = nullptr;  ///< The one before, which other threads may still read.
};

/// What the number of a backend is.
enum class PlaceState : uint8_t {
  Vacant,    ///< Free: never used, or given back.
  Named,     ///< Of a name that PyTorch has too (kForeignDevices): no kernels, no device.
  Reserved,  ///< Known by name: kernels may be registered before their device.
  Filled,    ///< A device's that came to a reserved place.
  Made,      ///< A device's that made the place.
  Adopted    ///< A device's that took over the place of PrivateUse1.
};
constexpr bool is_device(PlaceState place) noexcept { return place >= PlaceState::Filled; }

// Entries are written under the mutex and published by the count, so readers take no lock. A spelling is
// never freed: one is replaced when a device adopts the place of PrivateUse1.
struct BackendTable {
  std::mutex mutex;
  std::atomic<int> count{1};
  std::atomic<const Spelling*> spellings[32];
  std::atomic<int> private_use{0};  // 0: none yet
  PlaceState places[32] = {};       // under the mutex
  std::string owners[32];           // of devices; under the mutex

  BackendTable() {
    spell(kCpuBackend, "cpu", "CPU");
    spell(kMetaBackend, "meta", "Meta");
    for (const Backend b : {kCpuBackend, kMetaBackend}) {
      places[b] = PlaceState::Filled;
      owners[b] = "Tenon itself";
    }
  }

  void spell(Backend backend, std::string_view name, std::string_view key, std::string former = {}) {
    const Spelling* before = spellings[backend].load(std::memory_order_relaxed);
    spellings[backend].store(new Spelling{std::string(name), std::string(key), std::move(former), before},
                             std::memory_order_release);
  }
  /// Empty for a free number.
  const Spelling& spelling(Backend backend) const noexcept {
    static const Spelling& none = *new Spelling;
    const Spelling* known = spellings[backend].load(std::memory_order_acquire);
    return known ? *known : none;
  }

  template <class Match>
  std::optional<Backend> find(const Match& match) const {
    if (match(kMetaBackend)) return kMetaBackend;
    const int n = count.load(std::memory_order_acquire);
    for (int i = 0; i < n; ++i) {
      if (match(static_cast<Backend>(i))) return static_cast<Backend>(i);
    }
    return std::nullopt;
  }
};

BackendTable& table() {
  // Never destroyed: tensors may outlive static destruction.
  static BackendTable& t = *new BackendTable;
  return t;
}

bool valid_name(std::string_view name) {
  if (name.empty() || !std::islower(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (!std::islower(u) && !std::isdigit(u) && c != '_') return false;
  }
  return true;
}

/// Why a backend cannot have a key; empty where it can.
std::string fault_of_key(std::string_view key) {
  if (key.empty() || !std::isupper(static_cast<unsigned char>(key[0])) ||
      !std::ranges::all_of(key, [](unsigned char c) { return std::isalnum(c); }))
    return "use letters and digits, an upper-case letter first";
  for (int i = 0; i < kNumFunctionalities; ++i) {
    const std::string_view prefix = name(static_cast<Functionality>(i));
    if (!prefix.empty() && key.starts_with(prefix))
      return fmt::format("it begins as the keys of another kind do ({})", prefix);
  }
  for (const std::string_view alias : {"Composite", "CatchAll"}) {
    if (key.starts_with(alias))
      return fmt::format("it begins as the keys that stand for several do ({})", alias);
  }
  return {};
}

void check_name(const char* function, std::string_view name) {
  TENON_CHECK(valid_name(name), Value,
              fmt::format("{}: '{}' is not a name; use lower-case letters, digits and _", function, name));
}

void check_key(const char* function, std::string_view name, std::string_view key) {
  const std::string fault = fault_of_key(key);
  TENON_CHECK(fault.empty(), Value,
              fmt::format("{}: '{}' cannot be a key of '{}': {}", function, key, name, fault));
  if (const auto other = find_backend_by_key(key)) {
    throw_error(ErrorKind::Device, fmt::format("{}: the key {} that '{}' asks for is that of '{}'", function,
                                               key, name, backend_name(*other)));
  }
}

/// A free place: the one that was given back by the last of this name, else one that was never
/// used, so that what is left of one device is not taken for another, else any that was given back;
/// kMetaBackend if there is none. The caller holds the mutex.
Backend vacant_place(const BackendTable& t, std::string_view name) {
  const auto n = static_cast<Backend>(t.count.load(std::memory_order_relaxed));
  Backend given_back = kMetaBackend;
  for (Backend b = 0; b < n; ++b) {
    if (t.places[b] != PlaceState::Vacant) continue;
    if (t.spelling(b).former == name) return b;
    given_back = std::min(given_back, b);
  }
  return n < kMetaBackend ? n : given_back;
}

/// The caller holds the mutex.
Backend place_of(BackendTable& t, const char* function, std::string_view name, std::string_view key) {
  check_name(function, name);
  if (const auto known = find_backend(name)) {
    if (t.places[*known] == PlaceState::Named) t.places[*known] = PlaceState::Reserved;
    return *known;
  }
  check_key(function, name, key);
  const int n = t.count.load(std::memory_order_relaxed);
  const Backend place = vacant_place(t, name);
  TENON_CHECK(place < kMetaBackend, Device,
              fmt::format("{}: no place left for '{}' among 32 backends", function, name));
  t.spell(place, name, key);
  t.places[place] = PlaceState::Reserved;
  if (place == n) t.count.store(n + 1, std::memory_order_release);
  return place;
}

/// A device's own place: the first device without one takes over that of PrivateUse1. The caller holds the
/// mutex.
Backend place_of_device(BackendTable& t, std::string_view name, std::string_view key,
                        std::string_view owner) {
  const auto place = static_cast<Backend>(t.private_use.load(std::memory_order_relaxed));
  const bool adopts =
      place != kCpuBackend && t.spelling(place).name == kPrivateUseName && !find_backend(name);
  if (!adopts) {
    const auto known = find_backend(name);
    const bool named = known && t.places[*known] == PlaceState::Named, is_new = !known || named;
    const Backend own = place_of(t, "register_device", name, key);
    TENON_CHECK(!is_device(t.places[own]), Device,
                fmt::format("register_device: '{}' is a device of {} already; {} must choose another name",
                            name, t.owners[own], owner));
    if (named && t.spelling(own).key != key) {
      check_key("register_device", name, key);
      t.spell(own, name, key);
    }
    TENON_CHECK(t.spelling(own).key == key, Device,
                fmt::format("register_device: '{}' asks for the key {}, and its place was reserved under {}",
                            name, key, t.spelling(own).key));
    t.places[own] = is_new ? PlaceState::Made : PlaceState::Filled;
    return own;
  }
  check_name("register_device", name);
  check_key("register_device", name, key);
  t.spell(place, name, key);
  t.places[place] = PlaceState::Adopted;
  return place;
}

}  // namespace

std::optional<Backend> find_backend(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;  // a place that was given back
  return table().find([&](Backend b) { return table().spelling(b).name == name; });
}

std::optional<Backend> find_backend_by_key(std::string_view key) noexcept {
  if (key.empty()) return std::nullopt;
  return table().find([&](Backend b) { return table().spelling(b).key == key; });
}

Backend register_backend(std::string_view name, std::string_view key) {
  BackendTable& t = table();
  const std::lock_guard lock(t.mutex);
  return place_of(t, "register_backend", name, key);
}

Backend register_device(std::string_view name, std::string_view key, std::string_view owner) {
  BackendTable& t = table();
  const std::lock_guard lock(t.mutex);
  const Backend backend = place_of_device(t, name, key, owner);
  t.owners[backend] = owner;
  int none = 0;
  t.private_use.compare_exchange_strong(none, backend, std::memory_order_release);
  return backend;
}

Backend private_use_backend() {
  BackendTable& t = table();
  const std::lock_guard lock(t.mutex);
  if (const int known = t.private_use.load(std::memory_order_relaxed)) return static_cast<Backend>(known);
  const Backend place = place_of(t, "register_backend", kPrivateUseName, kPrivateUseKey);
  t.private_use.store(place, std::memory_order_release);
  return place;
}

std::optional<Backend> find_private_use_backend() noexcept {
  const int known = table().private_use.load(std::memory_order_acquire);
  return known != 0 ? std::optional(static_cast<Backend>(known)) : std::nullopt;
}

void release_device(Backend backend, bool reserved) noexcept {
  BackendTable& t = table();
  const std::lock_guard lock(t.mutex);
  t.owners[backend].clear();
  PlaceState& place = t.places[backend];
  if (place == PlaceState::Adopted && !reserved) t.spell(backend, kPrivateUseName, kPrivateUseKey);
  if (place == PlaceState::Made && !reserved) {
    t.spell(backend, "", "", t.spelling(backend).name);
    place = PlaceState::Vacant;
    int first = backend;
    t.private_use.compare_exchange_strong(first, 0, std::memory_order_release);
  } else {
    place = PlaceState::Reserved;
  }
}

std::string_view backend_name(Backend backend) noexcept { return table().spelling(backend).name; }
std::string_view backend_key(Backend backend) noexcept { return table().spelling(backend).key; }
int live_backends() noexcept { return table().count.load(std::memory_order_acquire); }

constinit std::atomic<void (*)(std::string_view)> detail::load_missing_device{nullptr};

namespace {

/// The place of a device that is not here, for a name that PyTorch knows.
std::optional<Backend> named_backend(std::string_view name) {
  for (const auto& [known, key] : kForeignDevices) {
    if (known != name) continue;
    BackendTable& t = table();
    const std::lock_guard lock(t.mutex);
    if (const auto there = find_backend(name)) return there;  // another thread was first
    const Backend place = place_of(t, "Device", name, key);
    t.places[place] = PlaceState::Named;
    return place;
  }
  return std::nullopt;
}

/// "cpu, meta": what tensors can be on.
std::string loaded_devices() {
  BackendTable& t = table();
  const std::lock_guard lock(t.mutex);
  std::string names;
  for (Backend b = 0; b < live_backends(); ++b) {
    if (is_device(t.places[b])) names.append(backend_name(b)).append(", ");
  }
  return names + "meta";
}

}  // namespace

std::string no_such_device(std::string_view name) {
  return fmt::format("no loaded device is called '{}'; there are {}", name, loaded_devices());
}

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view device = text.substr(0, colon);
  auto found = find_backend(device);
  if (!found) {
    if (const auto load = detail::load_missing_device.load(std::memory_order_acquire)) load(device);
    found = find_backend(device);
  }
  if (!found) found = named_backend(device);
  TENON_CHECK(found, Value, fmt::format("Device: {}", no_such_device(device)));
  backend = *found;
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  int parsed = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  TENON_CHECK(error == std::errc() && end == digits.data() + digits.size() && parsed >= 0 && parsed < 128,
              Value, fmt::format("Device: expected an index from 0 to 127 after ':' in '{}'", text));
  index = static_cast<int8_t>(parsed);
}

std::string to_string(Device device) {
  const Spelling& spelling = table().spelling(device.backend);
  std::string text = spelling.name.empty() ? spelling.former : spelling.name;
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  if (spelling.name.empty() && !spelling.former.empty()) text += " (unloaded)";
  return text;
}

std::string_view name(Layout layout) noexcept {
  constexpr std::string_view kNames[] = {"strided", "sparse_coo", "sparse_csr", "blocked"};
  return kNames[static_cast<int>(layout)];
}

}  // namespace tenon
