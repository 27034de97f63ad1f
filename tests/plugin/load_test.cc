// Loading a device through the plug-in interface, and its streams, events and memory.
#include "tenon/plugin/load.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <string>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"
#include "tenon/core/storage.h"
#include "tests/plugin/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

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

TEST(UnloadDevice, IsRefusedWhileSomethingLives) {
  const Device guest = load_device(TENON_OPENREG, "guest", {{"devices", "1"}});
  Storage bytes = Storage::allocate(100, guest), none = Storage::allocate(0, guest);
  expect_error([] { unload_device("guest"); }, ErrorKind::Runtime, "2 storages (of tensors");
  bytes = Storage();
  expect_error([] { unload_device("guest"); }, ErrorKind::Runtime, "in use: 1 storage (of tensors");
  none = Storage();
  const Stream stream = Stream::create(guest);
  expect_error([] { unload_device("guest"); }, ErrorKind::Runtime, "in use: 1 stream;");
  {
    Event event(guest);
    event.record(stream);
    expect_error([] { unload_device("guest"); }, ErrorKind::Runtime, "1 stream, 1 event;");
  }
  stream.release();
  unload_device("guest");
  EXPECT_FALSE(find_backend("guest"));
  expect_error([] { unload_device("guest"); }, ErrorKind::Value, "no device that is called 'guest'");
  EXPECT_EQ(load_device(TENON_OPENREG, "guest").backend, guest.backend) << "the number of its name";
  unload_device("guest");
}

TEST(UnloadDevice, ForgetsWhatWasCurrent) {
  const Device guest = load_device(TENON_OPENREG, "guest", {{"devices", "3"}});
  const Stream stream = Stream::create(Device(guest.backend, 2));
  set_current_device(Device(guest.backend, 2));
  set_current_stream(stream);
  stream.release();
  unload_device("guest");
  EXPECT_EQ(to_string(Device(guest.backend, 2)), "guest:2 (unloaded)");
  const Device other = load_device(TENON_OPENREG, "other", {{"devices", "3"}});
  EXPECT_NE(other.backend, guest.backend) << "what is left of one device would be taken for another";
  unload_device("other");
  const Device next = load_device(TENON_OPENREG, "guest", {{"devices", "3"}});
  ASSERT_EQ(next.backend, guest.backend);
  EXPECT_EQ(resolved(next).index, 0);
  EXPECT_EQ(current_stream(Device(next.backend, 2)).id, 0u);
  expect_error([&] { check_stream(stream, "test"); }, ErrorKind::Value, "test: device guest:2 has no stream");
  unload_device("guest");
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
