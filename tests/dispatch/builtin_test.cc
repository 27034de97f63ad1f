// Built-in operators are rows of data: what is registered for one is made when somebody asks.
#include <gtest/gtest.h>

#include <thread>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/generated/unary/operators.h"

namespace tenon {
namespace {

TEST(Builtin, ManyThreadsMayBeTheFirstToAsk) {
  // First of all tests of this file, so that nobody asked before.
  std::vector<std::thread> threads;
  std::vector<size_t> arguments(4);
  for (size_t i = 0; i < arguments.size(); ++i) {
    threads.emplace_back([&, i] {
      const Tensor t = make_empty({2}, kFloat32);
      for (size_t n = 0; n < 20; ++n) {
        arguments[i] = operators::expm1.schema().arguments.size();
        operators::log1p.call(t);
        Dispatcher::singleton().find_schema_or_throw("aten::cosh").schema();
      }
      arguments[i] += Dispatcher::singleton().operator_names().size();
    });
  }
  for (std::thread& t : threads) t.join();
  for (const size_t n : arguments) EXPECT_EQ(n, arguments[0]);
}

TEST(Builtin, ANameAndAConstantAreOneOperator) {
  const OperatorHandle found = Dispatcher::singleton().find_schema_or_throw("aten::exp");
  EXPECT_EQ(&found.entry(), &operators::exp.entry());
  EXPECT_EQ(to_string(found.schema()), "aten::exp(Tensor self) -> Tensor");
  EXPECT_FALSE(Dispatcher::singleton().find_op("aten::exp", "no_such"));
}

TEST(Builtin, EveryKernelFitsItsSchema) {
  // Rows are not checked when they are registered: generator and table come from one YAML.
  Dispatcher& dispatcher = Dispatcher::singleton();
  size_t checked = 0;
  for (const std::string& name : dispatcher.operator_names()) {
    if (!name.starts_with("aten::")) continue;
    const OperatorHandle op = dispatcher.find_schema_or_throw_full(name);
    for (const KernelRegistration& r : dispatcher.registrations(op)) {
      if (!r.function.types()) continue;
      EXPECT_NO_THROW(check_signature(op.schema(), r.function.types()())) << name;
      ++checked;
    }
    uint64_t written = 0;
    for (size_t i = 0; i < op.schema().arguments.size(); ++i) {
      if (op.schema().arguments[i].is_write()) written |= uint64_t{1} << i;
    }
    EXPECT_EQ(op.entry().written.load(), written) << name;
  }
  EXPECT_GT(checked, 400u);
}

TEST(Builtin, DeclaringOneAgainNamesItsYaml) {
  try {
    Dispatcher::singleton().define(schema::parse_schema("aten::sinh(Tensor self) -> Tensor"),
                                   SourceLocation::here());
    ADD_FAILURE() << "declared twice";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("declared twice: at tenon/ops/yaml/unary.yaml:"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace tenon
