#include "tenon/core/fallback_report.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace tenon {
namespace {

struct Sum {
  int64_t calls = 0, nbytes = 0;
};
using Sums = std::map<std::pair<std::string, Backend>, Sum>;

std::mutex g_mutex;
/// Never destroyed: operators may be called from static destructors.
Sums& sums() {
  static Sums& all = *new Sums;
  return all;
}
std::atomic<void (*)(const FallbackReport&)> g_fallback_sink{nullptr};

std::atomic<bool>& logging() {
  static std::atomic<bool> on{[] {
    const char* text = std::getenv("TENON_LOG_FALLBACK");
    return text && *text && std::strcmp(text, "0") != 0;
  }()};
  return on;
}

void print_fallback(const FallbackReport& r) {
  std::fprintf(stderr, "[fallback] %.*s on %s: %zu bytes copied\n", static_cast<int>(r.name.size()),
               r.name.data(), to_string(r.device).c_str(), r.nbytes);
}

}  // namespace

void report_fallback(const FallbackReport& report) {
  {
    const std::lock_guard lock(g_mutex);
    Sum& sum = sums()[{std::string(report.name), report.device.backend}];
    ++sum.calls;
    sum.nbytes += static_cast<int64_t>(report.nbytes);
  }
  if (!logging().load(std::memory_order_relaxed)) return;
  const auto sink = g_fallback_sink.load(std::memory_order_acquire);
  (sink ? sink : &print_fallback)(report);
}

std::vector<FallbackCount> fallbacks() {
  const std::lock_guard lock(g_mutex);
  std::vector<FallbackCount> all;
  for (const auto& [key, sum] : sums()) all.push_back({key.first, key.second, sum.calls, sum.nbytes});
  return all;
}

void reset_fallbacks() {
  const std::lock_guard lock(g_mutex);
  sums().clear();
}

void set_log_fallbacks(bool on) noexcept { logging().store(on, std::memory_order_relaxed); }
void set_fallback_sink(void (*sink)(const FallbackReport&)) noexcept {
  g_fallback_sink.store(sink, std::memory_order_release);
}

}  // namespace tenon
