#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

constexpr Functionality kAllBelowAutograd[] = {Functionality::Dense, Functionality::Blocked,
                                               Functionality::Quantized, Functionality::SparseCsr,
                                               Functionality::Sparse};

CellSource source(const char* op, DispatchKey key) {
  return Dispatcher::singleton().computed_cell(find(op), key).source;
}
constexpr DispatchKey cpu(Functionality f = Functionality::Dense) { return {f, kCpuBackend}; }
constexpr DispatchKey meta(Functionality f = Functionality::Dense) { return {f, kMetaBackend}; }

void boxed_fallback(const OperatorHandle&, DispatchKeySet, Stack& stack) {
  stack.clear();
  stack.push(one(77));
}

TEST(Table, NothingRegisteredIsMissingBelowAutogradAndStepsAsideAbove) {
  Library def = declare("table1");
  def.def("op(Tensor a) -> Tensor");
  for (const Functionality f : kAllBelowAutograd)
    EXPECT_EQ(source("table1::op", cpu(f)), CellSource::Missing);
  for (const char* above :
       {"AutogradCPU", "AutogradMeta", "BackendSelect", "Python", "Record", "Autocast", "Profiler"}) {
    EXPECT_EQ(source("table1::op", key_parse(above)), CellSource::Fallthrough) << above;
  }
}

TEST(Table, OwnKernelBeatsExplicitBeatsImplicitBeatsFallback) {
  Library def = declare("table2");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("table2", "");
  Library fallback = implement("_", "Meta");
  fallback.fallback(CppFunction::make_from_boxed_function<&boxed_fallback>());
  EXPECT_EQ(source("table2::op", meta()), CellSource::Fallback);
  EXPECT_EQ(source("table2::op", cpu()), CellSource::Missing);
  impl.impl("op", &same);
  EXPECT_EQ(source("table2::op", meta()), CellSource::CompositeImplicit);
  EXPECT_EQ(source("table2::op", meta(Functionality::Autograd)), CellSource::CompositeImplicit);
  impl.impl("op", kCompositeExplicit, &same);
  EXPECT_EQ(source("table2::op", meta()), CellSource::CompositeExplicit);
  EXPECT_EQ(source("table2::op", meta(Functionality::Autograd)), CellSource::Fallthrough);
  impl.impl("op", meta(), &same);
  EXPECT_EQ(source("table2::op", meta()), CellSource::Kernel);
  EXPECT_EQ(source("table2::op", cpu()), CellSource::CompositeExplicit);
}

TEST(Table, ADenseDefaultServesWhatTheProbeAllowsAndYieldsToAFallbackElsewhere) {
  static const Backend gadget = register_backend("tablegadget", "TableGadget");
  static bool ready = false;
  Library def = declare("tabledense");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("tabledense", "");
  impl.impl(
      "op", kCompositeDense,
      CppFunction(&same).serving({+[](const void*, Backend b) { return b != gadget || ready; }, nullptr}));
  const DispatchKey dense{Functionality::Dense, gadget};
  EXPECT_EQ(source("tabledense::op", cpu()), CellSource::CompositeExplicit);
  EXPECT_EQ(source("tabledense::op", cpu(Functionality::Sparse)), CellSource::Missing);
  EXPECT_EQ(source("tabledense::op", cpu(Functionality::Autograd)), CellSource::Fallthrough);
  EXPECT_EQ(source("tabledense::op", dense), CellSource::CompositeExplicit) << "no fallback: its own error";
  Library fallback = implement("_", "TableGadget");
  fallback.fallback(CppFunction::make_from_boxed_function<&boxed_fallback>());
  EXPECT_EQ(source("tabledense::op", dense), CellSource::Fallback);
  ready = true;
  Dispatcher::singleton().invalidate_tables();
  EXPECT_EQ(source("tabledense::op", dense), CellSource::CompositeExplicit);
}

TEST(Table, CatchAllRunsAboveAutogradUnlessTheBackendHasAKernel) {
  Library def = declare("table3");
  def.def("op(Tensor a) -> Tensor", &same);
  Library impl = implement("table3", "CPU");
  impl.impl("op", &same);
  EXPECT_EQ(source("table3::op", cpu(Functionality::Autograd)), CellSource::Fallthrough);
  EXPECT_EQ(source("table3::op", meta(Functionality::Autograd)), CellSource::CompositeImplicit);
}

TEST(Table, AutogradAliasServesEveryBackendAndYieldsToAnOwnKernel) {
  Library def = declare("table4");
  def.def("op(Tensor a) -> Tensor");
  Library alias = implement("table4", "Autograd");
  alias.impl(
      "op", +[](const Tensor&) { return one(1); });
  Library own = implement("table4", "AutogradCPU");
  own.impl(
      "op", +[](const Tensor&) { return one(2); });
  EXPECT_EQ(value_of(find("table4::op").typed<Tensor(const Tensor&)>().call(tracked())), 2);
  EXPECT_EQ(source("table4::op", meta(Functionality::Autograd)), CellSource::Kernel);
}

TEST(Table, FallthroughIsPerBackend) {
  const Backend gizmo = register_backend("gizmo", "Gizmo");
  Library def = declare("table5");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("table5", "AutogradCPU");
  impl.impl("op", CppFunction::make_fallthrough());
  impl.impl(
      "op", key_parse("AutogradMeta"), +[](const Tensor&) { return one(2); });
  impl.impl(
      "op", key_parse("CPU"), +[](const Tensor&) { return one(3); });
  impl.impl(
      "op", key_parse("AutogradGizmo"), +[](const Tensor&) { return one(4); });
  const auto op = find("table5::op").typed<Tensor(const Tensor&)>();
  EXPECT_EQ(value_of(op.call(tracked())), 3);
  Tensor t = one();
  t.impl()->set_keys(DispatchKeySet(Functionality::Autograd, kMetaBackend) |
                     DispatchKeySet(Functionality::Dense));
  EXPECT_EQ(value_of(op.call(t)), 2);
  t.impl()->set_keys(DispatchKeySet(Functionality::Autograd, gizmo));
  EXPECT_EQ(value_of(op.call(t)), 4);
}

TEST(Table, FallbackServesEveryOperatorOfTheKey) {
  const Backend widget = register_backend("widget", "Widget");
  Library def = declare("table6");
  def.def("op(Tensor a) -> Tensor");
  def.def("blocked(Tensor a) -> Tensor");
  const auto op = find("table6::op").typed<Tensor(const Tensor&)>();
  Tensor t = one();
  t.impl()->set_keys(DispatchKeySet(Functionality::Dense, widget));
  EXPECT_CONTAINS(thrown_by([&] { op.call(t); }).text, "device widget");
  {
    Library fallback = implement("_", "Widget");
    fallback.fallback(CppFunction::make_from_boxed_function<&boxed_fallback>());
    EXPECT_EQ(value_of(op.call(t)), 77);
    Library impl = implement("table6", "Widget");
    impl.impl("blocked", CppFunction::make_not_implemented());
    const Thrown blocked = thrown_by([&] { find("table6::blocked").typed<Tensor(const Tensor&)>().call(t); });
    EXPECT_EQ(blocked.kind, ErrorKind::NotImplemented);
    EXPECT_EQ(blocked.text,
              "Operator 'table6::blocked' is not implemented for device widget; no kernels exist (see "
              "`tenon table table6::blocked`)");
    EXPECT_THROW(fallback.fallback(CppFunction(&same)), Error) << "a fallback is boxed";
  }
  EXPECT_THROW(op.call(t), Error) << "the fallback went with its library";
}

TEST(Table, FallbackOfAKeyWithoutBackendsMayBeFallthroughOrCode) {
  Library def = declare("table7");
  def.def("op(Tensor a) -> Tensor", &same);
  Library profiler = implement("_", "Profiler");
  profiler.fallback(CppFunction::make_from_boxed_function<&boxed_fallback>());
  const auto op = find("table7::op").typed<Tensor(const Tensor&)>();
  EXPECT_EQ(value_of(op.call(one(5))), 5);
  {
    const IncludeDispatchKeyGuard guard{DispatchKeySet(Functionality::Profiler)};
    EXPECT_EQ(value_of(op.call(one(5))), 77);
    const ExcludeDispatchKeyGuard without{DispatchKeySet(Functionality::Profiler)};
    EXPECT_EQ(value_of(op.call(one(5))), 5);
  }
}

TEST(Table, MissingKernelNamesTheDeviceAndWhoHasOne) {
  Library def = declare("table8");
  def.def("abs(Tensor a) -> Tensor");
  Library impl = implement("table8", "CPU");
  impl.impl("abs", &same);
  impl.impl("abs", key_parse("Meta"), &same);
  const Backend openreg = register_backend("openreg", "OpenReg");
  Tensor t = one();
  t.impl()->set_keys(DispatchKeySet(Functionality::Dense, openreg));
  const Thrown thrown = thrown_by([&] { find("table8::abs").typed<Tensor(const Tensor&)>().call(t); });
  EXPECT_EQ(thrown.kind, ErrorKind::NotImplemented);
  EXPECT_EQ(thrown.text,
            "Operator 'table8::abs' is not implemented for device openreg; kernels exist for: CPU, Meta (see "
            "`tenon table table8::abs`)");
  t.impl()->set_keys(DispatchKeySet(Functionality::Sparse, kCpuBackend));
  EXPECT_CONTAINS(thrown_by([&] { find("table8::abs").typed<Tensor(const Tensor&)>().call(t); }).text,
                  "is not implemented for key SparseCPU");
}

TEST(Table, BackendRegisteredAfterTheFirstCallNeverRunsMetaKernels) {
  Library def = declare("table9");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("table9", "CPU");
  impl.impl("op", &same);
  impl.impl(
      "op", key_parse("Meta"), +[](const Tensor&) { return one(-1); });
  const auto op = find("table9::op").typed<Tensor(const Tensor&)>();
  op.call(one());
  const Backend newcomer = register_backend("newcomer", "Newcomer");
  Tensor t = one();
  t.impl()->set_keys(DispatchKeySet(Functionality::Dense, newcomer));
  EXPECT_CONTAINS(thrown_by([&] { op.call(t); }).text, "device newcomer");
  impl.impl(
      "op", DispatchKey(Functionality::Dense, newcomer), +[](const Tensor&) { return one(9); });
  EXPECT_EQ(value_of(op.call(t)), 9);
  EXPECT_EQ(value_of(op.call(one(4))), 4);
  // A backend that nobody registered at all.
  t.impl()->set_keys(DispatchKeySet(Functionality::Dense, 30));
  EXPECT_EQ(thrown_by([&] { op.call(t); }).kind, ErrorKind::NotImplemented);
  EXPECT_EQ(thrown_by([&] { impl.impl("op", DispatchKey(Functionality::Dense, 30), &same); }).kind,
            ErrorKind::Value);
}

TEST(Table, TwoAcceleratorsInOneCallAreAnError) {
  const Backend gizmo = register_backend("gizmo", "Gizmo");
  const Backend widget = register_backend("widget", "Widget");
  Library def = declare("table10");
  def.def(
      "op(Tensor a, Tensor b) -> Tensor", +[](const Tensor& a, const Tensor&) { return a; });
  const auto op = find("table10::op").typed<Tensor(const Tensor&, const Tensor&)>();
  Tensor a = one(), b = one();
  a.impl()->set_keys(DispatchKeySet(Functionality::Dense, gizmo));
  op.call(a, b);
  b.impl()->set_keys(DispatchKeySet(Functionality::Dense, widget));
  const Thrown t = thrown_by([&] { op.call(a, b); });
  EXPECT_EQ(t.kind, ErrorKind::Device);
  EXPECT_CONTAINS(t.text, "table10::op");
  EXPECT_CONTAINS(t.text, "gizmo");
  EXPECT_CONTAINS(t.text, "widget");
}

TEST(Table, FactoriesTakeTheBackendFromTheDeviceArgument) {
  Library def = declare("factory");
  def.def("make(int n, *, Device? device=None) -> Tensor");
  Library impl = implement("factory", "CPU");
  impl.impl(
      "make", +[](int64_t, std::optional<Device>) { return one(10); });
  impl.impl(
      "make", key_parse("Meta"), +[](int64_t, std::optional<Device>) { return one(20); });
  EXPECT_EQ(source("factory::make", key_parse("BackendSelect")), CellSource::Kernel);
  const auto make = find("factory::make").typed<Tensor(int64_t, std::optional<Device>)>();
  EXPECT_EQ(value_of(make.call(1, std::nullopt)), 10);
  EXPECT_EQ(value_of(make.call(1, kCPU)), 10);
  EXPECT_EQ(value_of(make.call(1, kMeta)), 20);
  Stack stack;
  stack.push<int64_t>(1);
  stack.push(kMeta);
  find("factory::make").call_boxed(stack);
  EXPECT_EQ(value_of(stack.at<Tensor>(0)), 20);
}

TEST(Table, DumpTagsEachCellWithItsPlace) {
  Library def = declare("table11");
  def.def("op(Tensor a) -> Tensor", &same);
  Library impl = implement("table11", "CPU");
  impl.impl("op", &same);
  const std::string here = "table_test.cc:" + std::to_string(__LINE__ - 1) + "\n";
  const std::string text = Dispatcher::singleton().dump_table(find("table11::op"));
  EXPECT_CONTAINS(text, "\nCPU: [kernel] ");
  EXPECT_CONTAINS(text, here);
  EXPECT_CONTAINS(text, "\nMeta: [composite kernel] ");
  EXPECT_CONTAINS(text, "\nAutogradCPU: [fallthrough]\n");
  EXPECT_CONTAINS(text, "\nAutogradMeta: [composite kernel] ");
  EXPECT_CONTAINS(text, "\nBackendSelect: [fallthrough]\n");
}

TEST(Table, HasKernelAnswers) {
  Library def = declare("table12");
  def.def("op(Tensor a) -> Tensor", &same);
  def.def("bare(Tensor a) -> Tensor");
  Library impl = implement("table12", "CPU");
  impl.impl("op", &same);
  Dispatcher& d = Dispatcher::singleton();
  const auto op = find("table12::op"), bare = find("table12::bare");
  EXPECT_TRUE(d.has_kernel(op));
  EXPECT_FALSE(d.has_kernel(bare));
  EXPECT_TRUE(d.has_kernel(op, cpu()));
  EXPECT_TRUE(d.has_kernel(op, kCompositeImplicit));
  EXPECT_FALSE(d.has_kernel(op, meta()));
  EXPECT_TRUE(d.has_kernel_for_key(op, meta()));
  EXPECT_FALSE(d.has_kernel_for_key(bare, cpu()));
  EXPECT_TRUE(
      d.has_kernel_for_any_key(op, DispatchKeySet(Functionality::Dense, kCpuBackend) | kAutogradKeys));
  EXPECT_FALSE(d.has_kernel_for_any_key(op, DispatchKeySet(Functionality::Dense, kMetaBackend)));
  EXPECT_TRUE(d.is_fallthrough(op, cpu(Functionality::Autograd)));
  EXPECT_FALSE(d.is_fallthrough(op, cpu()));
}

}  // namespace
}  // namespace tenon
