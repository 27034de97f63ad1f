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

constinit Stub<void(const Tensor&, Tensor&)> with_cpu("with_cpu", "(Tensor self, Tensor(a!) out) -> ()");
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
  EXPECT_EQ(named("scale_stub")->signature(), "(int _0, float _1) -> int");
  EXPECT_EQ(named("with_cpu")->signature(), "(Tensor self, Tensor(a!) out) -> ()");
  EXPECT_EQ(named("with_cpu")->backends(), std::vector<Backend>{kCpuBackend});
}

template <class Sig>
bool fits(std::string_view text) {
  return detail::same_types(detail::parse_stub_signature(text), detail::StubTypesOf<Sig>::value);
}

// What does not fit does not compile, where a stub is defined with it.
TEST(StubSignature, IsComparedWithTheTypes) {
  using Fills = void(const Tensor&, const Scalar&);
  EXPECT_TRUE(fits<Fills>("(Tensor(a!) dst, Scalar value) -> ()"));
  EXPECT_TRUE(fits<Fills>("(Tensor, Scalar) -> ()"));
  EXPECT_TRUE(fits<Fills>(" ( Tensor? dst , Scalar value=1 )->() ")) << "an undefined tensor is None";
  for (const char* wrong : {"(Tensor dst) -> ()", "(Tensor dst, Scalar value, Scalar more) -> ()",
                            "(Scalar value, Tensor dst) -> ()", "(Tensor dst, Scalar value) -> Tensor",
                            "(Tensor[] dst, Scalar value) -> ()", "(Tensor dst, Scalar? value) -> ()",
                            "(Tensor dst, Scalar value)", "Tensor dst, Scalar value -> ()", "", "->", "(->)"})
    EXPECT_FALSE(fits<Fills>(wrong)) << wrong;
  using Reduces = void(const Tensor&, std::optional<IntArrayRef>, bool, std::optional<DType>, TensorList,
                       std::optional<double>, std::string_view, Tensor&);
  EXPECT_TRUE(
      fits<Reduces>("(Tensor self, SymInt[1]? dim, bool keepdim, *, ScalarType? dtype, Tensor?[] list, "
                    "float? eps, str kind, Tensor(a!) out) -> ()"));
  EXPECT_FALSE(
      fits<Reduces>("(Tensor self, int[1] dim, bool keepdim, ScalarType? dtype, Tensor[] list, float? "
                    "eps, str kind, Tensor(a!) out) -> ()"));
}

}  // namespace
}  // namespace tenon
