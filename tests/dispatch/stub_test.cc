#include "tenon/dispatch/stub.h"

#include <algorithm>

#include "tests/dispatch/testing.h"

namespace tenon {

using scale_fn = int64_t (*)(int64_t, double);
DECLARE_DISPATCH(scale_fn, scale_stub);
DEFINE_DISPATCH(scale_stub);

namespace {

int64_t scale_cpu(int64_t n, double by) { return static_cast<int64_t>(static_cast<double>(n) * by); }
REGISTER_DISPATCH(scale_stub, &scale_cpu);

constinit Stub<void(const Tensor&, Tensor&)> with_cpu("with_cpu");
const detail::StubListing with_cpu_listing(
    with_cpu, +[](const Tensor&, Tensor&) {});

TEST(Stub, CallsTheFunctionOfTheDevice) {
  EXPECT_EQ(scale_stub(kCPU, 6, 1.5), 9);
  const Backend gadget = register_backend("gadget", "Gadget");
  const Thrown t = thrown_by([&] { scale_stub(Device(gadget), 6, 1.5); });
  EXPECT_EQ(t.kind, ErrorKind::NotImplemented);
  EXPECT_EQ(t.text, "Stub 'scale_stub' has no function for device gadget; it is filled in for: cpu");
  scale_stub.set(
      gadget, +[](int64_t n, double) { return -n; });
  EXPECT_EQ(scale_stub(Device(gadget), 6, 1.5), -6);
  EXPECT_EQ(scale_stub(kCPU, 6, 1.5), 9);
}

TEST(Stub, MayBeFilledInWithAFunctionOnBoxedValues) {
  const Backend gadget = register_backend("stubboxed", "StubBoxed");
  int64_t seen = 0;
  scale_stub.set_boxed(
      gadget,
      [](void* data, Stream stream, Stack& stack) {
        EXPECT_EQ(stream, (Stream{Device("stubboxed"), 0}));
        *static_cast<int64_t*>(data) = stack.at<int64_t>(0);
        const double by = stack.at<double>(1);
        stack.clear();
        stack.push(static_cast<int64_t>(by) + 100);
        return true;
      },
      &seen);
  EXPECT_TRUE(scale_stub.has(gadget));
  EXPECT_EQ(scale_stub(Device(gadget), 6, 2.0), 102);
  EXPECT_EQ(seen, 6);
  scale_stub.set_boxed(
      gadget,
      [](void*, Stream, Stack& stack) {
        stack.clear();
        return true;
      },
      nullptr);
  const Thrown t = thrown_by([&] { scale_stub(Device(gadget), 6, 2.0); });
  EXPECT_EQ(t.kind, ErrorKind::Type);
  EXPECT_CONTAINS(t.text, "scale_stub");
}

TEST(Stub, ABoxedFunctionMayBeTakenBack) {
  const Backend gadget = register_backend("stubreturned", "StubReturned");
  scale_stub.set_boxed(
      gadget,
      [](void*, Stream, Stack& stack) {
        stack.clear();
        return true;
      },
      nullptr);
  scale_stub.set_boxed(gadget, nullptr, nullptr);
  EXPECT_FALSE(scale_stub.has(gadget));
  const auto backends = scale_stub.backends();
  EXPECT_EQ(std::find(backends.begin(), backends.end(), gadget), backends.end());
  const Thrown t = thrown_by([&] { scale_stub(Device(gadget), 6, 2.0); });
  EXPECT_EQ(t.kind, ErrorKind::NotImplemented);
  EXPECT_CONTAINS(t.text, "Stub 'scale_stub' has no function for device stubreturned");
}

TEST(Stub, ListsAllWithTheirSignatures) {
  const auto all = StubBase::all();
  const auto named = [&](std::string_view name) {
    return *std::find_if(all.begin(), all.end(), [&](const auto* s) { return s->name() == name; });
  };
  EXPECT_CONTAINS(named("scale_stub")->signature(), "double");
  EXPECT_CONTAINS(named("with_cpu")->signature(), "Tensor&");
  EXPECT_EQ(named("with_cpu")->backends(), std::vector<Backend>{kCpuBackend});
}

}  // namespace
}  // namespace tenon
