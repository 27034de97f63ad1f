#include "tenon/dispatch/fallback_policy.h"

#include <algorithm>
#include <atomic>

#include "tenon/dispatch/dispatcher.h"

namespace tenon {
namespace {

constexpr std::string_view kAten = "aten::";

/// Replaced policies are kept for the process: a call may still be reading one.
struct Entry {
  FallbackPolicy policy;
  const Entry* replaced;
};
constinit std::atomic<const Entry*> g_policies[32] = {};

const FallbackPolicy* policy_of(Backend backend) noexcept {
  const Entry* entry = g_policies[backend].load(std::memory_order_acquire);
  return entry ? &entry->policy : nullptr;
}

std::string_view without_aten(std::string_view name) noexcept {
  if (name.starts_with(kAten)) name.remove_prefix(kAten.size());
  return name;
}

bool names(std::string_view entry, std::string_view full_name) noexcept {
  entry = without_aten(entry);
  const std::string_view name = without_aten(full_name);
  return name == entry || (name.starts_with(entry) && name[entry.size()] == '.');
}

bool has(const std::vector<std::string>& list, std::string_view full_name) noexcept {
  return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return names(entry, full_name); });
}

/// The name of an operator without its overload.
std::string_view base_of(std::string_view entry) noexcept {
  entry = without_aten(entry);
  return entry.substr(0, entry.find('.'));
}

}  // namespace

bool FallbackPolicy::takes(std::string_view full_name) const noexcept {
  return kind != Kind::Never && !has(blocked, full_name) && (kind == Kind::All || has(listed, full_name));
}

void set_fallback_policy(Backend backend, FallbackPolicy policy) {
  const Entry* replaced = g_policies[backend].load(std::memory_order_acquire);
  g_policies[backend].store(new Entry{std::move(policy), replaced}, std::memory_order_release);
  Dispatcher::singleton().invalidate_tables();
}

bool falls_back(Backend backend, std::string_view full_name) noexcept {
  const FallbackPolicy* policy = policy_of(backend);
  return policy && backend != kCpuBackend && backend != kMetaBackend && policy->takes(full_name);
}

bool part_falls_back(Backend backend, std::string_view name) noexcept {
  const FallbackPolicy* policy = policy_of(backend);
  if (!policy || policy->kind == FallbackPolicy::Kind::Never) return false;
  return std::none_of(policy->blocked.begin(), policy->blocked.end(),
                      [&](const auto& entry) { return base_of(entry) == name; });
}

}  // namespace tenon
