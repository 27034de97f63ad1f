#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

using Unary = Tensor(const Tensor&);
using InPlace = Tensor&(Tensor&);

std::string g_trace;
void collect(std::string_view line) { g_trace.append(line).append("\n"); }

/// Collects the trace of a scope.
struct Traced {
  Traced() {
    g_trace.clear();
    set_diagnostic_sink(&collect);
    set_dispatch_trace(true);
  }
  ~Traced() {
    set_dispatch_trace(false);
    set_diagnostic_sink(nullptr);
  }
};

TEST(Call, KernelAtAKeyContinuesBelowIt) {
  Library def = declare("call1");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("call1", "CPU");
  impl.impl(
      "op", +[](const Tensor& a) { return one(value_of(a) + 1); });
  impl.impl(
      "op", kAutogradAlias, +[](DispatchKeySet keys, const Tensor& a) {
        EXPECT_EQ(keys.functionality(), Functionality::Autograd);
        static const auto op = find("call1::op").typed<Unary>();
        return one(10 * value_of(op.redispatch(keys.below(Functionality::Autograd), a)));
      });
  const auto op = find("call1::op").typed<Unary>();
  EXPECT_EQ(value_of(op.call(one(1))), 2) << "a tensor without the Autograd bit never visits that layer";
  EXPECT_EQ(value_of(op.call(tracked(1))), 20);
  const ExcludeDispatchKeyGuard guard{kAutogradKeys};
  EXPECT_EQ(value_of(op.call(tracked(1))), 2);
}

TEST(Call, ThreadKeysAreRestoredByTheirGuards) {
  {
    const IncludeDispatchKeyGuard a{DispatchKeySet(Functionality::Profiler)};
    const ExcludeDispatchKeyGuard b{kAutogradKeys};
    EXPECT_TRUE(thread_state.included.has(Functionality::Profiler));
    EXPECT_TRUE(thread_state.excluded.has(Functionality::Autograd));
  }
  EXPECT_TRUE(thread_state.included.empty());
  EXPECT_TRUE(thread_state.excluded.empty());
}

TEST(Call, ListsAndUndefinedTensorsBringTheirKeys) {
  Library def = declare("call2");
  def.def("op(Tensor[] list, Tensor? maybe) -> Tensor");
  Library impl = implement("call2", "CPU");
  impl.impl(
      "op", +[](TensorList, const Tensor&) { return one(1); });
  impl.impl(
      "op", kAutogradAlias, +[](TensorList, const Tensor& maybe) { return one(maybe.defined() ? 3 : 2); });
  const auto op = find("call2::op").typed<Tensor(TensorList, const Tensor&)>();
  const std::vector<Tensor> plain{one(), one()}, mixed{one(), Tensor(), tracked()};
  EXPECT_EQ(value_of(op.call(plain, Tensor())), 1);
  EXPECT_EQ(value_of(op.call(mixed, Tensor())), 2);
  EXPECT_EQ(value_of(op.call(plain, tracked())), 3);
}

constinit OperatorEntry fixed_entry{.name = "adopted::op", .overload = "x"};

TEST(Call, GeneratedEntryIsAdoptedWithWhatWasRegisteredBefore) {
  const TypedOperator<Unary> fixed(fixed_entry);
  EXPECT_EQ(thrown_by([&] { fixed.call(one()); }).kind, ErrorKind::NotImplemented);
  Library impl = implement("adopted", "CPU");
  impl.impl(
      "op.x", +[](const Tensor&) { return one(5); });
  Library def = declare("adopted");
  def.def("op.x(Tensor a) -> Tensor");
  const auto before = find("adopted::op", "x").typed<Unary>();
  Dispatcher::singleton().adopt(fixed_entry);
  EXPECT_EQ(value_of(fixed.call(one())), 5);
  EXPECT_EQ(value_of(before.call(one())), 5);
  impl.impl(
      "op.x", +[](const Tensor&) { return one(6); });
  EXPECT_EQ(value_of(fixed.call(one())), 6);
  EXPECT_EQ(value_of(before.call(one())), 6);
  EXPECT_EQ(find("adopted::op", "x"), static_cast<OperatorHandle>(fixed));
}

TEST(Version, OneWriteCountsOnceHoweverManyOperatorsItPasses) {
  Library def = declare("version1");
  def.def("inner_(Tensor(a!) self) -> Tensor(a!)");
  def.def("outer_(Tensor(a!) self) -> Tensor(a!)");
  def.def("twice_(Tensor(a!) self) -> Tensor(a!)");
  def.def("raw_(Tensor(a!) self) -> Tensor(a!)");
  Library impl = implement("version1", "CPU");
  impl.impl(
      "inner_", +[](Tensor& self) -> Tensor& { return self; });
  impl.impl(
      "inner_", kAutogradAlias, +[](DispatchKeySet keys, Tensor& self) -> Tensor& {
        const uint64_t before = self._version();
        static const auto op = find("version1::inner_").typed<InPlace>();
        op.redispatch(keys.below(Functionality::Autograd), self);
        EXPECT_EQ(self._version(), before) << "the call has not returned yet";
        EXPECT_EQ(detail::version_after_call(self, before), before + 1);
        return self;
      });
  impl.impl(
      "outer_", kCompositeImplicit,
      +[](Tensor& self) -> Tensor& { return find("version1::inner_").typed<InPlace>().call(self); });
  impl.impl(
      "raw_", kCompositeImplicit, +[](Tensor& self) -> Tensor& { return self; });
  const auto version_after = [](const char* name, Tensor t) {
    const uint64_t before = t._version();
    Tensor& result = find(name).typed<InPlace>().call(t);
    EXPECT_EQ(&result, &t);
    return t._version() - before;
  };
  EXPECT_EQ(version_after("version1::inner_", one()), 1u);
  EXPECT_EQ(version_after("version1::inner_", tracked()), 1u) << "redispatch is no second write";
  EXPECT_EQ(version_after("version1::outer_", one()), 1u);
  EXPECT_EQ(version_after("version1::outer_", tracked()), 1u);
  EXPECT_EQ(version_after("version1::raw_", tracked()), 1u) << "a catch-all kernel may write by itself";
}

TEST(Version, ReadingAndFailingRaiseNothingAndInterruptionRaises) {
  Library def = declare("version2");
  def.def(
      "read(Tensor a) -> Tensor", +[](const Tensor& a) { return a; });
  def.def(
      "fail_(Tensor(a!) self) -> Tensor(a!)", +[](Tensor& self) -> Tensor& {
        TENON_CHECK(false, Value, "no");
        return self;
      });
  def.def(
      "stop_(Tensor(a!) self) -> Tensor(a!)", +[](Tensor&) -> Tensor& { throw Interruption(); });
  Tensor t = one();
  const uint64_t before = t._version();
  find("version2::read").typed<Unary>().call(t);
  EXPECT_THROW(find("version2::fail_").typed<InPlace>().call(t), Error);
  EXPECT_EQ(t._version(), before);
  EXPECT_THROW(find("version2::stop_").typed<InPlace>().call(t), Interruption);
  EXPECT_EQ(t._version(), before + 1) << "an interrupted kernel has written some elements";
  Stack stack;
  stack.push(t);
  EXPECT_THROW(find("version2::stop_").call_boxed(stack), Interruption);
  EXPECT_EQ(t._version(), before + 2);
}

TEST(Version, TypedAndBoxedCallsCountTheSameWrites) {
  Library def = declare("version4");
  def.def("mix_(Tensor a, Tensor(a!)[] xs, Tensor(b!) y, Tensor[] zs, bool inner) -> ()");
  Library impl = implement("version4", "CPU");
  impl.impl(
      "mix_", +[](const Tensor&, TensorList xs, Tensor& y, TensorList, bool inner) {
        // What a kernel has counted itself is not counted again.
        if (inner) xs[0].storage()->bump_version();
        if (inner) y.storage()->bump_version();
      });
  const OperatorHandle op = find("version4::mix_");
  const auto typed = op.typed<void(const Tensor&, TensorList, Tensor&, TensorList, bool)>();
  EXPECT_EQ(op.entry().written, 0b00110u);
  for (const bool boxed : {false, true}) {
    for (const bool inner : {false, true}) {
      Tensor a = one(), x0 = one(), x1 = one(), y = one(), z = one();
      // One storage twice, and a tensor that is not there.
      const std::vector<Tensor> xs{x0, x1, x0, Tensor()}, zs{z};
      if (boxed) {
        Stack stack;
        stack.push(a);
        stack.push(xs);
        stack.push(y);
        stack.push(zs);
        stack.push(inner);
        op.call_boxed(stack);
      } else {
        typed.call(a, xs, y, zs, inner);
      }
      EXPECT_EQ(x0._version(), 1u);
      EXPECT_EQ(x1._version(), 1u);
      EXPECT_EQ(y._version(), 1u);
      EXPECT_EQ(a._version() + z._version(), 0u);
    }
  }
  // Nothing is written, and nothing counted, where one of them may only be read.
  Tensor a = one(), x = one(), y = one();
  const std::vector<Tensor> xs{x}, none;
  y.storage()->set_read_only(true);
  EXPECT_CONTAINS(thrown_by([&] { typed.call(a, xs, y, none, false); }).text,
                  "version4::mix_: a written argument");
  y.storage()->set_read_only(false);
  x.storage()->set_read_only(true);
  EXPECT_CONTAINS(thrown_by([&] { typed.call(a, xs, y, none, false); }).text,
                  "version4::mix_: a written argument");
  Stack stack;
  stack.push(a);
  stack.push(xs);
  stack.push(y);
  stack.push(none);
  stack.push(false);
  EXPECT_CONTAINS(thrown_by([&] { op.call_boxed(stack); }).text, "version4::mix_: a written argument");
  EXPECT_EQ(x._version() + y._version(), 0u);
}

TEST(Version, AnArgumentBeyondTheMaskCannotBeWritten) {
  std::string arguments;
  for (int i = 0; i < 64; ++i) arguments += "Tensor t" + std::to_string(i) + ", ";
  Library def = declare("version5");
  const Thrown t = thrown_by([&] { def.def("many_(" + arguments + "Tensor(a!) last) -> ()"); });
  EXPECT_EQ(t.kind, ErrorKind::Value);
  EXPECT_CONTAINS(t.text,
                  "'version5::many_' writes its argument 64, `last`; only the first 64 can be written");
  def.def("many(" + arguments + "Tensor last) -> ()");
}

TEST(Version, BoxedCallsAndSeveralOutputsCountToo) {
  Library def = declare("version3");
  def.def("two.out(Tensor a, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))");
  def.def("each_(Tensor(a!)[] self) -> ()");
  Library impl = implement("version3", "CPU");
  impl.impl(
      "two.out", +[](const Tensor&, Tensor& a, Tensor& b) { return std::tuple<Tensor&, Tensor&>(a, b); });
  impl.impl(
      "each_", +[](TensorList) {});
  Tensor a = one(), b = one();
  find("version3::two", "out")
      .typed<std::tuple<Tensor&, Tensor&>(const Tensor&, Tensor&, Tensor&)>()
      .call(one(), a, b);
  EXPECT_EQ(a._version(), 1u);
  EXPECT_EQ(b._version(), 1u);
  Tensor same_storage = make_view(a, a.sizes(), a.strides(), 0);
  find("version3::two", "out")
      .typed<std::tuple<Tensor&, Tensor&>(const Tensor&, Tensor&, Tensor&)>()
      .call(one(), a, same_storage);
  EXPECT_EQ(a._version(), 2u) << "one storage, one write";
  Stack stack;
  stack.push(std::vector<Tensor>{a, b});
  find("version3::each_").call_boxed(stack);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(a._version(), 3u);
  EXPECT_EQ(b._version(), 2u);
  const std::vector<Tensor> list{a, b};
  find("version3::each_").typed<void(TensorList)>().call(list);
  EXPECT_EQ(a._version(), 4u);
  EXPECT_EQ(b._version(), 3u);
}

void returns_another(const OperatorHandle&, DispatchKeySet, Stack& stack) {
  stack.drop(1);
  stack.push(one());
}

TEST(Alias, AResultThatTheSchemaCallsAWrittenArgumentMustBeIt) {
  Library def = declare("aliased");
  def.def("f_(Tensor(a!) self) -> Tensor(a!)");
  Library impl = implement("aliased", "CPU");
  impl.impl("f_", CppFunction::make_from_boxed_function<&returns_another>());
  Stack stack;
  stack.push(one());
  const Thrown t = thrown_by([&] { find("aliased::f_").call_boxed(stack); });
  EXPECT_EQ(t.kind, ErrorKind::Type);
  EXPECT_CONTAINS(t.text, "result 0 must be its argument `self`");
  Tensor self = one();
  EXPECT_TRUE(find("aliased::f_").typed<Tensor&(Tensor&)>().call(self).is_same(self));
}

TEST(Trace, NestsCallsAndRedispatches) {
  Library def = declare("traced");
  def.def("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  def.def("make(*, Device? device=None) -> Tensor");
  Library impl = implement("traced", "CPU");
  using Add = Tensor(const Tensor&, const Tensor&, const Scalar&);
  impl.impl(
      "make", +[](std::optional<Device>) { return one(); });
  impl.impl(
      "add.Tensor", +[](const Tensor&, const Tensor&, const Scalar&) {
        return find("traced::make").typed<Tensor(std::optional<Device>)>().call(std::nullopt);
      });
  impl.impl(
      "add.Tensor", kAutogradAlias,
      +[](DispatchKeySet keys, const Tensor& a, const Tensor& b, const Scalar& s) {
        return find("traced::add", "Tensor")
            .typed<Add>()
            .redispatch(keys.below(Functionality::Autograd), a, b, s);
      });
  const auto add = find("traced::add", "Tensor").typed<Add>();
  {
    const Traced traced;
    add.call(tracked(), one(), 1);
  }
  EXPECT_EQ(g_trace,
            " [call] op=[traced::add.Tensor], key=[AutogradCPU], args=[AutogradCPU, CPU]\n"
            "   [redispatch] op=[traced::add.Tensor], key=[CPU], args=[AutogradCPU, CPU]\n"
            "     [call] op=[traced::make], key=[BackendSelect], args=[BackendSelect]\n"
            "       [redispatch] op=[traced::make], key=[CPU], args=[BackendSelect]\n");
  add.call(tracked(), one(), 1);
  EXPECT_EQ(std::count(g_trace.begin(), g_trace.end(), '\n'), 4) << "nothing after it was switched off";
  EXPECT_EQ(thread_state.trace_depth, 0);
}

TEST(Trace, DepthReturnsAfterAnError) {
  Library def = declare("tracedthrow");
  def.def(
      "fail(Tensor a) -> Tensor", +[](const Tensor&) -> Tensor { throw_error(ErrorKind::Value, "no"); });
  const Traced traced;
  EXPECT_THROW(find("tracedthrow::fail").typed<Unary>().call(one()), Error);
  EXPECT_EQ(thread_state.trace_depth, 0);
}

TEST(Trace, ReportsOverriding) {
  Library def = declare("tracedover");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("tracedover", "CPU");
  impl.impl("op", +[](const Tensor& a) { return a; }, {"old.cc", 3});
  const Traced traced;
  impl.impl("op", +[](const Tensor& a) { return a; }, {"new.cc", 4});
  EXPECT_EQ(g_trace, "[override] op=[tracedover::op], key=[CPU]: new.cc:4 replaces old.cc:3\n");
}

}  // namespace
}  // namespace tenon
