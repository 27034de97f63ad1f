// Current devices and streams, guards, and events, over a runtime that only notes what it is asked. What
// order the events of a real queue keep is tested in tests/ops/queue_device_test.cc.
#include "tenon/core/stream.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"

namespace tenon {
namespace {

struct NotingRuntime final : DeviceRuntime {
  int device_count() const noexcept override { return 3; }
  uint64_t create_stream(Device) override { return ++last_stream; }
  void synchronize(Stream stream) override { notes.push_back("synchronize " + to_string(stream)); }
  uint64_t create_event(Device device) override {
    notes.push_back("create on " + to_string(device));
    return ++last_event;
  }
  void destroy_event(Device, uint64_t event) noexcept override {
    notes.push_back("destroy " + std::to_string(event));
  }
  void record(uint64_t event, Stream stream) override {
    notes.push_back("record " + std::to_string(event) + " on " + to_string(stream));
  }
  void wait(Stream stream, Device, uint64_t event) override {
    notes.push_back(to_string(stream) + " waits for " + std::to_string(event));
  }
  bool query(Device, uint64_t) override { return false; }
  void synchronize(Device, uint64_t event) override {
    notes.push_back("host waits for " + std::to_string(event));
  }
  std::vector<std::string> take() { return std::exchange(notes, {}); }

  uint64_t last_stream = 0, last_event = 0;
  std::vector<std::string> notes;
};

NotingRuntime& runtime() {
  static NotingRuntime& runtime = *new NotingRuntime;
  return runtime;
}

Backend noting() {
  static const Backend backend = [] {
    const Backend b = register_backend("noting", "Noting");
    set_device_runtime(b, &runtime());
    return b;
  }();
  return backend;
}
Device device(int index) { return Device(noting(), static_cast<int8_t>(index)); }

std::string device_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Device);
    return e.what();
  }
  return "nothing was thrown";
}

TEST(CurrentDevice, FillsInTheIndexOfItsBackendAlone) {
  EXPECT_EQ(resolved(Device(noting())), device(0));
  EXPECT_EQ(resolved(device(2)), device(2));
  {
    const DeviceGuard guard(device(2));
    EXPECT_EQ(resolved(Device(noting())), device(2));
    EXPECT_EQ(current_stream(Device(noting())), (Stream{device(2), 0}));
    const DeviceGuard same(Device{noting()});
    EXPECT_EQ(resolved(Device(noting())), device(2)) << "without an index it changes nothing";
  }
  EXPECT_EQ(resolved(Device(noting())), device(0));
  EXPECT_EQ(resolved(kCPU), kCPU);
  EXPECT_EQ(resolved(kMeta), kMeta);
}

TEST(CurrentDevice, ABackendWithoutARuntimeHasOneDeviceWithoutAnIndex) {
  const Device plain(register_backend("plain", "Plain"));
  EXPECT_EQ(resolved(plain), plain);
  EXPECT_EQ(current_stream(plain), (Stream{plain, 0}));
  const DeviceGuard nothing(plain);
  {
    const StreamGuard its_only_one(current_stream(plain));
    const StreamGuard of_another(Stream::create(device(1)));
  }
  EXPECT_EQ(device_error([&] { const DeviceGuard guard(Device(plain.backend, 1)); }),
            "set_current_device: device plain:1 has no streams; its library sets no DeviceRuntime");
  EXPECT_EQ(device_error([&] { Stream::create(plain); }),
            "Stream: device plain has no streams; its library sets no DeviceRuntime");
}

TEST(CurrentDevice, AnIndexThatIsNotThereIsRefused) {
  EXPECT_EQ(device_error([] { const DeviceGuard guard(device(3)); }),
            "set_current_device: there is no device noting:3; backend noting has 3");
  EXPECT_EQ(device_error([] { Stream::create(device(100)); }),
            "Stream: there is no device noting:100; backend noting has 3");
  EXPECT_EQ(device_error([] {
              set_current_stream({device(3), 1});
            }),
            "set_current_stream: there is no device noting:3; backend noting has 3");
}

TEST(StreamGuard, SetsDeviceAndStreamAndRestoresBoth) {
  const Stream one = Stream::create(device(1)), other = Stream::create(device(1));
  EXPECT_NE(one, other);
  EXPECT_NE(one.id, 0u);
  {
    const StreamGuard guard(one);
    EXPECT_EQ(resolved(Device(noting())), device(1));
    EXPECT_EQ(current_stream(Device(noting())), one);
    EXPECT_EQ(current_stream(device(0)), (Stream{device(0), 0}));
    {
      const StreamGuard inner(other);
      const StreamGuard elsewhere(Stream{device(2), 0});
      EXPECT_EQ(current_stream(Device(noting())), (Stream{device(2), 0}));
      EXPECT_EQ(current_stream(device(1)), other);
    }
    EXPECT_EQ(current_stream(Device(noting())), one);
    const StreamGuard back_to_default(Stream{device(1), 0});
    EXPECT_EQ(current_stream(device(1)), (Stream{device(1), 0}));
  }
  EXPECT_EQ(resolved(Device(noting())), device(0));
  EXPECT_EQ(current_stream(device(1)), (Stream{device(1), 0}));
}

TEST(StreamGuard, RestoresWhenAnExceptionLeavesTheScope) {
  const Stream stream = Stream::create(device(2));
  try {
    const StreamGuard guard(stream);
    const DeviceGuard further(device(1));
    throw std::runtime_error("in the scope");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(resolved(Device(noting())), device(0));
  EXPECT_EQ(current_stream(device(2)), (Stream{device(2), 0}));
  const DeviceGuard before(device(1));
  EXPECT_THROW(
      {
        const StreamGuard guard(stream);
        const DeviceGuard missing(device(9));
      },
      Error);
  EXPECT_EQ(resolved(Device(noting())), device(1));
}

TEST(StreamGuard, EveryThreadHasItsOwn) {
  const Stream stream = Stream::create(device(1));
  const StreamGuard guard(stream);
  std::optional<Stream> seen, set;
  std::thread([&] {
    seen = current_stream(device(1));
    const StreamGuard inner(Stream{device(2), 77});
    set = current_stream(Device(noting()));
  }).join();
  EXPECT_EQ(seen, (Stream{device(1), 0}));
  EXPECT_EQ(set, (Stream{device(2), 77}));
  EXPECT_EQ(current_stream(Device(noting())), stream);
}

TEST(HostStream, RunsInOrderAtOnce) {
  const Stream host = Stream::create(kCPU);
  EXPECT_EQ(host, current_stream(kCPU));
  EXPECT_EQ(to_string(host), "cpu");
  const StreamGuard guard(host);
  Event event(kCPU);
  EXPECT_TRUE(event.query());
  event.record(host);
  EXPECT_TRUE(event.query());
  event.wait(host);
  event.synchronize();
  host.synchronize();
}

TEST(Event, GoesToTheRuntimeOfItsDevice) {
  const Stream stream = Stream::create(device(1));
  runtime().take();
  const std::string name = to_string(stream);
  {
    Event event{Device(noting())};
    EXPECT_TRUE(event.query()) << "nothing was recorded";
    event.wait(stream);
    event.synchronize();
    EXPECT_TRUE(runtime().take().empty());
    event.record(stream);
    EXPECT_EQ(event.device(), device(1)) << "settled by the first record";
    EXPECT_FALSE(event.query());
    event.wait({device(0), 0});
    event.record(stream);
    Event moved = std::move(event);
    moved.synchronize();
    stream.synchronize();
  }
  const std::string id = std::to_string(runtime().last_event);
  EXPECT_EQ(runtime().take(),
            (std::vector<std::string>{"create on noting:1", "record " + id + " on " + name,
                                      "noting:0 waits for " + id, "record " + id + " on " + name,
                                      "host waits for " + id, "synchronize " + name, "destroy " + id}));
}

TEST(Stream, HandsOutAReleasedOneOnceTheDeviceHas32) {
  // A backend of its own: of the other one the other tests make streams.
  const Device pooled(register_backend("pooled", "Pooled"), 0);
  set_device_runtime(pooled.backend, new NotingRuntime);
  std::vector<uint64_t> made;
  for (int i = 0; i < 100; ++i) {
    const Stream stream = Stream::create(pooled);
    made.push_back(stream.id);
    stream.release();
    stream.release();  // says nothing new
  }
  for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i], made[i % 32]) << "the one released first";
  EXPECT_EQ(std::set<uint64_t>(made.begin(), made.end()).size(), 32u);
  std::set<uint64_t> held;
  for (int i = 0; i < 40; ++i) held.insert(Stream::create(pooled).id);
  EXPECT_EQ(held.size(), 40u) << "what somebody has is nobody else's";
  EXPECT_EQ(count_streams(pooled.backend), 40u);
  for (const uint64_t id : held) Stream{pooled, id}.release();
}

TEST(Event, BelongsToOneDeviceAndOneBackend) {
  Event event(device(1));
  EXPECT_EQ(device_error([&] {
              event.record({device(0), 0});
            }),
            "Event: an event of device noting:1 cannot be recorded on a stream of noting:0");
  EXPECT_EQ(device_error([&] { event.record(current_stream(kCPU)); }),
            "Event: an event of device noting:1 cannot be recorded on a stream of cpu");
  event.record({device(1), 0});
  EXPECT_EQ(
      device_error([&] { event.wait(current_stream(kCPU)); }),
      "Event: a stream of device cpu cannot wait for an event of noting:1; synchronize() waits for it on "
      "the host");
  Event host(kCPU);
  EXPECT_EQ(
      device_error([&] {
        host.wait({device(0), 0});
      }),
      "Event: a stream of device noting:0 cannot wait for an event of cpu; synchronize() waits for it on "
      "the host");
}

}  // namespace
}  // namespace tenon
