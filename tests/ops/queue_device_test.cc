// Order between the queues of a device, shown on one whose work runs only when somebody waits for it: what no
// event orders runs too late, every time, so that a missing event is seen without threads and without luck.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/reduction/stubs.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/device_stubs.h"
#include "tests/core/queue_runtime.h"
#include "tests/ops/launch_evaluator.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

/// Memory of the host, of which one can see whether it was written.
class LazyDevice final : public testing::QueueRuntime {
 public:
  Address allocate(size_t nbytes, Stream stream) override {
    ++blocks;
    last_allocated_for = stream;
    auto* block = static_cast<float*>(std::malloc(nbytes + sizeof(float)));
    std::fill(block, block + nbytes / sizeof(float), kUnwritten);
    return reinterpret_cast<Address>(block);
  }
  void deallocate(Address address, size_t nbytes, Stream stream) noexcept override {
    give(stream, [this, address, nbytes] {
      auto* block = reinterpret_cast<float*>(address);
      std::fill(block, block + nbytes / sizeof(float), kUnwritten);
      std::free(block);
      --blocks;
    });
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override {
    give(stream,
         [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes); });
  }
  std::string_view name() const noexcept override { return "lazy"; }

  int blocks = 0;  // in use, those with a free in their queue included
  std::optional<Stream> last_allocated_for;
};

LazyDevice& lazy() {
  static LazyDevice& device = *new LazyDevice;
  return device;
}

float* floats(const Tensor& t) { return static_cast<float*>(t.data_ptr()); }

/// Between the host and the device, or on it, contiguous.
void copy_floats(const Tensor& dst, const Tensor& src, bool /*non_blocking*/) {
  ASSERT_TRUE(dst.is_contiguous() && src.is_contiguous());
  const auto n = static_cast<size_t>(dst.numel());
  if (src.device().is_cpu()) {
    // The caller may change its memory when the call has returned.
    lazy().give(current_stream(dst.device()),
                [to = floats(dst), values = std::vector<float>(floats(src), floats(src) + n)] {
                  std::copy(values.begin(), values.end(), to);
                });
    return;
  }
  const Stream stream = current_stream(src.device());
  lazy().give(stream, [to = floats(dst), from = floats(src), n] { std::copy(from, from + n, to); });
  if (dst.device().is_cpu()) stream.synchronize();
}

void fill_floats(const Tensor& dst, const Scalar& value) {
  ASSERT_TRUE(dst.is_contiguous());
  lazy().give(current_stream(dst.device()),
              [to = floats(dst), n = dst.numel(), v = static_cast<float>(value.to_double())] {
                std::fill(to, to + n, v);
              });
}

Backend backend() {
  static const Backend backend = [] {
    const Backend b = register_backend("lazy", "Lazy");
    set_device_runtime(b, &lazy());
    set_allocator(b, &lazy());
    ops::copy_stub.set(b, &copy_floats);
    ops::fill_stub.set(b, &fill_floats);
    set_pointwise_device(
        b,
        [](void*, const TenonLaunch& launch) {
          const TenonStream& stream = launch.stream;
          lazy().give({{stream.device.backend, stream.device.index}, stream.id}, testing::kept(launch));
          return true;
        },
        nullptr);
    ops::reduce_stub.set_boxed(
        b,
        [](void*, Stream stream, Stack& stack) {
          const Tensor self = stack.at<Tensor>(0), out = stack.at<Tensor>(5);
          lazy().give(stream, [from = floats(self), to = floats(out), n = self.numel()] {
            *to = 0;
            for (int64_t i = 0; i < n; ++i) *to += from[i];
          });
          stack.clear();
          return true;
        },
        nullptr);
    return b;
  }();
  return backend;
}

Device device(int index = 0) { return Device(backend(), static_cast<int8_t>(index)); }
Tensor filled(double value, Device where = Device(backend())) {
  return full({4}, value, TensorOptions(where).dtype(kFloat32));
}
/// The first element, as the device's memory has it now.
float now(const Tensor& t) { return *floats(t); }
/// The first element, once the current stream has run.
float first(const Tensor& t) { return floats(t.to(kCPU))[0]; }

/// Two queues of one device.
struct Queues : ::testing::Test {
  Stream a = Stream::create(device()), b = Stream::create(device());
};

TEST_F(Queues, RunWhenSomebodyWaitsAndInOrder) {
  const StreamGuard guard(a);
  Tensor x = filled(2);
  const Tensor y = x * 3 + 1;
  x.fill_(5);
  const Tensor z = x + y;
  EXPECT_TRUE(std::isnan(now(x)));
  EXPECT_TRUE(std::isnan(now(z)));
  EXPECT_EQ(lazy().last_allocated_for, a);
  a.synchronize();
  EXPECT_EQ(now(x), 5);
  EXPECT_EQ(now(y), 7);
  EXPECT_EQ(now(z), 12);
}

TEST_F(Queues, AReadOfTheHostWaitsForItsStream) {
  const StreamGuard guard(a);
  EXPECT_EQ(first(filled(2) + 1), 3);
  EXPECT_EQ((filled(3) * 2).sum().item().to_double(), 24);
}

/// Writes in one queue what the other reads.
float read_what_the_other_wrote(Stream a, Stream b, bool with_event) {
  Event written(a.device);
  Tensor y;
  {
    const StreamGuard guard(a);
    y = filled(2, a.device) * 3;
    written.record(a);
  }
  const StreamGuard guard(b);
  if (with_event) written.wait(b);
  const float read = first(y + 1);
  a.synchronize();
  return read;
}

TEST_F(Queues, AnEventLetsAReadWaitForAWrite) {
  EXPECT_EQ(read_what_the_other_wrote(a, b, true), 7);
  EXPECT_TRUE(std::isnan(read_what_the_other_wrote(a, b, false))) << "the missing event was not seen";
}

/// Overwrites in one queue what the other still has to read.
float overwrite_what_the_other_reads(Stream a, Stream b, bool with_event) {
  Event read(b.device);
  Tensor x, y;
  {
    const StreamGuard guard(a);
    x = filled(2);
    a.synchronize();
  }
  {
    const StreamGuard guard(b);
    y = x + 1;
    read.record(b);
  }
  {
    const StreamGuard guard(a);
    if (with_event) read.wait(a);
    x.fill_(100);
    a.synchronize();
  }
  b.synchronize();
  return now(y);
}

TEST_F(Queues, AnEventLetsAWriteWaitForARead) {
  EXPECT_EQ(overwrite_what_the_other_reads(a, b, true), 3);
  EXPECT_EQ(overwrite_what_the_other_reads(a, b, false), 101) << "the missing event was not seen";
}

TEST_F(Queues, AnEventStandsForWhatWasGivenWhenItWasRecorded) {
  Event early(device());
  Tensor x, later;
  {
    const StreamGuard guard(a);
    x = filled(1);
    early.record(a);
    later = x + 1;
  }
  EXPECT_FALSE(early.query());
  early.wait(b);
  b.synchronize();
  EXPECT_TRUE(early.query());
  EXPECT_EQ(now(x), 1);
  EXPECT_TRUE(std::isnan(now(later))) << "nobody waits for it";
  early.record(a);
  EXPECT_FALSE(early.query());
  early.synchronize();
  EXPECT_EQ(now(later), 2);
}

TEST_F(Queues, DevicesOfOneBackendWaitForEachOther) {
  const Stream other = Stream::create(device(1));
  EXPECT_EQ(read_what_the_other_wrote(a, b, true), 7);
  Event written(device(1));
  Tensor x;
  {
    const StreamGuard guard(other);
    x = filled(4);
    EXPECT_EQ(x.device(), device(1));
    EXPECT_EQ(lazy().last_allocated_for, other);
    written.record(other);
  }
  EXPECT_EQ(filled(1).device(), device(0));
  written.wait(a);
  a.synchronize();
  EXPECT_EQ(now(x), 4);
}

TEST_F(Queues, AFreedBlockIsInUseUntilItsQueueHasPassed) {
  a.synchronize();
  current_stream(device()).synchronize();
  const int before = lazy().blocks;
  {
    const StreamGuard guard(a);
    Tensor y;
    {
      const Tensor x = filled(2);
      y = x * 2;
    }
    EXPECT_EQ(lazy().blocks, before + 2) << "the product has still to read it";
    EXPECT_EQ(first(y), 4);
    EXPECT_EQ(lazy().blocks, before + 1);
  }
  // It goes back in the order of the stream that it was taken for, whatever is current when it dies.
  EXPECT_EQ(lazy().blocks, before + 1);
  a.synchronize();
  EXPECT_EQ(lazy().blocks, before);
}

TEST_F(Queues, AResizedStorageBelongsToTheStreamThatResizedIt) {
  Event written(device());
  Tensor x;
  {
    const StreamGuard guard(a);
    x = filled(6);
    written.record(a);
  }
  EXPECT_EQ(x.storage()->stream(), a);
  const StreamGuard guard(b);
  written.wait(b);
  x.resize_({1000});
  EXPECT_EQ(x.storage()->stream(), b);
  b.synchronize();
  EXPECT_EQ(now(x), 6);
}

TEST_F(Queues, AnExceptionLeavesTheStreamFromBefore) {
  const Stream usual = current_stream(device());
  try {
    const StreamGuard guard(a);
    (void)filled(1);
    throw std::runtime_error("in the scope");
  } catch (const std::runtime_error&) {
  }
  const uint64_t in_a = lazy().given(a), in_usual = lazy().given(usual);
  const Tensor x = filled(1);
  EXPECT_EQ(lazy().given(a), in_a);
  EXPECT_GT(lazy().given(usual), in_usual);
}

TEST_F(Queues, GradientsAreWorkOfTheCurrentStream) {
  const StreamGuard guard(a);
  const uint64_t elsewhere = lazy().given({device(), 0});
  Tensor x = filled(3);
  x.requires_grad_();
  const Tensor y = x * x;
  y.backward(filled(1));
  EXPECT_TRUE(std::isnan(now(x.grad())));
  EXPECT_EQ(first(x.grad()), 6);
  EXPECT_EQ(lazy().given({device(), 0}), elsewhere);
}

}  // namespace
}  // namespace tenon
