#include "tenon/dispatch/library.h"

#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

using Binary = Tensor(const Tensor&, const Tensor&);

Tensor add_cpu(const Tensor& a, const Tensor& b) { return one(value_of(a) + value_of(b)); }
Tensor add_thousand(const Tensor& a, const Tensor& b) { return one(value_of(a) + value_of(b) + 1000); }
Tensor sub_anywhere(const Tensor& a, const Tensor& b) { return one(value_of(a) - value_of(b)); }
Tensor sub_cpu(const Tensor& a, const Tensor& b) { return one(value_of(a) - value_of(b) + 0.5f); }

// Worked example 7, with the macros: blocks queue here and commit at the first look-up.
TENON_LIBRARY(myops, m) {
  m.def("myadd(Tensor self, Tensor other) -> Tensor");
  m.def("mysub(Tensor self, Tensor other) -> Tensor", &sub_anywhere);
}
TENON_LIBRARY_IMPL(myops, CPU, m) { m.impl("myadd", &add_cpu); }

TEST(Library, WorkedExampleSeven) {
  const auto myadd = find("myops::myadd").typed<Binary>();
  const auto mysub = find("myops::mysub").typed<Binary>();
  EXPECT_EQ(value_of(myadd.call(one(3), one(2))), 5);
  EXPECT_EQ(value_of(mysub.call(one(3), one(2))), 1);
  {
    Library cpu = implement("myops", "CPU");
    cpu.impl("mysub", &sub_cpu);
    EXPECT_EQ(value_of(mysub.call(one(3), one(2))), 1.5f) << "a kernel for a key wins over a catch-all";
    cpu.impl("myadd", &add_thousand);
    EXPECT_EQ(value_of(myadd.call(one(3), one(2))), 1005) << "the newest registration runs";
  }
  EXPECT_EQ(value_of(myadd.call(one(3), one(2))), 5) << "unloading restores the first";
  EXPECT_EQ(value_of(mysub.call(one(3), one(2))), 1);
}

TEST(Library, OverridingShowsBothPlaces) {
  Library cpu = implement("myops", "CPU");
  cpu.impl("myadd", &add_thousand);
  const int line = __LINE__ - 1;
  const std::string dump = Dispatcher::singleton().dump_registrations(find("myops::myadd"));
  EXPECT_CONTAINS(dump, "schema: myops::myadd(Tensor self, Tensor other) -> Tensor");
  EXPECT_CONTAINS(dump, "library_test.cc:" + std::to_string(line) + " (overrides ");
  EXPECT_CONTAINS(dump, "(inactive)");
}

TEST(Library, ImplMayComeBeforeDef) {
  Library impl = implement("early", "CPU");
  impl.impl("op", &add_cpu);
  const Thrown undeclared = thrown_by([] { find("early::op"); });
  EXPECT_EQ(undeclared.kind, ErrorKind::NotImplemented);
  EXPECT_CONTAINS(undeclared.text, "has a kernel");
  EXPECT_CONTAINS(undeclared.text, "no declaration");
  Library def = declare("early");
  def.def("op(Tensor a, Tensor b) -> Tensor");
  EXPECT_EQ(value_of(find("early::op").typed<Binary>().call(one(1), one(1))), 2);
}

TEST(Library, KernelThatDoesNotFitIsRefusedNamingTheArgument) {
  Library def = declare("misfit");
  def.def("op(Tensor self, int dim, Tensor(a!) out) -> Tensor(a!)");
  Library impl = implement("misfit", "CPU");
  const auto refuse = [&](CppFunction f) {
    const Thrown t = thrown_by([&] { impl.impl("op", std::move(f)); });
    EXPECT_EQ(t.kind, ErrorKind::Type);
    EXPECT_CONTAINS(t.text, "misfit::op");
    EXPECT_CONTAINS(t.text, "library_test.cc:");
    return t.text;
  };
  EXPECT_CONTAINS(refuse(+[](const Tensor&, double, Tensor& out) -> Tensor& { return out; }),
                  "argument `dim` is int in the schema, float in the kernel");
  EXPECT_CONTAINS(refuse(+[](const Tensor&, int64_t, const Tensor& out) -> Tensor { return out; }),
                  "argument `out` is written in the schema, so the kernel must take Tensor&");
  EXPECT_CONTAINS(refuse(+[](const Tensor&, int64_t) -> Tensor { return {}; }),
                  "takes 2 arguments, the schema 3");
  EXPECT_CONTAINS(refuse(+[](const Tensor&, int64_t) -> Tensor { return {}; }),
                  "(kernel `(Tensor, int) -> Tensor` registered at");
  EXPECT_CONTAINS(refuse(+[](const Tensor&, int64_t, Tensor& out) -> Tensor { return out; }),
                  "return 0 is a written argument in the schema, so the kernel must return Tensor&");
  EXPECT_CONTAINS(refuse(+[](const Tensor&, int64_t, Tensor&) {}), "returns 0 values, the schema 1");
  EXPECT_FALSE(Dispatcher::singleton().has_kernel(find("misfit::op"))) << "nothing was registered";
}

TEST(Library, DefRefusesAKernelThatCameBeforeAndDoesNotFit) {
  Library impl = implement("late", "CPU");
  impl.impl("op", &add_cpu);
  Library def = declare("late");
  const Thrown t = thrown_by([&] { def.def("op(Tensor a, int b) -> Tensor"); });
  EXPECT_CONTAINS(t.text, "argument `b` is int in the schema, Tensor in the kernel");
  EXPECT_FALSE(Dispatcher::singleton().find_op("late::op"));
}

TEST(Library, TypedCallOfAnotherSignatureIsRefused) {
  const Thrown t = thrown_by([] { find("myops::myadd").typed<Tensor(const Tensor&, int64_t)>(); });
  EXPECT_EQ(t.kind, ErrorKind::Type);
  EXPECT_CONTAINS(t.text, "argument `other` is Tensor in the schema");
  // A list of tensors is not a tensor, though both are made of tensors.
  EXPECT_THROW(find("myops::myadd").typed<std::vector<Tensor>(const Tensor&, const Tensor&)>(), Error);
}

TEST(Library, SchemaIsInferredFromAFunction) {
  Library def = declare("inferred");
  def.def(
      "op", +[](const Tensor& a, int64_t, std::optional<double>, IntArrayRef, Tensor& out) -> Tensor& {
        out = a;
        return out;
      });
  EXPECT_EQ(schema::to_string(find("inferred::op").schema()),
            "inferred::op(Tensor _0, int _1, float? _2, int[] _3, Tensor(a!) _4) -> Tensor(a!)");
}

TEST(Library, MistakesAreNamed) {
  Library def = declare("mistakes");
  def.def("op(Tensor a) -> Tensor");
  EXPECT_CONTAINS(thrown_by([&] { def.def("op(Tensor a) -> Tensor"); }).text,
                  "Operator 'mistakes::op' is declared twice: at ");
  EXPECT_CONTAINS(thrown_by([&] { def.def("other::op(Tensor a) -> Tensor"); }).text,
                  "not in this block's namespace mistakes");
  EXPECT_CONTAINS(thrown_by([&] { def.def("op2(Tensor ) -> Tensor"); }).text, "column");
  Library impl = implement("mistakes", "CPU");
  EXPECT_CONTAINS(thrown_by([&] { impl.def("op3(Tensor a) -> Tensor"); }).text, "TENON_LIBRARY_IMPL block");
  EXPECT_CONTAINS(thrown_by([&] { impl.impl("op(Tensor a)", &add_cpu); }).text, "is not an operator's name");
  EXPECT_CONTAINS(thrown_by([&] { impl.fallback(CppFunction::make_fallthrough()); }).text,
                  "TENON_LIBRARY_IMPL(_, KEY");
  EXPECT_EQ(thrown_by([] { implement("mistakes", "cpu!"); }).kind, ErrorKind::Value);
  EXPECT_CONTAINS(thrown_by([] { Library(Library::Kind::Def, "_", "", SourceLocation::here()); }).text,
                  "declares nothing");
}

TEST(Library, NamespaceHasOneDefBlockAtATime) {
  {
    Library first(Library::Kind::Def, "single", "", {"first.cc", 7});
    const Thrown t = thrown_by([] { Library(Library::Kind::Def, "single", "", {"second.cc", 9}); });
    EXPECT_EQ(t.kind, ErrorKind::Value);
    EXPECT_CONTAINS(t.text, "first.cc:7");
    EXPECT_CONTAINS(t.text, "second.cc:9");
  }
  Library again(Library::Kind::Def, "single", "", {"third.cc", 1});
}

TEST(Library, UnknownOperatorSuggestsNearNames) {
  find("myops::myadd");
  const Thrown t = thrown_by([] { find("myops::myad"); });
  EXPECT_EQ(t.kind, ErrorKind::NotImplemented);
  EXPECT_CONTAINS(t.text, "Operator 'myops::myad' does not exist; did you mean 'myops::myadd'");
  EXPECT_CONTAINS(
      thrown_by([] { Dispatcher::singleton().find_schema_or_throw_full("nowhere::at_all.x"); }).text,
      "Operator 'nowhere::at_all.x' does not exist");
}

TEST(Library, BadBlockLeavesNothingBehindAndLaterOnesStillCommit) {
  // Blocks as the macros make them, queued now as a library loaded by other means would.
  static detail::LibraryBlock bad(
      Library::Kind::Fragment, "badblock", "",
      [](Library& m) {
        m.def(
            "fine(Tensor a) -> Tensor", +[](const Tensor& a) { return a; });
        m.def("broken(Tensor a -> Tensor");
      },
      __FILE__, __LINE__);
  static detail::LibraryBlock good(
      Library::Kind::Fragment, "goodblock", "", [](Library& m) { m.def("fine(Tensor a) -> Tensor"); },
      __FILE__, __LINE__);
  const Thrown t = thrown_by([] { Dispatcher::singleton().commit_pending(); });
  EXPECT_CONTAINS(t.text, "library_test.cc");
  EXPECT_FALSE(Dispatcher::singleton().find_op("badblock::fine"));
  EXPECT_TRUE(Dispatcher::singleton().find_op("goodblock::fine"));
}

}  // namespace
}  // namespace tenon
