// main of every room's test program.
//
// With TENON_COMPILE=all in the environment, every test runs inside a scope that records everything, which
// must change no result, but those that tests/not_recorded.txt names. The program then prints how many calls
// were recorded.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"
#include "tests/leak_check.h"

namespace {

const pid_t kStarted = getpid();
bool skips_leak_check = false;

/// A scope around each test.
class Recording final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    scope_.emplace(0, tenon::record::ScopeOptions{.threshold = 0});
  }
  void OnTestEnd(const ::testing::TestInfo&) override {
    try {
      scope_->end();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "what was recorded cannot be computed: " << e.what();
    }
    scope_.reset();
  }
  void OnTestProgramEnd(const ::testing::UnitTest&) override {
    const tenon::record::Counts counts = tenon::record::Recorder::current().counts();
    const uint64_t calls = counts.recorded + counts.ran_now;
    std::printf("recorded: %.1f %% of %llu calls that are no views\n",
                calls ? 100.0 * static_cast<double>(counts.recorded) / static_cast<double>(calls) : 100.0,
                static_cast<unsigned long long>(calls));
  }

 private:
  std::optional<tenon::record::Scope> scope_;
};

}  // namespace

void tenon::testing::skip_leak_check() noexcept { skips_leak_check = true; }

/// Asked by AddressSanitizer. A child of a process with threads has lost their stacks, and with them who
/// holds what.
extern "C" [[gnu::used, gnu::visibility("default")]] int __lsan_is_turned_off() {
  return skips_leak_check || getpid() != kStarted;
}

int main(int argc, char** argv) {
  // No test reads or writes the plans of whoever runs it.
  setenv("TENON_CACHE", "0", 0);
  ::testing::InitGoogleTest(&argc, argv);
  const char* const compile = std::getenv("TENON_COMPILE");
  if (compile && *compile && !::testing::GTEST_FLAG(list_tests)) {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Recording);
  }
  return RUN_ALL_TESTS();
}
