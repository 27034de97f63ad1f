// main of every room's test program.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/leak_check.h"

namespace {

const pid_t kStarted = getpid();
bool skips_leak_check = false;

}  // namespace

void tenon::testing::skip_leak_check() noexcept { skips_leak_check = true; }

/// Asked by AddressSanitizer. A child of a process with threads has lost their stacks, and with them who
/// holds what.
extern "C" [[gnu::used, gnu::visibility("default")]] int __lsan_is_turned_off() {
  return skips_leak_check || getpid() != kStarted;
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
