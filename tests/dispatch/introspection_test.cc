// What the dispatcher says of itself beside tables: kernels without a declaration, keys that are used, and
// invariants, each of which is broken once.
#include <algorithm>

#include "tenon/core/device.h"
#include "tenon/dispatch/state.h"
#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

void boxed(const OperatorHandle&, DispatchKeySet, Stack&) {}
Dispatcher& dispatcher() { return Dispatcher::singleton(); }

std::vector<std::string> dangling() {
  std::vector<std::string> names;
  for (const OperatorHandle op : dispatcher().find_dangling_impls()) names.push_back(op.full_name());
  return names;
}
template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

TEST(Introspection, KernelsOfUndeclaredOperatorsDangleUntilTheDeclarationComes) {
  const std::vector<std::string> before = dangling();
  {
    Library impl = implement("dangling", "CPU");
    impl.impl("op.over", &same);
    impl.impl("also", &same);
    EXPECT_EQ(dangling(), (std::vector<std::string>{"dangling::also", "dangling::op.over"}));
    const auto op = dispatcher().find_registered("dangling::op.over");
    ASSERT_TRUE(op);
    EXPECT_CONTAINS(dispatcher().dump_registrations(*op), "schema: none");
    EXPECT_FALSE(dispatcher().find_registered("dangling::op"));
    Library def = declare("dangling");
    def.def("op.over(Tensor a) -> Tensor");
    EXPECT_EQ(dangling(), std::vector<std::string>{"dangling::also"});
  }
  EXPECT_EQ(dangling(), before);
}

TEST(Introspection, OperatorsByTheKeyThatTheyHaveAKernelFor) {
  Library def = declare("bykey");
  def.def("a(Tensor x) -> Tensor");
  def.def("b(Tensor x) -> Tensor", &same);
  Library impl = implement("bykey", "ByKeyGizmo");
  impl.impl("a", &same);
  const auto gizmo = dispatcher().operators_with_kernel(key_parse("ByKeyGizmo"));
  EXPECT_TRUE(contains(gizmo, std::string("bykey::a")) && contains(gizmo, std::string("aten::t")));
  EXPECT_FALSE(contains(gizmo, std::string("bykey::b")) || contains(gizmo, std::string("aten::mm")))
      << "the device has no kernel for a catch-all operator, and no stub for products";
  EXPECT_EQ(dispatcher().operators_with_kernel(key_parse("AutogradByKeyGizmo")), std::vector<std::string>{});
  EXPECT_TRUE(contains(dispatcher().operators_with_kernel(kCompositeImplicit), std::string("bykey::b")));
  EXPECT_FALSE(contains(dispatcher().operators_with_kernel(DispatchKey()), std::string("bykey::b")));
}

TEST(Introspection, AKeyIsUsedOnceSomethingIsRegisteredForIt) {
  const auto used = [](const char* name) { return contains(dispatcher().used_keys(), key_parse(name)); };
  EXPECT_TRUE(used("CPU") && used("AutogradMeta") && used("BackendSelect"));
  EXPECT_TRUE(contains(dispatcher().all_keys(), key_parse("QuantizedMeta")));
  EXPECT_FALSE(used("QuantizedMeta") || used("Autocast"));
  Library def = declare("used");
  def.def("op(Tensor x) -> Tensor", &same);
  EXPECT_CONTAINS(dispatcher().dump_table(find("used::op")), "nobody has registered anything for ");
  EXPECT_EQ(dispatcher().dump_table(find("used::op")).find("QuantizedMeta: ["), std::string::npos)
      << "no tensor can arrive there";
  {
    Library impl = implement("used", "QuantizedMeta");
    impl.impl("op", &same);
    Library fallback = implement("_", "Autocast");
    fallback.fallback(CppFunction::make_from_boxed_function<&boxed>());
    EXPECT_TRUE(used("QuantizedMeta") && used("Autocast"));
    EXPECT_TRUE(dispatcher().has_fallback(key_parse("Autocast")));
    EXPECT_CONTAINS(dispatcher().dump_table(find("used::op")), "QuantizedMeta: [kernel] ");
  }
  EXPECT_FALSE(used("QuantizedMeta") || used("Autocast"));
  EXPECT_FALSE(dispatcher().has_fallback(key_parse("Autocast")));
}

/// Breaks something of an operator for a moment; what `check_invariants` says then.
template <class Break, class Mend>
std::string broken(Break&& break_it, Mend&& mend) {
  dispatcher().check_invariants();
  break_it();
  const Thrown one = thrown_by([] { dispatcher().check_invariants(find("broken::op")); });
  const Thrown any = thrown_by([] { dispatcher().check_invariants(); });
  mend();
  dispatcher().check_invariants();
  EXPECT_EQ(one.kind, ErrorKind::Internal);
  EXPECT_EQ(one.text, any.text);
  EXPECT_CONTAINS(one.text, "broken::op");
  return one.text;
}

TEST(Introspection, BrokenInvariantsAreNamed) {
  Library def = declare("broken");
  def.def("op(Tensor(a!) x) -> Tensor(a!)");
  Library impl = implement("broken", "CPU");
  impl.impl(
      "op", +[](Tensor& x) -> Tensor& { return x; });
  Tensor x = one();
  find("broken::op").typed<Tensor&(Tensor&)>().call(x);
  OperatorRegistrations& op = *dispatcher().state().of(find("broken::op").entry());
  auto& owners = dispatcher().state().owners;
  OperatorTable& cpu = *op.computed;
  Kernel& slot = cpu.slots[0];
  const Kernel kernel = slot;
  const uint64_t mask = cpu.mask;

  EXPECT_CONTAINS(broken([&] { slot.data = &slot; }, [&] { slot = kernel; }), "another kernel for CPU");
  EXPECT_CONTAINS(
      broken([&] { cpu.mask &= ~DispatchKeySet(Functionality::Dense).bits(); }, [&] { cpu.mask = mask; }),
      "another kernel for CPU");
  EXPECT_CONTAINS(broken([&] { op.computed_is_current = false; }, [&] { op.computed_is_current = true; }),
                  "calls read an old table");
  EXPECT_CONTAINS(broken([&] { op.entries[0]->written = 0; }, [&] { op.entries[0]->written = 1; }),
                  "calls count other written arguments");
  const uint64_t id = op.kernels[0].id;
  EXPECT_CONTAINS(broken([&] { owners.erase(id); }, [&] { owners[id] = &op; }),
                  "cannot be removed by its id");
  EXPECT_CONTAINS(broken([&] { op.kernels[0].kernel = {}; }, [&] { op.kernels[0].kernel = kernel; }),
                  "is empty");
  impl.impl(
      "op", +[](Tensor& x) -> Tensor& { return x; });
  EXPECT_CONTAINS(broken([&] { std::swap(op.kernels[0].id, op.kernels[1].id); },
                         [&] { std::swap(op.kernels[0].id, op.kernels[1].id); }),
                  "hides a newer one");
}

}  // namespace
}  // namespace tenon
