// What shape functions say, and the checks of builds with assertions: faults that are planted here, because
// no operator of the tree has one.
#include "tenon/generated/factory/functions.h"
#include "tenon/ops/forms/registration.h"
#include "tenon/ops/forms/structured.h"
#include "testing.h"

namespace tenon {
namespace {

using detail::AnyFunction;
using testing::expect_error;
using testing::expect_sizes;
using testing::expect_strides;

template <class F>
AnyFunction erased(F* f) {
  return reinterpret_cast<AnyFunction>(f);
}

void shape_of_self(OutputSpecs& out, HeaderRef self) { out.set(0, self.sizes(), self.dtype()); }
void strides_of_self(OutputSpecs& out, HeaderRef self) { out.set_like(0, self, self.dtype()); }
void nothing_said(OutputSpecs&, HeaderRef) {}
void nothing_written(const Tensor&, Tensor&) {}

Tensor call(const StructuredInfo& info, const Tensor& self) {
  Kernel kernel;
  kernel.data = &info;
  return detail::StructuredCall<Tensor(const Tensor&)>::call(kernel, {}, self);
}

StructuredInfo planted(void (*shape)(OutputSpecs&, HeaderRef), void (*body)(const Tensor&, Tensor&)) {
  return {.name = "planted", .arguments = "self", .shape = erased(shape), .body = erased(body)};
}

TEST(Shapes, OutputsAreAllocatedAsSaid) {
  const Tensor x = zeros({2, 3, 4}).permute({2, 0, 1});
  const Tensor contiguous = call(planted(&shape_of_self, &nothing_written), x);
  expect_sizes(contiguous, {4, 2, 3});
  expect_strides(contiguous, {6, 3, 1});
  const Tensor like = call(planted(&strides_of_self, &nothing_written), x);
  expect_sizes(like, {4, 2, 3});
  expect_strides(like, {1, 12, 4});
  const Tensor meta = call(planted(&strides_of_self, &nothing_written), x.to(kMeta));
  EXPECT_TRUE(meta.is_meta());
  expect_strides(meta, {1, 12, 4});
}

TEST(Shapes, AShapeFunctionNeedsNoTensor) {
  const TensorHeader header({2, 3}, {3, 1}, DType::Float64, kMeta);
  EXPECT_TRUE(header.is_contiguous());
  EXPECT_EQ(header.numel(), 6);
  const TensorHeader many({1, 1, 1, 1, 1, 1, 2, 3}, {9, 9, 9, 9, 9, 9, 1, 2}, DType::Int32, kCPU);
  const TensorHeader copy(many);
  EXPECT_EQ(copy.strides()[7], 2);
  EXPECT_FALSE(copy.is_contiguous());
  OutputSpec spec;
  OutputSpecs out({&spec, 1});
  strides_of_self(out, header);
  EXPECT_TRUE(spec.set && spec.contiguous && spec.dtype == DType::Float64);
  expect_error(ErrorKind::Type, "undefined", [&] { strides_of_self(out, HeaderRef()); });
}

TEST(Shapes, AnOutputThatIsNotSetIsAnInternalError) {
  expect_error(ErrorKind::Internal, "planted: its shape function left an output without a shape",
               [] { call(planted(&nothing_said, &nothing_written), zeros({2})); });
  expect_error(ErrorKind::Internal, "planted: its shape function left an output without a shape",
               [] { call(planted(&nothing_said, &nothing_written), zeros({2}, kMeta)); });
}

// What the checks say, with and without assertions.

TEST(Shapes, AKernelLeavesItsOutputsAsItWasGivenThem) {
  const Tensor out = zeros({2, 3});
  EXPECT_NO_THROW(detail::check_left("planted", *out.impl(), out.storage(), out));
  const auto refused = [&](const std::string& part, const Tensor& given, const Tensor& left) {
    expect_error(ErrorKind::Internal, "planted: its kernel " + part,
                 [&] { detail::check_left("planted", *given.impl(), out.storage(), left); });
  };
  refused("left an undefined tensor in an output", out, Tensor());
  refused("put another tensor in the place of one", out, zeros({2, 3}));
  refused(
      "was given float32 [2, 3] with strides [3, 1] to write, and left float32 [3, 2] with strides [1, 3]",
      out, out.t());
  refused("was given float64 [2, 3] with strides [3, 1] to write, and left float32 [2, 3]",
          zeros({2, 3}, kFloat64), out);
  // Strides of one element, or none, say nothing.
  const Tensor one = zeros({1, 3});
  EXPECT_NO_THROW(detail::check_left("planted", *one.impl(), one.storage(), one.as_strided({1, 3}, {7, 1})));
}

TEST(Shapes, AliasesAreThoseOfTheSchema) {
  const Tensor x = zeros({2, 3}), y = zeros({2});
  const auto check = [](const char* aliases, const Tensor& self, const Tensor& result) {
    const detail::BuiltinFunction body{nullptr, "planted", aliases};
    detail::AliasCheck(body, self).check(result);
  };
  EXPECT_NO_THROW(check("a", x, x.t()));
  EXPECT_NO_THROW(check("-", x, y));
  EXPECT_NO_THROW(check(nullptr, x, x));
  expect_error(ErrorKind::Internal, "planted: by its schema the result is an alias of argument 0",
               [&] { check("a", x, y); });
  expect_error(ErrorKind::Internal, "planted: by its schema the result is new, but it shares the storage",
               [&] { check("-", x, x.t()); });
}

#ifndef NDEBUG

// The same faults in whole calls.

void replaces_its_output(const Tensor&, Tensor& out) { out = zeros({2, 3}); }
void resizes_its_output(const Tensor&, Tensor& out) { out.resize_({1}); }
void forgets_its_output(const Tensor&, Tensor& out) { out.reset(); }

TEST(ShapesChecked, CallsSeeWhatKernelsLeave) {
  const auto refused = [](void (*body)(const Tensor&, Tensor&), const std::string& part) {
    expect_error(ErrorKind::Internal, "planted: its kernel " + part, [&] {
      call(planted(&shape_of_self, body), zeros({2, 3}));
    });
  };
  refused(&replaces_its_output, "put another tensor");
  refused(&resizes_its_output, "was given float32 [2, 3] with strides [3, 1] to write, and left float32 [1]");
  refused(&forgets_its_output, "left an undefined tensor");
}

void no_shapes(OutputSpecs&, HeaderRef) {}
void resizes_self(Tensor& self) { self.resize_({1}); }

TEST(ShapesChecked, CallsSeeWhatInPlaceKernelsLeave) {
  const StructuredInfo info{
      .name = "planted_", .arguments = "self", .shape = erased(&no_shapes), .body = erased(&resizes_self)};
  Kernel kernel;
  kernel.data = &info;
  Tensor x = zeros({2, 3});
  expect_error(ErrorKind::Internal, "planted_: its kernel was given float32 [2, 3]",
               [&] { detail::StructuredWriteCall<Tensor&(Tensor&)>::call(kernel, {}, x); });
}

Tensor itself(const Tensor& self) { return self; }
Tensor a_copy(const Tensor& self) { return self.clone(); }

TEST(ShapesChecked, CallsSeeAliases) {
  const auto refused = [](Tensor (*function)(const Tensor&), const char* aliases, const std::string& part) {
    const detail::BuiltinFunction body{erased(function), "planted", aliases};
    Kernel kernel;
    kernel.data = &body;
    expect_error(ErrorKind::Internal, part,
                 [&] { detail::FunctionCall<Tensor(const Tensor&)>::call(kernel, {}, zeros({2})); });
  };
  refused(&itself, "-", "planted: by its schema the result is new");
  refused(&a_copy, "a", "planted: by its schema the result is an alias of argument 0");
}

#endif

}  // namespace
}  // namespace tenon
