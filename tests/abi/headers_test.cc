// The headers of the plug-in interface are what they say: plain C, and C++17 above it. layout_test.py checks
// how their structs lie in memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

::testing::AssertionResult compiles(const std::string& compiler, const std::string& header) {
  std::string command = compiler;
  command.append(" -Wall -Wextra -pedantic -Werror -fsyntax-only -I " TENON_SOURCE " -include tenon/abi/");
  command.append(header).append(" /dev/null");
  if (std::system(command.c_str()) == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << command;
}

TEST(Headers, ArePlainC) {
  for (const char* header : {"tenon_types.h", "tenon_program.h", "tenon_abi.h"})
    EXPECT_TRUE(compiles(TENON_C_COMPILER " -std=c11", header));
}

// Tools for plug-ins need no more than C++17, and nothing of Tenon but its C headers.
TEST(Headers, ToolsAreCpp17) {
  for (const char* header :
       {"program.h", "print_c.h", "plugin.h", "values.h", "kernel.h", "operator.h", "factory.h"})
    EXPECT_TRUE(compiles(TENON_CXX_COMPILER " -x c++ -std=c++17", header));
}

}  // namespace
