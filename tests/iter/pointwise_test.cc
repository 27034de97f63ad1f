#include "tenon/iter/pointwise.h"

#include <cmath>
#include <cstdlib>

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/jit/jit.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/expr/typed_text.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

constexpr DType kRealTypes[] = {DType::Bool,    DType::UInt8,  DType::Int8,    DType::Int16,
                                DType::Int32,   DType::Int64,  DType::Float16, DType::BFloat16,
                                DType::Float32, DType::Float64};

// What a result of small integers must be in `t`: sums and products here never round, but bool and uint8
// wrap.
double stored(double v, DType t) {
  if (t == DType::Bool) return v != 0;
  if (t == DType::UInt8) return static_cast<uint8_t>(static_cast<int64_t>(v));
  return v;
}

TEST(Pointwise, BroadcastsColumnsAndRows) {
  const Tensor column = tensor_of({1, 2, 3}, {3, 1}), row = tensor_of({10, 20, 30, 40}, {1, 4});
  const Tensor sum = add(column, row);
  EXPECT_EQ(sum.sizes(), IntArrayRef({3, 4}));
  EXPECT_EQ(values(sum), (std::vector<double>{11, 21, 31, 41, 12, 22, 32, 42, 13, 23, 33, 43}));
  EXPECT_EQ(
      add(tensor_of(std::vector<double>(12, 1), {3, 1, 4}), tensor_of(std::vector<double>(8, 1), {2, 4}))
          .sizes(),
      IntArrayRef({3, 2, 4}));
  EXPECT_EQ(add(vector_of({1}), vector_of({2}, DType::Int32)).dtype(), DType::Float32);
}

TEST(Pointwise, StridesOfOneElementAreKeptAsInPyTorch) {
  // Strides as PyTorch gives them, where operands of other sizes broadcast.
  const auto with_strides = [](IntArrayRef sizes, IntArrayRef strides) {
    return make_empty_strided(sizes, strides, DType::Float32, Device());
  };
  const Tensor two = vector_of({2});
  EXPECT_EQ(add(with_strides({1, 5}, {1, 1}), two).strides(), IntArrayRef({1, 1}));
  EXPECT_EQ(add(two, with_strides({1, 5}, {1, 1})).strides(), IntArrayRef({1, 1}));
  EXPECT_EQ(add(with_strides({5, 1}, {1, 1}), two).strides(), IntArrayRef({1, 1}));
  EXPECT_EQ(add(with_strides({5, 1}, {1, 5}), two).strides(), IntArrayRef({1, 5}));
  EXPECT_EQ(add(with_strides({2, 1, 3}, {3, 3, 1}), two).strides(), IntArrayRef({3, 3, 1}));
  EXPECT_EQ(add(with_strides({2, 1, 3}, {3, 1, 1}), two).strides(), IntArrayRef({3, 1, 1}));
  // Of one shape, all dense: as a new tensor.
  EXPECT_EQ(add(with_strides({1, 5}, {1, 1}), with_strides({1, 5}, {5, 1})).strides(), IntArrayRef({5, 1}));
}

TEST(Pointwise, AnyArrangementGivesTheSameNumbers) {
  std::mt19937 rng(17);
  const auto pick = [&](int n) { return static_cast<int64_t>(rng() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    Dims shape(static_cast<size_t>(pick(5)));
    for (int64_t& s : shape) s = pick(12) == 0 ? 0 : 1 + pick(round % 10 == 0 ? 40 : 7);
    const auto operand_shape = [&] {
      Dims own(shape.data() + (shape.empty() ? 0 : pick(2) * pick(static_cast<int>(shape.size()))), 0);
      const size_t lead = static_cast<size_t>(pick(3) == 0 ? pick(static_cast<int>(shape.size()) + 1) : 0);
      for (size_t d = lead; d < shape.size(); ++d) own.push_back(pick(4) == 0 ? 1 : shape[d]);
      return own;
    };
    const DType ta = kRealTypes[pick(10)], tb = pick(2) ? ta : kRealTypes[pick(10)];
    const Tensor x = random_tensor(rng, operand_shape(), ta), y = random_tensor(rng, operand_shape(), tb);
    // The build has printed a kernel for one of these, and the interpreter runs the other.
    const PointwiseInfo& add = pick(2) ? kAdd : kAddInterpreted;
    const Tensor sum = call(add, {&x, &y}, {1}), product = call(kMul, {&x, &y}), less = call(kLess, {&x, &y});
    ASSERT_EQ(less.dtype(), DType::Bool);
    for_each_index(sum.sizes(), [&](const std::vector<int64_t>& index) {
      const double a = get(x, broadcast_index(x.sizes(), index)),
                   b = get(y, broadcast_index(y.sizes(), index));
      ASSERT_EQ(get(sum, index), stored(a + b, sum.dtype()));
      ASSERT_EQ(get(product, index), stored(a * b, product.dtype()));
      // A 0-dim negative operand of an unsigned comparison keeps its value.
      ASSERT_EQ(get(less, index), a < b);
    });
    // In place, with other strides, and into an `out` of another dtype.
    Tensor out = random_tensor(rng, sum.sizes(), DType::Float64, false);
    call_out(add, {&x, &y}, {1}, out, false);
    for_each_index(sum.sizes(), [&](const std::vector<int64_t>& index) {
      const double a = get(x, broadcast_index(x.sizes(), index)),
                   b = get(y, broadcast_index(y.sizes(), index));
      ASSERT_EQ(get(out, index), stored(a + b, sum.dtype()));
    });
    Tensor self = random_tensor(rng, sum.sizes(), DType::Float32, false);
    std::vector<double> before = values(self);
    call_out(kMul, {&self, &y}, {}, self, true);
    size_t next = 0;
    for_each_index(self.sizes(), [&](const std::vector<int64_t>& index) {
      ASSERT_EQ(get(self, index), before[next++] * get(y, broadcast_index(y.sizes(), index)));
    });
  }
}

TEST(Pointwise, LongRowsAndThreadsAgree) {
  std::mt19937 rng(5);
  const int before = num_threads();
  const Tensor x = random_tensor(rng, {300, 257}, DType::Float32, false),
               y = random_tensor(rng, {257}, DType::Float16);
  std::vector<double> wanted;
  for_each_index(x.sizes(),
                 [&](const auto& index) { wanted.push_back(get(x, index) + 2 * get(y, {index[1]})); });
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(values(add(x, y, 2)), wanted);
  }
  const Tensor big = tensor_of(std::vector<double>(100000, 3), {100000}), same = add(big, big);
  for (const double v : values(same)) ASSERT_EQ(v, 6);
  set_num_threads(before);
}

TEST(Pointwise, ColumnsOfMemoryAndRepeatedElements) {
  std::mt19937 rng(6);
  for (const DType t : {DType::Float32, DType::Float64, DType::Int32, DType::Float16, DType::BFloat16}) {
    for (const Dims& shape : {Dims{70, 300}, Dims{33, 257}, Dims{16, 40}, Dims{5, 600}}) {
      const Tensor x = random_tensor(rng, shape, t, false),
                   y = transposed(random_tensor(rng, {shape[1], shape[0]}, t, false)),
                   column = random_tensor(rng, {shape[0], 1}, t, false),
                   one = random_tensor(rng, {}, t, false);
      const auto expect = [&](const Tensor& a, const Tensor& b) {
        const Tensor sum = add(a, b), product = call(kMul, {&a, &b});
        for_each_index(shape, [&](const std::vector<int64_t>& index) {
          const double u = get(a, broadcast_index(a.sizes(), index)),
                       v = get(b, broadcast_index(b.sizes(), index));
          ASSERT_EQ(get(sum, index), u + v);
          ASSERT_EQ(get(product, index), u * v);
        });
      };
      for (const Tensor& other : {y, column, one}) {
        expect(x, other);
        expect(other, x);
        expect(y, other);
      }
      // Of three, the first decides which are rows; those of another are turned in several pieces.
      const Tensor three = call(kAddProduct, {&x, &y, &column}, {1});
      for_each_index(shape, [&](const std::vector<int64_t>& index) {
        const double product = get(y, index) * get(column, {index[0], 0});
        // Narrower ones round.
        ASSERT_TRUE(item_size(t) == 2 || get(three, index) == get(x, index) + product) << name(t);
      });
    }
  }
}

TEST(Pointwise, NumbersPromoteAndConvert) {
  const Tensor ints = vector_of({1, 2, 3}, DType::Int32);
  EXPECT_EQ(call(kMulScalar, {&ints}, {2}).dtype(), DType::Int32);
  const Tensor halves = call(kMulScalar, {&ints}, {0.5});
  EXPECT_EQ(halves.dtype(), DType::Float32);
  EXPECT_EQ(values(halves), (std::vector<double>{0.5, 1, 1.5}));
  const Tensor flags = vector_of({0, 1}, DType::Bool);
  EXPECT_EQ(call(kMulScalar, {&flags}, {3}).dtype(), DType::Int64);
  EXPECT_EQ(call(kMulScalar, {&flags}, {true}).dtype(), DType::Bool);
  EXPECT_EQ(call(kDiv, {&ints, &ints}).dtype(), DType::Float32);
  EXPECT_EQ(values(add(vector_of({1}), vector_of({2}), 0.25)), (std::vector<double>{1.5}));
}

TEST(Pointwise, SmallIntegersAndBoolWrap) {
  const Tensor bytes = vector_of({250, 10}, DType::UInt8);
  EXPECT_EQ(values(add(bytes, bytes)), (std::vector<double>{244, 20}));
  const Tensor shorts = vector_of({-128, 127}, DType::Int8);
  EXPECT_EQ(values(add(shorts, shorts)), (std::vector<double>{0, -2}));
  const Tensor flags = vector_of({0, 1, 1}, DType::Bool), others = vector_of({0, 0, 1}, DType::Bool);
  EXPECT_EQ(values(add(flags, others)), (std::vector<double>{0, 1, 1}));
}

TEST(Pointwise, HalfTypesRoundOnce) {
  // 1 + 2^-11 is a tie in float16: to even, and the sum is not rounded in between.
  const Tensor one = vector_of({1, 1}, DType::Float16), tiny = vector_of({0x1p-12, 0x1p-11}, DType::Float16);
  EXPECT_EQ(values(add(one, tiny, 2)), (std::vector<double>{1, 1 + 0x1p-10}));
  EXPECT_EQ(add(one, vector_of({1, 1}, DType::BFloat16)).dtype(), DType::Float32);
}

TEST(Pointwise, EmptyAndZeroDim) {
  EXPECT_EQ(add(make_empty({0, 3}, DType::Float32), vector_of({1, 2, 3})).sizes(), IntArrayRef({0, 3}));
  const Tensor two = tensor_of({2}, {}), sum = add(two, two);
  EXPECT_EQ(sum.dim(), 0);
  EXPECT_EQ(values(sum), (std::vector<double>{4}));
  EXPECT_EQ(values(add(two, vector_of({1, 2}, DType::Int64))), (std::vector<double>{3, 4}));
}

TEST(Pointwise, MetaGivesTheShapeOnly) {
  const Tensor a = make_empty({3, 1}, DType::Float16, kMeta), b = make_empty({4}, DType::Int64, kMeta);
  const Tensor sum = add(a, b);
  EXPECT_TRUE(sum.is_meta());
  EXPECT_EQ(sum.sizes(), IntArrayRef({3, 4}));
  EXPECT_EQ(sum.dtype(), DType::Float16);
  EXPECT_EQ(add(a, tensor_of({1}, {})).device(), kMeta);  // a 0-dim host tensor goes with any device
}

TEST(Pointwise, OutIsResizedWhenEmptyAndCastWhenSafe) {
  const Tensor a = vector_of({1, 2}), b = vector_of({3, 4});
  Tensor out = make_empty({0}, DType::Float64);
  call_out(kAdd, {&a, &b}, {1}, out, false);
  EXPECT_EQ(values(out), (std::vector<double>{4, 6}));
  Tensor small = make_empty({3}, DType::Float32), ints = make_empty({2}, DType::Int32);
  EXPECT_EQ(error_of(ErrorKind::Shape,
                     [&] {
                       call_out(kAdd, {&a, &b}, {1}, small, false);
                     }),
            "add: `out` has shape [3], which cannot hold the result of shape [2]");
  EXPECT_EQ(error_of(ErrorKind::Type,
                     [&] {
                       call_out(kAdd, {&a, &b}, {1}, ints, false);
                     }),
            "add: the result is float32, which cannot be stored in `out` of int32");
  EXPECT_EQ(error_of(ErrorKind::Type,
                     [&] {
                       call_out(kAdd, {&ints, &a}, {1}, ints, true);
                     }),
            "add_: the result is float32, which cannot be stored in `self` of int32");
  Tensor self = vector_of({1, 2});
  const Tensor wide = tensor_of({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(error_of(ErrorKind::Shape,
                     [&] {
                       call_out(kAdd, {&self, &wide}, {1}, self, true);
                     }),
            "add_: `self` has shape [2], which cannot hold the result of shape [2, 2]");
  EXPECT_EQ(values(self), (std::vector<double>{1, 2}));
}

TEST(Pointwise, RefusesOverlapThatWouldDependOnOrder) {
  const Tensor base = vector_of({1, 2, 3, 4});
  Tensor head = make_view(base, {3}, {1}, 0), tail = make_view(base, {3}, {1}, 1);
  EXPECT_EQ(
      error_of(ErrorKind::Runtime,
               [&] {
                 call_out(kAdd, {&head, &tail}, {1}, head, true);
               }),
      "add_: `self` and `other` overlap in memory, but not element for element; clone() one of them first");
  Tensor rows = make_view(base, {3, 4}, {0, 1}, 0);
  EXPECT_THROW(call_out(kAdd, {&rows, &rows}, {1}, rows, true), Error);
  EXPECT_EQ(values(base), (std::vector<double>{1, 2, 3, 4}));
  Tensor all = base;
  call_out(kAdd, {&all, &all}, {1}, all, true);
  EXPECT_EQ(values(base), (std::vector<double>{2, 4, 6, 8}));
}

TEST(Pointwise, ErrorsNameTheOperand) {
  const Tensor ints = vector_of({1}, DType::Int64), flag = vector_of({1}, DType::Bool);
  EXPECT_EQ(error_of(ErrorKind::Type, [&] { add(ints, ints, 0.5); }),
            "add: `alpha` is a float number, but the operands are int64");
  const Tensor small = vector_of({1}, DType::Int32);
  EXPECT_EQ(error_of(ErrorKind::Value, [&] { call(kMulScalar, {&small}, {int64_t{1} << 40}); }),
            "mul: `other` is 1099511627776, which does not fit int32");
  static const PointwiseInfo sub{.name = "sub",
                                 .text = "self - other",
                                 .tensor_names = kSelfOther,
                                 .scalar_names = {},
                                 .refused_dtypes = 1u << static_cast<int>(DType::Bool),
                                 .refused_reason = "use logical_xor instead"};
  EXPECT_EQ(error_of(ErrorKind::Type,
                     [&] {
                       call(sub, {&ints, &flag});
                     }),
            "sub: `other` is bool, which is not supported; use logical_xor instead");
  const Tensor undefined;
  EXPECT_EQ(error_of(ErrorKind::Value, [&] { add(ints, undefined); }), "add: `other` is undefined");
  const Tensor meta = make_empty({1}, DType::Int64, kMeta);
  EXPECT_EQ(error_of(ErrorKind::Device, [&] { add(ints, meta); }),
            "add: `self` is on cpu and `other` on meta; move one with .to()");
  EXPECT_EQ(error_of(ErrorKind::NotImplemented,
                     [&] {
                       const Tensor q = make_empty({2}, DType::QInt8);
                       add(q, q);
                     }),
            "add: not implemented for qint8");
}

TEST(Pointwise, MasksSelectAndTakeNoPartInPromotion) {
  static constexpr const char* kNames[] = {"condition", "self", "other"};
  static const PointwiseInfo where{.name = "where",
                                   .text = "where(condition, self, other)",
                                   .tensor_names = kNames,
                                   .scalar_names = {},
                                   .mask_tensors = 1};
  const Tensor condition = tensor_of({1, 0}, {2, 1}, DType::Bool), x = vector_of({1, 2, 3}, DType::Int32),
               y = tensor_of({9}, {}, DType::Int64);
  const Tensor chosen = call(where, {&condition, &x, &y});
  EXPECT_EQ(chosen.dtype(), DType::Int32);
  EXPECT_EQ(values(chosen), (std::vector<double>{1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(error_of(ErrorKind::Type,
                     [&] {
                       call(where, {&x, &x, &x});
                     }),
            "where: `condition` must be bool, got int32");
}

TEST(Pointwise, BoolOperandsTakeTheBoolForm) {
  static const PointwiseInfo on_bool{.name = "bitwise_not",
                                     .text = "self == 0",
                                     .tensor_names = kSelf,
                                     .scalar_names = {},
                                     .result = ResultRule::Bool};
  static const PointwiseInfo inverse{.name = "bitwise_not",
                                     .text = "~self",
                                     .tensor_names = kSelf,
                                     .scalar_names = {},
                                     .bool_form = &on_bool};
  const Tensor flags = vector_of({0, 1}, DType::Bool), ints = vector_of({0, 1}, DType::Int32);
  EXPECT_EQ(values(call(inverse, {&flags})), (std::vector<double>{1, 0}));
  EXPECT_EQ(values(call(inverse, {&ints})), (std::vector<double>{-1, -2}));
}

// What the interpreter has run for long is machine code from then on, where there is an emitter, with the
// same bits.
TEST(Pointwise, WhatRunsOftenBecomesMachineCode) {
  static const PointwiseInfo often{.name = "often",
                                   .text = "where(self < 0, self * 3, self / 7) - self * self",
                                   .tensor_names = kSelf,
                                   .scalar_names = {}};
  std::mt19937 rng(5);
  const Tensor x = random_tensor(rng, {50'003}, DType::Float32);
  const auto e = expr::parse_typed("in x: float32; out float32: add(x, 1:f32);");
  const bool emits = cpu::jit_refusal(*e, cpu::cpu_target()).empty() && !std::getenv("TENON_JIT");
  const std::vector<double> first = values(call(often, {&x}));
  set_kernel_reporting(true);
  for (int run = 2; run <= 5; ++run) {
    ASSERT_EQ(values(call(often, {&x})), first) << run;
  }
  EXPECT_EQ(std::string(last_kernel().kernel),
            (emits ? "jit:" : "interpreter:") + std::string(cpu::cpu_target_name()));
  set_kernel_reporting(false);
}

// An expression that the build has printed a kernel for runs that, whoever wrote it.
TEST(Pointwise, ReportsTheKernelThatRan) {
  static const PointwiseInfo none{
      .name = "mine", .text = "self * self - 7 / self", .tensor_names = kSelf, .scalar_names = {}};
  const Tensor x = vector_of({1, 2});
  const std::string target(cpu::cpu_target_name());
  set_kernel_reporting(true);
  const Tensor sum = add(x, x);
  EXPECT_EQ(std::string(last_kernel().kernel), "simd:" + target);
  EXPECT_EQ(values(sum), (std::vector<double>{2, 4}));
  const Tensor y = call(none, {&x});
  const KernelReport last = last_kernel();
  const auto counts = kernel_counts();
  set_kernel_reporting(false);
  EXPECT_STREQ(last.op, "mine");
  EXPECT_EQ(std::string(last.kernel), "interpreter:" + target);
  EXPECT_EQ(values(y), (std::vector<double>{-6, 0.5}));
  ASSERT_EQ(counts.size(), 2u);
  for (const KernelCount& c : counts) EXPECT_EQ(c.calls, 1u) << c.report.op;
}

}  // namespace
}  // namespace tenon::testing
