#include "tenon/core/copy_report.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tenon {
namespace {

std::atomic<int64_t> g_copies{0};
std::atomic<void (*)(const CopyReport&)> g_copy_sink{nullptr};

std::atomic<bool>& showing() {
  static std::atomic<bool> on{[] {
    const char* text = std::getenv("TENON_SHOW_COPIES");
    return text && *text && std::strcmp(text, "0") != 0;
  }()};
  return on;
}

void print_copy(const CopyReport& c) {
  std::fprintf(stderr, "[copy] %s: `%s`, %zu bytes: %s\n", c.op, c.argument, c.nbytes, c.reason);
}

}  // namespace

void report_copy(const char* op, const char* argument, const char* reason, size_t nbytes) {
  g_copies.fetch_add(1, std::memory_order_relaxed);
  if (!showing().load(std::memory_order_relaxed)) return;
  const auto sink = g_copy_sink.load(std::memory_order_acquire);
  (sink ? sink : &print_copy)({op, argument, reason, nbytes});
}

int64_t hidden_copies() noexcept { return g_copies.load(std::memory_order_relaxed); }
void set_show_copies(bool on) noexcept { showing().store(on, std::memory_order_relaxed); }
void set_copy_sink(void (*sink)(const CopyReport&)) noexcept {
  g_copy_sink.store(sink, std::memory_order_release);
}

}  // namespace tenon
