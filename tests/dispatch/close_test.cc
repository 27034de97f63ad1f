// Libraries of operators that come by dlopen and go by dlclose, without load_library.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tenon/dispatch/stub.h"
#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

void* open(const char* name) {
  void* handle = dlopen(plugin(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(handle) << dlerror();
  return handle;
}
/// Closes it, after which it must not be in memory any more: otherwise these tests would prove nothing.
void close(void* handle, const char* name) {
  EXPECT_EQ(dlclose(handle), 0);
  EXPECT_FALSE(dlopen(plugin(name).c_str(), RTLD_NOW | RTLD_NOLOAD)) << name << " is still mapped";
}
bool exists(const char* op) { return Dispatcher::singleton().find_op(op).has_value(); }

class Close : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!*TENON_TEST_PLUGINS) GTEST_SKIP() << "this build has no plug-ins to load";
    def_.def(
        "op(Tensor a) -> int", +[](const Tensor&) { return int64_t{10}; });
    def_.def("bare(Tensor a) -> int");
  }
  static int64_t call() { return find("loading::op").typed<int64_t(const Tensor&)>().call(one()); }

  Library def_ = declare("loading");
};

TEST_F(Close, ALibraryThatNobodyLookedAtLeavesNothing) {
  void* handle = open("good_plugin");
  close(handle, "good_plugin");
  EXPECT_EQ(call(), 10);
  EXPECT_FALSE(exists("goodplugin::own"));
}

TEST_F(Close, ClosingTakesBackWhatALookUpCommitted) {
  EXPECT_EQ(call(), 10);
  void* handle = open("good_plugin");
  EXPECT_EQ(call(), 20);
  EXPECT_TRUE(exists("goodplugin::own"));
  close(handle, "good_plugin");
  EXPECT_EQ(call(), 10);
  EXPECT_FALSE(exists("goodplugin::own"));
}

TEST_F(Close, OpeningAgainRegistersAgain) {
  for (int round = 0; round < 5; ++round) {
    void* handle = open("good_plugin");
    EXPECT_EQ(find("goodplugin::own").typed<int64_t(const Tensor&)>().call(one()), 20);
    EXPECT_EQ(call(), 20);
    close(handle, "good_plugin");
    EXPECT_EQ(call(), 10);
    EXPECT_CONTAINS(thrown_by([] { find("goodplugin::own"); }).text, "does not exist");
  }
}

TEST_F(Close, ItStaysUntilTheLastHandleIsClosed) {
  void* first = open("good_plugin");
  void* second = open("good_plugin");
  EXPECT_EQ(call(), 20);
  EXPECT_EQ(dlclose(first), 0);
  EXPECT_EQ(call(), 20);
  EXPECT_TRUE(exists("goodplugin::own"));
  close(second, "good_plugin");
  EXPECT_EQ(call(), 10);
}

TEST_F(Close, AFallbackLeavesEveryTable) {
  const auto bare = find("loading::bare").typed<int64_t(const Tensor&)>();
  EXPECT_EQ(thrown_by([&] { bare.call(one()); }).kind, ErrorKind::NotImplemented);
  void* handle = open("fallback_plugin");
  Dispatcher::singleton().commit_pending();
  EXPECT_EQ(bare.call(one()), 50);
  EXPECT_EQ(call(), 10);
  close(handle, "fallback_plugin");
  EXPECT_EQ(thrown_by([&] { bare.call(one()); }).kind, ErrorKind::NotImplemented);
  EXPECT_EQ(call(), 10);
}

TEST_F(Close, AHandleOutlivesTheOperator) {
  void* library = open("own_plugin");
  const OperatorHandle op = find("ownplugin::op");
  const auto typed = op.typed<int64_t(const Tensor&)>();
  EXPECT_EQ(typed.call(one()), 40);
  close(library, "own_plugin");
  EXPECT_EQ(op.full_name(), "ownplugin::op");
  EXPECT_EQ(thrown_by([&] { typed.call(one()); }).kind, ErrorKind::NotImplemented);
  EXPECT_EQ(thrown_by([&] { op.schema(); }).kind, ErrorKind::NotImplemented);
  library = open("own_plugin");
  Dispatcher::singleton().commit_pending();
  EXPECT_EQ(typed.call(one()), 40);
  close(library, "own_plugin");
}

TEST_F(Close, ABadLibraryRaisesOnceAndMayBeClosed) {
  for (int round = 0; round < 2; ++round) {
    void* handle = open("bad_plugin");
    EXPECT_CONTAINS(thrown_by([] { find("loading::op"); }).text, "bad_plugin.cc");
    EXPECT_EQ(call(), 10);
    EXPECT_TRUE(exists("badplugin::own"));  // its other block is good
    close(handle, "bad_plugin");
    EXPECT_FALSE(exists("badplugin::own"));
  }
}

TEST_F(Close, UnloadingGoesBeforeClosing) {
  void* handle = open("good_plugin");
  EXPECT_EQ(call(), 20);
  unload_library(plugin("good_plugin"));
  EXPECT_EQ(call(), 10);
  close(handle, "good_plugin");
  EXPECT_EQ(call(), 10);
}

TEST_F(Close, LookUpsRaceWithOpeningAndClosing) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
        // Before it is found, after, or in between: there or not there, and nothing else.
        if (const auto op = Dispatcher::singleton().find_op("ownplugin::op")) {
          EXPECT_EQ(op->name(), "ownplugin::op");
        }
        EXPECT_EQ(call(), 10);
        Dispatcher::singleton().operator_names();
        EXPECT_FALSE(exists("ownplugin::missing"));
      }
    });
  }
  // Two threads that open and close one library, and one that loads another.
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) {
      void* handle = open("own_plugin");
      exists("ownplugin::op");
      EXPECT_EQ(dlclose(handle), 0);
    }
  });
  for (int i = 0; i < 200; ++i) {
    void* handle = open("own_plugin");
    if (i % 2) Dispatcher::singleton().commit_pending();
    EXPECT_EQ(dlclose(handle), 0);
    if (i % 20 == 0) {
      load_library(plugin("late_def_plugin"));
      EXPECT_TRUE(exists("lateplugin::op"));
      unload_library(plugin("late_def_plugin"));
    }
  }
  other.join();
  done = true;
  for (auto& t : threads) t.join();
  EXPECT_FALSE(exists("ownplugin::op"));
  void* handle = open("own_plugin");
  EXPECT_EQ(find("ownplugin::late").typed<int64_t(const Tensor&)>().call(one()), 40);
  close(handle, "own_plugin");
}

// A library that is closed and opened again between the listing of its blocks and the search for its path is
// found by a path that no lock but the loader's guards. ThreadSanitizer knows that lock only in part: which
// bytes of a path it lets pass depends on how long the path is.
TEST_F(Close, LookUpsRaceWithOpeningByPathsOfEveryLength) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tenon_close_test." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) Dispatcher::singleton().commit_pending();
    });
  }
  for (size_t extra = 1; extra <= 8; ++extra) {
    const auto link = folder / (std::string(extra, 'x') + ".so");
    std::filesystem::create_symlink(plugin("own_plugin"), link);
    for (int i = 0; i < 50; ++i) {
      void* handle = dlopen(link.c_str(), RTLD_NOW | RTLD_LOCAL);
      EXPECT_TRUE(handle) << dlerror();
      EXPECT_EQ(dlclose(handle), 0);
    }
  }
  done = true;
  for (auto& t : threads) t.join();
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(exists("ownplugin::op"));
}

TEST_F(Close, OperatorsOfAnOpenLibraryRunUntilTheProcessEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        // Runs after the library's destructors.
        std::atexit([] {
          if (call() != 20) _exit(3);
        });
        open("good_plugin");
        if (call() != 20) _exit(2);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// AddressSanitizer takes a second copy for two definitions of each global; no sanitizer takes RTLD_DEEPBIND.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::array<int, 0> kWaysToOpen{};
#elif defined(__SANITIZE_THREAD__)
constexpr int kWaysToOpen[] = {RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_LOCAL};
#else
constexpr int kWaysToOpen[] = {RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_LOCAL,
                               RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND};
#endif

TEST_F(Close, ASecondCopyOfTenonChangesNothing) {
  Dl_info ours{}, program{};
  ASSERT_TRUE(dladdr(reinterpret_cast<const void*>(&load_library), &ours));
  ASSERT_TRUE(dladdr(reinterpret_cast<const void*>(&plugin), &program));
  if (ours.dli_fbase == program.dli_fbase) GTEST_SKIP() << "Tenon is part of the program";
  const auto copy =
      std::filesystem::temp_directory_path() / ("libtenon_copy_" + std::to_string(getpid()) + ".so");
  std::filesystem::copy_file(ours.dli_fname, copy);
  const auto before = Dispatcher::singleton().operator_names();
  const size_t stubs = StubBase::all().size();
  for (const int flags : kWaysToOpen) {
    void* handle = dlopen(copy.c_str(), flags);
    ASSERT_TRUE(handle) << dlerror();
    EXPECT_EQ(Dispatcher::singleton().operator_names(), before);
    EXPECT_EQ(call(), 10);
    EXPECT_EQ(StubBase::all().size(), stubs);
    EXPECT_EQ(dlclose(handle), 0);
    EXPECT_EQ(Dispatcher::singleton().operator_names(), before);
    EXPECT_EQ(StubBase::all().size(), stubs);
    EXPECT_EQ(call(), 10);
    EXPECT_THROW(Device("nowhere"), Error);                     // looks for a file of that name
    for (const StubBase* stub : StubBase::all()) stub->has(1);  // asks what stands in for other devices
    Dispatcher::singleton().invalidate_tables();
    const auto sum = find("aten::sum").typed<Tensor(const Tensor&, std::optional<DType>)>();
    EXPECT_EQ(value_of(sum.call(one(3), std::nullopt)), 3);
    const auto neg = find("aten::neg").typed<Tensor(const Tensor&)>();
    EXPECT_EQ(value_of(neg.call(one(3))), -3);
  }
  std::filesystem::remove(copy);
}

}  // namespace
}  // namespace tenon
