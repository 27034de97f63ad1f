#include "tenon/core/warn.h"

#include <atomic>
#include <cstdio>

namespace tenon {
namespace {

std::atomic<void (*)(const char*)> g_function{nullptr};

}  // namespace

void warn(const char* message) {
  if (const auto function = g_function.load(std::memory_order_acquire)) return function(message);
  std::fprintf(stderr, "tenon: warning: %s\n", message);
}

void set_warning_function(void (*function)(const char*)) noexcept {
  g_function.store(function, std::memory_order_release);
}

}  // namespace tenon
