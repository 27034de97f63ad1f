#include "tenon/core/device.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <charconv>
#include <mutex>

#include "tenon/core/error.h"

namespace tenon {
namespace {

constexpr std::string_view kPrivateUseName = "privateuseone", kPrivateUseKey = "PrivateUse1";

struct Spelling {
  std::string name, key;
};

// Entries are written under the mutex and published by the count, so readers take no lock. A spelling is
// never freed: one is replaced when a device adopts the place of PrivateUse1.
struct BackendTable {
  std::mutex mutex;
  std::atomic<int> count{1};
  std::atomic<const Spelling*> spellings[32];
  std::atomic<int> private_use{0};  // 0: none yet
  std::string owners[32];           // of devices; under the mutex
  // Bits of backends, under the mutex: places that a device's registration made, or took over from
  // PrivateUse1; and those that were given back.
  uint32_t made = 0, adopted = 0, vacant = 0;

  BackendTable() {
    spell(kCpuBackend, "cpu", "CPU");
    spell(kMetaBackend, "meta", "Meta");
    owners[kCpuBackend] = owners[kMetaBackend] = "Tenon itself";
  }

  void spell(Backend backend, std::string_view name, std::string_view key) {
    spellings[backend].store(new Spelling{std::string(name), std::string(key)}, std::memory_order_release);
  }
  /// Empty for a number that nobody has.
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

/// The caller holds the mutex.
Backend place_of(BackendTable& t, const char* function, std::string_view name, std::string_view key) {
  check_name(function, name);
  if (const auto known = find_backend(name)) return *known;
  check_key(function, name, key);
  if (t.vacant != 0) {
    const auto free = static_cast<Backend>(std::countr_zero(t.vacant));
    t.vacant &= t.vacant - 1;
    t.spell(free, name, key);
    return free;
  }
  const int n = t.count.load(std::memory_order_relaxed);
  TENON_CHECK(n < kMetaBackend, Device,
              fmt::format("{}: no place left for '{}' among 32 backends", function, name));
  t.spell(static_cast<Backend>(n), name, key);
  t.count.store(n + 1, std::memory_order_release);
  return static_cast<Backend>(n);
}

/// A device's own place: the first device without one takes over that of PrivateUse1. The caller holds the
/// mutex.
Backend place_of_device(BackendTable& t, std::string_view name, std::string_view key) {
  const auto place = static_cast<Backend>(t.private_use.load(std::memory_order_relaxed));
  const bool adopts =
      place != kCpuBackend && t.spelling(place).name == kPrivateUseName && !find_backend(name);
  if (!adopts) {
    const bool is_new = !find_backend(name);
    const Backend own = place_of(t, "register_device", name, key);
    if (is_new) t.made |= 1u << own;
    return own;
  }
  check_name("register_device", name);
  check_key("register_device", name, key);
  t.spell(place, name, key);
  t.adopted |= 1u << place;
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
  const Backend backend = place_of_device(t, name, key);
  TENON_CHECK(t.owners[backend].empty(), Device,
              fmt::format("register_device: '{}' is a device of {} already; {} must choose another name",
                          name, t.owners[backend], owner));
  TENON_CHECK(t.spelling(backend).key == key, Device,
              fmt::format("register_device: '{}' asks for the key {}, and its place was reserved under {}",
                          name, key, t.spelling(backend).key));
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

void release_device(Backend backend) noexcept {
  BackendTable& t = table();
  const std::lock_guard lock(t.mutex);
  t.owners[backend].clear();
  const uint32_t bit = 1u << backend;
  if (t.adopted & bit) t.spell(backend, kPrivateUseName, kPrivateUseKey);
  if (t.made & bit) {
    t.spell(backend, "", "");
    t.vacant |= bit;
    int first = backend;
    t.private_use.compare_exchange_strong(first, 0, std::memory_order_release);
  }
  t.made &= ~bit;
  t.adopted &= ~bit;
}

std::string_view backend_name(Backend backend) noexcept { return table().spelling(backend).name; }
std::string_view backend_key(Backend backend) noexcept { return table().spelling(backend).key; }
int live_backends() noexcept { return table().count.load(std::memory_order_acquire); }

constinit std::atomic<void (*)(std::string_view)> detail::load_missing_device{nullptr};

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view device = text.substr(0, colon);
  auto found = find_backend(device);
  if (!found) {
    if (const auto load = detail::load_missing_device.load(std::memory_order_acquire)) load(device);
    found = find_backend(device);
  }
  if (!found) {
    std::string known;
    for (Backend b = 0; b < live_backends(); ++b) {
      if (!backend_name(b).empty()) known.append(backend_name(b)).append(", ");
    }
    throw_error(ErrorKind::Value,
                fmt::format("Device: no loaded device is called '{}'; there are {}meta", device, known));
  }
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
  std::string text(backend_name(device.backend));
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

std::string_view name(Layout layout) noexcept {
  constexpr std::string_view kNames[] = {"strided", "sparse_coo", "sparse_csr", "blocked"};
  return kNames[static_cast<int>(layout)];
}

}  // namespace tenon
