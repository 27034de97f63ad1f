// Worked example 9 of the specification: the dispatch trace of a factory, and how key sets print.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"

namespace tenon {
namespace {

std::vector<std::string> lines;

TEST(Worked9, TheTraceOfRandnShowsBackendSelectAndWhatIsNested) {
  lines.clear();
  set_diagnostic_sink([](std::string_view line) { lines.emplace_back(line); });
  set_dispatch_trace(true);
  randn({3, 3});
  set_dispatch_trace(false);
  set_diagnostic_sink(nullptr);
  const auto has = [](size_t i, const char* what, const char* op, const char* key) {
    ASSERT_LT(i, lines.size());
    EXPECT_NE(lines[i].find(what), std::string::npos) << lines[i];
    EXPECT_NE(lines[i].find(std::string("op=[aten::") + op + "]"), std::string::npos) << lines[i];
    EXPECT_NE(lines[i].find(std::string("key=[") + key + "]"), std::string::npos) << lines[i];
  };
  has(0, "[call]", "randn", "BackendSelect");
  has(1, "[redispatch]", "randn", "CPU");
  has(2, "[call]", "empty.memory_format", "BackendSelect");
  has(3, "[redispatch]", "empty.memory_format", "CPU");
  has(4, "[call]", "normal_", "CPU");
  EXPECT_EQ(lines.size(), 6u);
  // What is nested stands further in.
  EXPECT_LT(lines[0].find('['), lines[2].find('['));
}

TEST(Worked9, KeySetsPrintInRisingPriority) {
  Tensor x = zeros({2});
  EXPECT_EQ(to_string(x.key_set()), "DispatchKeySet(CPU)");
  x.requires_grad_();
  EXPECT_EQ(to_string(x.key_set()), "DispatchKeySet(CPU, AutogradCPU)");
}

}  // namespace
}  // namespace tenon
