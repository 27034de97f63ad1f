#include "backends/cpu/cpu_target.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tenon/core/error.h"

namespace tenon::cpu {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_cpu_target(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.what();
  }
  return "no error";
}

TEST(CpuTarget, NamesParseBack) {
  for (const CpuTarget target : supported_cpu_targets()) {
    EXPECT_EQ(parse_cpu_target(name(target)), target);
    EXPECT_TRUE(is_supported(target));
  }
  EXPECT_FALSE(supported_cpu_targets().empty());
}

TEST(CpuTarget, UnknownNamesAreAnError) {
  EXPECT_NE(error_of("AVX1").find("unknown instruction set 'AVX1', expected one of"), std::string::npos);
  EXPECT_NE(error_of("").find("unknown instruction set"), std::string::npos);
}

TEST(CpuTarget, UnsupportedOnesAreAnErrorThatNamesTheSupported) {
  for (int i = 0; i < kNumCpuTargets; ++i) {
    const auto target = static_cast<CpuTarget>(i);
    if (is_supported(target)) continue;
    const std::string message = error_of(name(target));
    EXPECT_NE(message.find("cannot run"), std::string::npos);
    EXPECT_NE(message.find(name(supported_cpu_targets().back())), std::string::npos);
  }
}

TEST(CpuTarget, TheProcessRunsWhatTheVariableNamesOrTheBest) {
  const char* forced = std::getenv("TENON_CPU_TARGET");
  const CpuTarget want =
      forced != nullptr && *forced != '\0' ? parse_cpu_target(forced) : supported_cpu_targets().back();
  EXPECT_EQ(cpu_target(), want);
  EXPECT_EQ(cpu_target_name(), name(want));
}

}  // namespace
}  // namespace tenon::cpu
