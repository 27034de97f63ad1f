#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

class Load : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!*TENON_TEST_PLUGINS) GTEST_SKIP() << "this build has no plug-ins to load";
    def_.def(
        "op(Tensor a) -> int", +[](const Tensor&) { return int64_t{10}; });
  }
  static int64_t call() { return find("loading::op").typed<int64_t(const Tensor&)>().call(one()); }

  Library def_ = declare("loading");
};

TEST_F(Load, UnloadingRestoresAndLoadingAgainReplays) {
  EXPECT_EQ(call(), 10);
  for (int round = 0; round < 2; ++round) {
    load_library(plugin("good_plugin"));
    EXPECT_EQ(call(), 20);
    EXPECT_TRUE(Dispatcher::singleton().find_op("goodplugin::own"));
    load_library(plugin("good_plugin"));  // already there
    unload_library(plugin("good_plugin"));
    EXPECT_EQ(call(), 10);
    EXPECT_FALSE(Dispatcher::singleton().find_op("goodplugin::own"));
  }
  EXPECT_EQ(thrown_by([] { unload_library(plugin("good_plugin")); }).kind, ErrorKind::Value);
}

TEST_F(Load, KernelsMayComeBeforeTheLibraryThatDeclaresTheirOperator) {
  const char* const orders[2][2] = {{"late_def_plugin", "early_impl_plugin"},
                                    {"early_impl_plugin", "late_def_plugin"}};
  for (const auto& order : orders) {
    load_library(plugin(order[0]));
    load_library(plugin(order[1]));
    EXPECT_EQ(find("lateplugin::op").typed<int64_t(const Tensor&)>().call(one()), 30);
    unload_library(plugin(order[0]));
    unload_library(plugin(order[1]));
  }
  load_library(plugin("early_impl_plugin"));
  EXPECT_CONTAINS(thrown_by([] { find("lateplugin::op"); }).text, "early_impl_plugin.cc");
  unload_library(plugin("early_impl_plugin"));
}

TEST_F(Load, FailureLeavesEveryTableAsItWas) {
  for (int round = 0; round < 2; ++round) {
    const Thrown t = thrown_by([] { load_library(plugin("bad_plugin")); });
    EXPECT_EQ(t.kind, ErrorKind::Type);
    EXPECT_CONTAINS(t.text, "argument `a` is Tensor in the schema, float in the kernel");
    EXPECT_CONTAINS(t.text, "bad_plugin.cc");
    EXPECT_EQ(call(), 10);
    EXPECT_FALSE(Dispatcher::singleton().find_op("badplugin::own"));
  }
}

TEST_F(Load, MissingFileIsADeviceError) {
  const Thrown t = thrown_by([] { load_library("/nonexistent/library.so"); });
  EXPECT_EQ(t.kind, ErrorKind::Device);
  EXPECT_CONTAINS(t.text, "/nonexistent/library.so");
  EXPECT_EQ(thrown_by([] { unload_library("/nonexistent/library.so"); }).kind, ErrorKind::Device);
}

}  // namespace
}  // namespace tenon
