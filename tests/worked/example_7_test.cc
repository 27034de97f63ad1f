// Worked example 7 of the specification: an operator declared then implemented, one declared with its
// function, kernels for a key over catch-all ones, an override, and what unloading restores.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tenon/dispatch/library.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"

namespace tenon {
namespace {

Tensor myadd(const Tensor& self, const Tensor& other) { return add(self, other); }
Tensor mysub(const Tensor& self, const Tensor& other) { return sub(self, other); }

TENON_LIBRARY(myops, m) {
  m.def("myadd(Tensor self, Tensor other) -> Tensor");
  m.impl("myadd", &myadd);
  m.def("mysub(Tensor self, Tensor other) -> Tensor", &mysub);
}

Tensor myadd_cpu(const Tensor& self, const Tensor& other) {
  return add(add(self, other), full_like(self, 100));
}
Tensor myadd_cpu_again(const Tensor& self, const Tensor& other) {
  return add(add(self, other), full_like(self, 1000));
}

double call(const char* op, double a, double b) {
  return Dispatcher::singleton()
      .find_schema_or_throw(op)
      .typed<Tensor(const Tensor&, const Tensor&)>()
      .call(full({1}, a), full({1}, b))
      .item<float>();
}

TEST(Worked7, CatchAllKernels) {
  EXPECT_EQ(call("myops::myadd", 5, 2), 7);
  EXPECT_EQ(call("myops::mysub", 5, 2), 3);
}

TEST(Worked7, AKernelForAKeyWinsAndTheNewestOfAKeyRuns) {
  {
    Library first(Library::Kind::Impl, "myops", "CPU", SourceLocation::here());
    first.impl("myadd", &myadd_cpu);
    EXPECT_EQ(call("myops::myadd", 5, 2), 107);
    std::optional<Library> second;
    second.emplace(Library::Kind::Impl, "myops", "CPU", SourceLocation::here());
    second->impl("myadd", &myadd_cpu_again);
    EXPECT_EQ(call("myops::myadd", 5, 2), 1007);
    const auto op = Dispatcher::singleton().find_schema_or_throw("myops::myadd");
    const std::string dump = Dispatcher::singleton().dump_registrations(op);
    EXPECT_NE(dump.find("(overrides "), std::string::npos) << dump;
    EXPECT_NE(dump.find("example_7_test.cc"), std::string::npos) << dump;
    EXPECT_TRUE(Dispatcher::singleton().has_kernel_for_key(op, key_parse("Meta")));  // the catch-all one
    second.reset();
    EXPECT_EQ(call("myops::myadd", 5, 2), 107);
  }
  EXPECT_EQ(call("myops::myadd", 5, 2), 7);
}

}  // namespace
}  // namespace tenon
