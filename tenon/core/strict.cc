#include "tenon/core/strict.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "tenon/core/recording.h"

namespace tenon {
namespace {

std::atomic<bool>& strict_flag() {
  static std::atomic<bool> flag{[] {
    const char* text = std::getenv("TENON_STRICT");
    return text && std::string_view(text) != "" && std::string_view(text) != "0";
  }()};
  return flag;
}

}  // namespace

void set_strict(bool on) {
  note_switch();
  strict_flag().store(on, std::memory_order_relaxed);
}
bool is_strict() noexcept { return strict_flag().load(std::memory_order_relaxed); }

}  // namespace tenon
