// Loading a device through the plug-in interface, and its streams, events and memory.
#include "tenon/plugin/load.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <string>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"
#include "tenon/core/storage.h"

namespace tenon {
namespace {

/// Checks that `f` throws an Error of that kind whose text holds `part`.
template <class F>
void expect_error(F&& f, ErrorKind kind, const std::string& part) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << part;
}

Device openreg() {
  static const Device device = load_device(TENON_OPENREG, "openreg", {{"mode", "thread"}, {"devices", "2"}});
  return device;
}

TEST(LoadDevice, RegistersItUnderItsName) {
  EXPECT_EQ(backend_name(openreg().backend), "openreg");
  EXPECT_EQ(backend_key(openreg().backend), "OpenReg");
  EXPECT_EQ(device_runtime(openreg().backend)->device_count(), 2);
  EXPECT_EQ(Device("openreg:1").index, 1);
}

TEST(LoadDevice, OneFileUnderTwoNamesHasStateOfItsOwn) {
  const Device second = load_device(TENON_OPENREG, "second_reg", {{"devices", "1"}});
  EXPECT_NE(second.backend, openreg().backend);
  EXPECT_EQ(backend_key(second.backend), "SecondReg");
  EXPECT_EQ(device_runtime(second.backend)->device_count(), 1);
}

TEST(LoadDevice, RefusesATakenName) {
  openreg();
  expect_error([&] { load_device(TENON_OPENREG, "openreg"); }, ErrorKind::Device, "is a device of");
  expect_error([&] { load_device(TENON_OPENREG, "cpu"); }, ErrorKind::Device, "Tenon itself");
  expect_error([&] { load_device(TENON_OPENREG, "Upper"); }, ErrorKind::Value, "not a name");
  expect_error([&] { load_device(TENON_OPENREG, "sparse_thing"); }, ErrorKind::Value,
               "begins as the keys of another kind");
}

TEST(LoadDevice, RefusesUnknownAndBadOptions) {
  expect_error(
      [&] {
        load_device(TENON_OPENREG, "a_name", {{"colour", "red"}});
      },
      ErrorKind::Value, "no option 'colour'");
  expect_error(
      [&] {
        load_device(TENON_OPENREG, "a_name", {{"devices", "many"}});
      },
      ErrorKind::Value, "whole number");
  expect_error(
      [&] {
        load_device(TENON_OPENREG, "a_name", {{"mode", "fast"}});
      },
      ErrorKind::Value, "expected thread, sync");
  EXPECT_FALSE(find_backend("a_name")) << "a failed load leaves nothing behind";
}

TEST(LoadDevice, RefusesWhatIsNoPlugin) {
  const std::string text = ::testing::TempDir() + "/no_library.so";
  std::ofstream(text) << "text";
  expect_error([&] { load_device(text); }, ErrorKind::Device, "load_device");
  expect_error([&] { load_device(text + ".missing"); }, ErrorKind::Device, "load_device");
  expect_error([&] { load_device("libm.so.6"); }, ErrorKind::Device, "does not export tenon_plugin_v1");
}

TEST(PluginDevice, AllocatesAlignedMemoryThatTheHostDoesNotReach) {
  const Storage storage = Storage::allocate(100, openreg());
  ASSERT_NE(storage.address(), 0u);
  EXPECT_EQ(storage.address() % 64, 0u);
  EXPECT_DEATH(std::cout << *reinterpret_cast<char*>(storage.address()), "");
}

TEST(PluginDevice, SaysHowMuchMemoryThereIs) {
  expect_error([&] { Storage::allocate(size_t{1} << 40, openreg()); }, ErrorKind::OutOfMemory,
               "not to be had");
}

TEST(PluginDevice, HasStreamsAndEvents) {
  const Stream stream = Stream::create(openreg());
  Event event(openreg());
  event.record(stream);
  event.wait(current_stream(openreg()));
  event.synchronize();
  EXPECT_TRUE(event.query());
  stream.synchronize();
}

}  // namespace
}  // namespace tenon
