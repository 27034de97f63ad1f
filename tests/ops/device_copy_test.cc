// Copies and fills of a device that can copy bytes, compared with the same on the host, byte by byte of the
// storages, so that a byte too many is seen.
#include <fmt/core.h>

#include <cstring>

#include "tenon/abi/program.h"
#include "tenon/core/copy_report.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/device_stubs.h"
#include "tests/ops/blind_device.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using testing::BlindDevice;

BlindDevice& bytes() {
  static BlindDevice& device = BlindDevice::make("bytes", "Bytes");
  return device;
}
BlindDevice& others() {
  static BlindDevice& device = BlindDevice::make("otherbytes", "OtherBytes");
  return device;
}

/// A geometry over a storage of `held` elements.
struct Geometry {
  const char* name;
  Dims sizes, strides;
  int64_t offset, held;
  bool writable;
};
const Geometry kGeometries[] = {
    {"contiguous", {3, 4, 5}, {20, 5, 1}, 0, 60, true},
    {"transposed", {3, 4, 5}, {1, 15, 3}, 2, 64, true},
    {"flipped", {3, 4, 5}, {-20, -5, -1}, 59, 60, true},
    {"expanded", {3, 4, 5}, {0, 5, 1}, 1, 24, false},
    {"sliced", {3, 4, 5}, {80, 10, 2}, 3, 240, true},
    {"sparse", {3, 4, 5}, {1000, 100, 10}, 0, 3000, true},
    {"rows", {3, 4, 5}, {21, 5, 1}, 0, 64, true},
    {"overlapping", {3, 4, 5}, {1, 1, 1}, 4, 16, false},
};
const DType kDTypes[] = {DType::Float32, DType::Float64,   DType::Int64,   DType::UInt8,
                         DType::Bool,    DType::Complex64, DType::Float16, DType::Complex128};

/// A storage as a vector on the host, of small numbers.
Tensor storage_of(const Geometry& g, DType dtype, int start) {
  Tensor t = make_empty({g.held}, dtype);
  for (int64_t i = 0; i < g.held; ++i) {
    const int n = static_cast<int>((i * 7 + start) % 11);
    make_view(t, {}, {}, i).fill_(Scalar(n));
  }
  return t;
}
Tensor shown(const Tensor& storage, const Geometry& g) {
  return make_view(storage, g.sizes, g.strides, g.offset);
}
bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

/// Copies between every pair of geometries and dtypes on two devices as on the host.
void expect_copies(Device to, Device from, bool one_storage_of_dtypes = false) {
  for (const Geometry& d : kGeometries) {
    if (!d.writable) continue;
    for (const Geometry& s : kGeometries) {
      for (const DType dt : kDTypes) {
        for (const DType st : kDTypes) {
          if ((is_complex(st) && !is_complex(dt)) || (one_storage_of_dtypes && dt != st)) continue;
          const Tensor want = storage_of(d, dt, 1), source = storage_of(s, st, 5);
          const Tensor there = want.to(to), given = source.to(from);
          shown(want, d).copy_(shown(source, s));
          shown(there, d).copy_(shown(given, s));
          ASSERT_TRUE(same_bytes(there.to(kCPU), want))
              << s.name << " " << name(st) << " to " << d.name << " " << name(dt);
        }
      }
    }
  }
}

TEST(DeviceCopy, FromTheHost) { expect_copies(bytes().device(), kCPU); }
TEST(DeviceCopy, ToTheHost) { expect_copies(kCPU, bytes().device()); }
TEST(DeviceCopy, OnOneDevice) { expect_copies(bytes().device(), bytes().device()); }
TEST(DeviceCopy, ToAnotherIndex) { expect_copies(bytes().device(1), bytes().device(0)); }
TEST(DeviceCopy, ToAnotherBackend) { expect_copies(others().device(), bytes().device(1)); }

TEST(DeviceCopy, WhatLiesAlikeIsOneCopyOfBytes) {
  for (const Dims& strides : {Dims{5, 1}, Dims{1, 4}, Dims{-5, -1}}) {
    const Tensor host = make_empty_strided({4, 5}, {5, 1}, kFloat32).fill_(3);
    const int64_t offset = strides[0] < 0 ? 19 : 0;
    const Tensor from = make_view(host, {4, 5}, strides, offset);
    const Tensor to = make_view(make_empty({20}, kFloat32, bytes().device()), {4, 5}, strides, offset);
    bytes().copies = bytes().waits = 0;
    to.copy_(from);
    EXPECT_EQ(bytes().copies, 1);
    EXPECT_EQ(bytes().waits, 0) << "the host's memory was read when the call returned";
    const Tensor back = make_view(make_empty({20}, kFloat32), {4, 5}, strides, offset);
    back.copy_(to);
    EXPECT_EQ(bytes().copies, 2);
    EXPECT_EQ(bytes().waits, 1);
    EXPECT_TRUE(back.equal(from));
  }
}

TEST(DeviceCopy, OnlyPinnedMemoryIsReadAndWrittenLater) {
  const Tensor host = ones({4}), x = zeros({4}, TensorOptions(bytes().device()));
  const auto sent = [&](bool pinned) {
    bytes().pinned = pinned ? &cpu_allocator() : nullptr;
    host.fill_(1);
    x.copy_(host, /*non_blocking=*/true);
    host.fill_(2);  // too early, unless the copy has been
    current_stream(x.device()).synchronize();
    return x.to(kCPU).sum().item().to_double();
  };
  EXPECT_EQ(sent(false), 4);
  EXPECT_EQ(sent(true), 8);
  x.fill_(3);
  for (const bool pinned : {false, true}) {
    bytes().pinned = pinned ? &cpu_allocator() : nullptr;
    bytes().waits = 0;
    const Tensor read = x.to(kCPU, kFloat32, /*non_blocking=*/true);
    EXPECT_EQ(bytes().waits, pinned ? 0 : 1);
    (void)x.to(kCPU);
    EXPECT_EQ(bytes().waits, pinned ? 1 : 2) << "a copy that blocks waits";
    testing::expect_values(read, {3, 3, 3, 3});
  }
  bytes().pinned = nullptr;
}

TEST(DeviceCopy, AFewRunsOfBytesNeedNoHost) {
  const Tensor x = arange(24, TensorOptions().dtype(kFloat32)).reshape({4, 6}).to(bytes().device());
  const int64_t before = hidden_copies();
  bytes().copies = bytes().waits = 0;
  const Tensor left = x.narrow(1, 0, 3).clone(MemoryFormat::Contiguous);
  EXPECT_EQ(bytes().copies, 4);
  EXPECT_EQ(bytes().waits, 0);
  EXPECT_EQ(hidden_copies(), before);
  testing::expect_values(left.to(kCPU), {0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20});
}

std::string g_reason;

TEST(DeviceCopy, ThroughTheHostIsCountedAndNamed) {
  const Tensor x = ones({4, 4}).to(bytes().device());
  set_show_copies(true);
  set_copy_sink(+[](const CopyReport& r) {
    g_reason = fmt::format("{} `{}` {}: {}", r.op, r.argument, r.nbytes, r.reason);
  });
  const int64_t before = hidden_copies();
  (void)x.to(others().device());
  EXPECT_EQ(hidden_copies(), before + 1);
  EXPECT_EQ(g_reason, "to `src` 64: from bytes:0 to otherbytes:0 there is no way but through the host");
  (void)x.to(bytes().device(1));
  EXPECT_EQ(g_reason, "to `src` 64: from bytes:0 to bytes:1 there is no way but through the host");
  (void)x.to(kFloat64);
  EXPECT_EQ(hidden_copies(), before + 3);
  EXPECT_EQ(g_reason,
            "copy_ `src` 64: bytes copies bytes only: other strides or another dtype go through the host");
  set_copy_sink(nullptr);
  set_show_copies(false);
}

TEST(DeviceCopy, ACopyBetweenBackendsIsACallOfTheDispatcher) {
  const Tensor x = arange(6, TensorOptions().dtype(kFloat32)).to(bytes().device());
  Tensor y = zeros({6}, TensorOptions(others().device()).dtype(kFloat64));
  const uint64_t version = y._version();
  y.copy_(x);
  EXPECT_EQ(y._version(), version + 1);
  testing::expect_values(y.to(kCPU), {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(x.to(y).device(), others().device());
  EXPECT_EQ(x.type_as(y).dtype(), kFloat64);
  EXPECT_EQ(tenon::copy(y, x).device(), others().device());
  Tensor z = zeros({2}, TensorOptions(bytes().device()));
  z.fill_(y.select(0, 3));
  testing::expect_values(z.to(kCPU), {3, 3});
  testing::expect_error(ErrorKind::Device, "more than one accelerator (bytes, otherbytes)",
                        [&] { (void)x.add_(y); });
}

TEST(DeviceCopy, GradientsOfACopyBetweenBackendsComeBack) {
  Tensor x = ones({3}).to(bytes().device()).requires_grad_();
  Tensor y = zeros({3}, TensorOptions(others().device()));
  y.copy_(x);
  ASSERT_TRUE(y.requires_grad());
  y.backward(full({3}, 2, TensorOptions(others().device()).dtype(kFloat32)));
  EXPECT_EQ(x.grad().device(), bytes().device());
  testing::expect_values(x.grad().to(kCPU), {2, 2, 2});
}

TEST(DeviceCopy, CopyFromWritesItsSecondArgument) {
  const Tensor x = arange(4, TensorOptions().dtype(kFloat32));
  const Tensor y = zeros({2, 4}, TensorOptions(bytes().device()));
  const uint64_t version = y._version();
  EXPECT_TRUE(_copy_from(x, y).is_same(y));
  EXPECT_EQ(y._version(), version + 1);
  testing::expect_values(y.to(kCPU), {0, 1, 2, 3, 0, 1, 2, 3});
  const void* const address = y.data_ptr();
  EXPECT_TRUE(_copy_from_and_resize(x, y).is_same(y));
  testing::expect_sizes(y, {4});
  EXPECT_EQ(y.data_ptr(), address);
  testing::expect_values(y.to(kCPU), {0, 1, 2, 3});
  const Tensor z = zeros({1}, TensorOptions(others().device()));
  testing::expect_values(_copy_from_and_resize(y, z).to(kCPU), {0, 1, 2, 3});
}

TEST(DeviceCopy, MayOverlapItself) {
  const Tensor host = arange(8, TensorOptions().dtype(kFloat32));
  const Tensor there = host.to(bytes().device());
  const auto both = [&](auto&& f) {
    f(host), f(there);
    EXPECT_TRUE(there.to(kCPU).equal(host));
  };
  both([](Tensor x) { x.copy_(x.flip({0})); });
  both([](Tensor x) { x.narrow(0, 1, 7).copy_(x.narrow(0, 0, 7)); });
  both([](Tensor x) { x.view({2, 4}).copy_(x.view({4, 2}).t()); });
}

TEST(DeviceCopy, FillsEverythingThatATensorShows) {
  for (const Geometry& g : kGeometries) {
    for (const DType dtype : kDTypes) {
      const Tensor want = storage_of(g, dtype, 1), there = want.to(bytes().device());
      shown(want, g).fill_(1);
      shown(there, g).fill_(1);
      ASSERT_TRUE(same_bytes(there.to(kCPU), want)) << g.name << " " << name(dtype);
      shown(want, g).zero_();
      shown(there, g).zero_();
      ASSERT_TRUE(same_bytes(there.to(kCPU), want)) << g.name << " " << name(dtype);
    }
  }
  const Tensor large = full({3, 30001}, 7, TensorOptions(bytes().device()).dtype(kInt32));
  EXPECT_TRUE(large.to(kCPU).equal(full({3, 30001}, 7, TensorOptions().dtype(kInt32))));
  EXPECT_EQ(ones({0, 3}, TensorOptions(bytes().device())).numel(), 0);
}

TEST(DeviceCopy, ToTheCurrentDeviceIsTheTensorItself) {
  const Tensor t = ones({2}).to(bytes().device(1));
  EXPECT_EQ(t.device(), bytes().device(1));
  EXPECT_FALSE(t.to(Device(bytes().backend())).is_same(t)) << "device 0 is current";
  const DeviceGuard guard(bytes().device(1));
  EXPECT_TRUE(t.to(Device(bytes().backend())).is_same(t));
  EXPECT_TRUE(t.to(TensorOptions(Device("bytes"))).is_same(t));
  EXPECT_EQ(ones({1}).to(Device("bytes")).device(), bytes().device(1));
}

TEST(DeviceCopy, ValuesAreReadWithOneWait) {
  EXPECT_EQ(full({1, 1}, 3, TensorOptions(bytes().device())).item().to_double(), 3) << "of any rank";
  const Tensor t = full({}, 2.5, TensorOptions(bytes().device()).dtype(kFloat64));
  bytes().waits = 0;
  EXPECT_EQ(t.item().to_double(), 2.5);
  EXPECT_EQ(bytes().waits, 1);
}

/// Runs x -> x between tensors of int32 on the device, and declines all else.
int g_launches = 0;
bool run_identity(void*, const TenonLaunch& l) {
  const bool copies = l.program->ops_used == uint64_t{1} << TENON_OP_LOAD &&
                      l.operands[0].dtype == TENON_DTYPE_INT32 && l.operands[1].dtype == TENON_DTYPE_INT32;
  if (!copies) return false;
  ++g_launches;
  others().give({{l.stream.device.backend, l.stream.device.index}, l.stream.id}, [kept = abi::KeptLaunch(l)] {
    abi::run(*kept, [](const TenonOperand& o) {
      return o.place == TENON_PLACE_HOST ? reinterpret_cast<char*>(o.address)
                                         : BlindDevice::real(o.address, Place::Device);
    });
  });
  return true;
}

TEST(DeviceCopy, StridesAreTheDevicesWorkWhereItRunsExpressions) {
  set_pointwise_device(others().backend(), &run_identity, nullptr);
  const Tensor host = arange(1000, TensorOptions().dtype(kFloat32)).reshape({50, 20});
  const Tensor x = host.to(others().device());
  others().waits = g_launches = 0;
  const int64_t before = hidden_copies();
  const Tensor y = x.t().clone(MemoryFormat::Contiguous);
  EXPECT_EQ(g_launches, 1);
  EXPECT_EQ(others().waits, 0);
  EXPECT_EQ(hidden_copies(), before);
  EXPECT_TRUE(y.to(kCPU).equal(host.t()));
  // Columns that are far apart are packed before they leave.
  EXPECT_TRUE(x.select(1, 3).to(kCPU).equal(host.select(1, 3)));
  EXPECT_EQ(g_launches, 2);
  x.select(1, 4).copy_(host.select(1, 5));
  EXPECT_EQ(g_launches, 3);
  x.select(1, 7).fill_(-1);
  EXPECT_EQ(g_launches, 4);
  const Tensor want = host.clone();
  want.select(1, 4).copy_(host.select(1, 5));
  want.select(1, 7).fill_(-1);
  EXPECT_TRUE(x.to(kCPU).equal(want));
  // What it declines goes through the host.
  EXPECT_TRUE(x.to(kFloat64).to(kCPU).equal(want.to(kFloat64)));
  EXPECT_EQ(hidden_copies(), before + 1);
  set_pointwise_device(others().backend(), nullptr, nullptr);
}

TEST(DeviceCopy, ABytesDeviceWithoutAFallbackRefusesTheRest) {
  const Tensor t = ones({2}).to(bytes().device());
  testing::expect_error(ErrorKind::NotImplemented, "not implemented for device bytes",
                        [&] { (void)t.add(t); });
  testing::expect_error(ErrorKind::NotImplemented, "Stub 'reduce' has no function for device bytes:0",
                        [&] { (void)t.sum(); });
}

}  // namespace
}  // namespace tenon
