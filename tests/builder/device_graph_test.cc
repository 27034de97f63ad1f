// Plans for a device whose memory is the host's, which takes expressions as the test says.
#include <gtest/gtest.h>

#include <cstring>

#include "tenon/abi/program.h"
#include "tenon/builder/graph.h"
#include "tenon/core/error.h"
#include "tenon/core/fallback_report.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tenon/tenon.h"
#include "tests/core/host_memory.h"

namespace tenon::builder {
namespace {

int launches = 0;
int devices_set = 0;  // how often a device, and a stream of it, was made current
uint32_t most_operands = 64;
Stream launched_on;

bool launch(void*, const TenonLaunch& given) {
  if (given.program->num_inputs + given.program->num_outputs > most_operands) return false;
  ++launches;
  launched_on = {Device(given.stream.device.backend, given.stream.device.index), given.stream.id};
  abi::run(given);
  return true;
}

/// Copies, so that operators run on host copies.
class CopyingRuntime final : public testing::ImmediateRuntime {
 public:
  CopyingRuntime() noexcept : ImmediateRuntime(1) {}
  int device_count() const noexcept override {
    ++devices_set;  // setting one asks whether it is there
    return ImmediateRuntime::device_count();
  }
  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream, Address to, Place, Address from, Place, size_t nbytes, uint32_t) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes);
  }
};

Device device() {
  static const Backend backend = [] {
    const Backend b = register_device("drafted", "Drafted", "the test");
    set_allocator(b, new testing::HostMemory("drafted"));
    set_device_runtime(b, new CopyingRuntime);
    set_pointwise_device(b, &launch, nullptr);
    return b;
  }();
  return Device(backend, 0);
}

Address address(const Tensor& t) { return t.impl()->address(); }

class PlansOfADevice : public ::testing::Test {
 protected:
  void SetUp() override {
    set({FallbackPolicy::Kind::All});
    most_operands = 64;
    launches = 0;
    reset_fallbacks();
  }
  static void set(FallbackPolicy policy) { set_cpu_fallback(device().backend, std::move(policy)); }

  /// (a * b + c) * d, of which each run gets `d`.
  Graph& write(Graph& g) {
    for (const Tensor& x : inputs_) tensors_.push_back(&g.tensor_like(x));
    auto& y = g.mul(g.add(g.mul(*tensors_[0], *tensors_[1]), *tensors_[2]), *tensors_[3]);
    tensors_.push_back(&y.set_output());
    return g;
  }
  void run(const Graph& g, const Handle* handle = nullptr) {
    std::unordered_map<uint64_t, Address> pack{{tensors_.back()->uid(), address(out_)}};
    for (size_t i = 0; i < inputs_.size(); ++i) pack[tensors_[i]->uid()] = address(inputs_[i]);
    const Storage room = Storage::allocate(std::max<size_t>(g.workspace_size(), 1), device());
    devices_set = 0;
    g.execute(pack, {reinterpret_cast<std::byte*>(room.address()), g.workspace_size()}, handle);
  }
  bool is_right() {
    const auto host = [&](size_t i) { return inputs_[i].to(kCPU); };
    return equal(out_.to(kCPU), (host(0) * host(1) + host(2)) * host(3));
  }

  const Handle handle_{.device = device()};
  // One of them is repeated, one is turned.
  std::vector<Tensor> inputs_{randn({5, 3}).to(device()), randn({3}).to(device()),
                              randn({3, 5}).to(device()).t(), randn({5, 3}).to(device())};
  Tensor out_ = make_empty({5, 3}, kFloat32, device());
  std::vector<TensorAttributes*> tensors_;
};

TEST_F(PlansOfADevice, LaunchWhatIsPointwiseAsOne) {
  Graph g({}, &handle_);
  write(g).build();
  launches = 0;
  const Stream other = Stream::create(device());
  const Handle on_other{.device = device(), .stream = other};
  run(g, &on_other);
  EXPECT_EQ(launches, 1);
  EXPECT_EQ(launched_on, other);
  EXPECT_GT(devices_set, 0);
  EXPECT_EQ(current_stream(device()), (Stream{device(), 0}));
  EXPECT_TRUE(is_right());
  {
    const StreamGuard current(other);
    run(g, &on_other);  // it is current: nothing is set
    EXPECT_EQ(devices_set, 0);
    EXPECT_EQ(launched_on, other);
  }
  run(g);
  EXPECT_EQ(devices_set, 0);
  EXPECT_EQ(launched_on, (Stream{device(), 0}));
  other.release();
  EXPECT_TRUE(fallbacks().empty());
}

TEST_F(PlansOfADevice, CallOperatorsWhereTheDeviceTakesNoLaunchOfAllOfThem) {
  most_operands = 3;
  Graph g({}, &handle_);
  write(g).build();
  EXPECT_EQ(g.plan()->num_steps(), 3u);
  EXPECT_EQ(g.plan()->report().left.size(), 3u);
  for (const auto& left : g.plan()->report().left)
    EXPECT_EQ(left.reason, "drafted:0 declines its operations, its dtypes or so many operands");
  launches = 0;
  run(g);
  EXPECT_EQ(launches, 3);
  EXPECT_TRUE(is_right());
  EXPECT_TRUE(fallbacks().empty());
}

TEST_F(PlansOfADevice, RunOnHostCopiesWhatIsDeclinedAfterAll) {
  Graph g({}, &handle_), strict({}, &handle_);
  write(g).build();
  most_operands = 0;
  run(g);
  EXPECT_TRUE(is_right());
  ASSERT_EQ(fallbacks().size(), 1u);
  EXPECT_EQ(fallbacks()[0].name, g.plan()->report().fusions[0].name);

  // A member may not.
  most_operands = 64;
  set({.kind = FallbackPolicy::Kind::All, .blocked = {"aten::add"}});
  tensors_.clear();
  write(strict).build();
  most_operands = 0;
  try {
    run(strict);
    FAIL() << "nothing is thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
    EXPECT_STREQ(e.what(), "execute: drafted:0 declines a launch, and add may not fall back");
  }
  EXPECT_EQ(current_stream(device()), (Stream{device(), 0}));
}

TEST_F(PlansOfADevice, AreRefusedForOperatorsThatNobodyRuns) {
  set({FallbackPolicy::Kind::Never});
  Graph g({.io = kFloat32}, &handle_);
  auto& x = g.tensor({.dim = {1, 2, 8, 8}});
  g.conv_fprop(x, g.tensor({.dim = {2, 2, 3, 3}})).set_output();
  try {
    g.build();
    FAIL() << "nothing is thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
    EXPECT_NE(std::string(e.what()).find("aten::convolution"), std::string::npos) << e.what();
  }
}

TEST_F(PlansOfADevice, HaveOneDeviceInAllTheirStorages) {
  graph::Graph mixed;
  mixed.add_storage({.nbytes = 64, .device = device(), .is_input = true});
  mixed.add_storage({.nbytes = 64, .is_output = true});
  try {
    (void)graph::Plan(std::move(mixed), {}, graph::PlanOptions());
    FAIL() << "nothing is thrown";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "plan: it runs on one device, and tensors are on drafted:0 and cpu");
  }
}

}  // namespace
}  // namespace tenon::builder
