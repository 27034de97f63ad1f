// Programs and the evaluator of tenon/abi/program.h: it defines every operation, and gives the bits of the
// interpreter.
#include "tenon/abi/program.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "tenon/dispatch/builtin.h"
#include "tenon/expr/evaluator.h"
#include "tenon/expr/function.h"
#include "tenon/expr/pi_reduce.h"
#include "tenon/expr/typed_text.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/iter/pointwise_state.h"
#include "tests/abi/launching.h"

namespace tenon::detail {
#define FAMILY(name) extern const BuiltinFamily name##_family;
TENON_FAMILIES
#undef FAMILY
}  // namespace tenon::detail

namespace tenon::expr::testing {
namespace {

::testing::AssertionResult same_as_interpreted(Launched&& launched) {
  if (!abi::evaluates(*launched.launch().program))
    return ::testing::AssertionFailure() << "unknown operations";
  abi::run(launched.launch());
  if (const int n = launched.differing())
    return ::testing::AssertionFailure() << n << " elements differ of\n" << launched.text();
  return ::testing::AssertionSuccess();
}

TEST(Evaluator, HasTheBitsOfTheInterpreterForRandomTypedExpressions) {
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    const ExpressionPtr e = RandomTyped(seed).make(3 + static_cast<int>(seed % 14));
    ASSERT_TRUE(same_as_interpreted(DenseLaunch(*e, 40, seed))) << seed;
  }
}

TEST(Evaluator, HasTheBitsOfTheInterpreterForRandomLaunches) {
  for (const Type type : kComputeTypes) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
      RandomLaunch random(seed, type, 12);
      abi::run(random.launch());
      ASSERT_EQ(random.differing(), 0) << seed << "\n" << random.text();
      if (seed % 10 != 0) continue;
      random.clear();
      abi::run(*abi::KeptLaunch(random.launch()));
      ASSERT_EQ(random.differing(), 0) << "kept, " << seed;
    }
  }
}

TEST(Evaluator, AsksForEachOperandOnceInOrderBeforeItComputes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomLaunch random(seed, Type::F32, 12);
    const TenonLaunch& launch = random.launch();
    std::vector<const TenonOperand*> asked;
    abi::run(launch, [&](const TenonOperand& operand) {
      asked.push_back(&operand);
      return reinterpret_cast<void*>(operand.address);
    });
    ASSERT_EQ(asked.size(), launch.program->num_outputs + launch.program->num_inputs) << seed;
    for (size_t k = 0; k < asked.size(); ++k) ASSERT_EQ(asked[k], &launch.operands[k]) << seed;
    ASSERT_EQ(random.differing(), 0) << seed;
  }
}

// Each operation and function alone on random values, each operation on all special ones.
TEST(Evaluator, HasTheBitsOfTheInterpreterForEveryOperationAndFunction) {
  for (const Primitive& p : primitives()) {
    if (p.op == Op::Call && functions()[p.function].name == "copysign") continue;  // shows a NaN's sign
    ASSERT_TRUE(same_as_interpreted(DenseLaunch(*primitive_expression(p), 3000, 77))) << kernel_name(p);
  }
  for (const auto& launched : special_launches()) ASSERT_TRUE(same_as_interpreted(std::move(*launched)));
}

TEST(Evaluator, CastsAndRoundsAllSpecialValuesAsExpressionsDo) {
  constexpr Type kTypes[] = {Type::Mask, Type::F32, Type::F64, Type::I32, Type::I64};
  for (const Type from : kTypes) {
    for (const uint64_t bits : special_values(from)) {
      for (const Type to : kTypes) {
        EXPECT_EQ(abi::cast_bits(bits, static_cast<TenonType>(from), static_cast<TenonType>(to)),
                  convert_scalar(bits, from, to));
      }
      for (const DType d : kStored) {
        if (carrier(d) != from) continue;
        EXPECT_EQ(abi::round_bits(bits, static_cast<TenonDType>(d)), round_scalar(bits, d));
      }
    }
  }
  for (const DType d : kDTypes) {
    const auto t = static_cast<TenonDType>(d);
    EXPECT_EQ(abi::item_size(t), item_size(d));
    if (is_complex(d)) continue;
    const bool computed = carrier(d) != Type::Open && d < DType::UInt16;
    EXPECT_EQ(abi::carrier(t), static_cast<TenonType>(computed ? carrier(d) : Type::U64));
  }
}

TEST(Evaluator, ReadsAndWritesEveryShortElement) {
  for (const DType d : kStored) {
    if (item_size(d) > 2) continue;
    for (uint32_t v = 0; v < 0x10000; ++v) {
      const auto t = static_cast<TenonDType>(d);
      ASSERT_EQ(abi::load_bits(&v, t), load_scalar(&v, d));
      uint64_t want = 0, got = 0;
      store_scalar(&want, d, load_scalar(&v, d));
      abi::store_bits(&got, t, load_scalar(&v, d));
      ASSERT_EQ(got, want);
    }
  }
  // Floats on their way to halves, all exponents and the ends of all mantissas.
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const uint32_t f = high << 16 | low;
      for (const DType d : {DType::Float16, DType::BFloat16})
        ASSERT_EQ(abi::round_bits(f, static_cast<TenonDType>(d)), round_scalar(f, d)) << f;
    }
  }
}

TEST(Evaluator, ReducesLargeAnglesAsFunctionsDo) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 200000; ++i) {
    const auto exponent = static_cast<int>(rng() % 1000);
    const double d =
        std::ldexp(1 + static_cast<double>(rng() >> 12) * 0x1p-52, 15 + exponent) * (i % 2 ? 1 : -1);
    const auto f = static_cast<float>(std::ldexp(d, -exponent + exponent % 110));
    for (int part = 0; part < 3; ++part) {
      ASSERT_TRUE(same_bits(abi::defined::tenon_pi_reduce_f64(d, part), pi_reduce(d, part)))
          << d << " " << part;
      ASSERT_TRUE(same_bits(abi::defined::tenon_pi_reduce_f32(f, part), pi_reduce(f, part)))
          << f << " " << part;
    }
  }
}

// Every operator's expression and its derivatives.
std::set<const PointwiseInfo*> all_operators() {
  std::set<const PointwiseInfo*> all;
  const auto add = [&all](const auto& self, const PointwiseInfo* info) -> void {
    if (!info || !all.insert(info).second) return;
    self(self, info->bool_form);
    for (const PointwiseSpecial& s : info->special) self(self, s.info);
    for (const PointwiseInfo* without : info->without) self(self, without);
    for (const PointwiseDerivative* d : info->derivatives) self(self, d ? d->info : nullptr);
  };
  const tenon::detail::BuiltinFamily* const families[] = {
#define FAMILY(name) &tenon::detail::name##_family,
      TENON_FAMILIES
#undef FAMILY
  };
  for (const auto* family : families) {
    for (const tenon::detail::BuiltinKernel& k : family->kernels) {
      if (family->probe_of(k).serves == &tenon::detail::pointwise_serves)
        add(add, static_cast<const PointwiseInfo*>(k.data));
    }
  }
  return all;
}

TEST(Evaluator, HasTheBitsOfTheInterpreterForEveryOperatorAndDerivative) {
  std::map<Type, int> programs;
  int complex = 0;
  for (const PointwiseInfo* info : all_operators()) {
    for (const Type type : kComputeTypes) {
      ExpressionPtr e;
      try {
        e = tenon::detail::typed_expression(*info, type);
      } catch (const Error&) {
        continue;  // not of this type
      }
      ++programs[type];
      if (std::string_view(info->name).find("copysign") != std::string_view::npos)
        continue;  // shows a NaN's sign
      ASSERT_TRUE(same_as_interpreted(DenseLaunch(*e, 100, 5))) << info->name << " in " << name(type);
    }
    for (const DType dtype : {DType::Complex64, DType::Complex128}) {
      if (info->mask_tensors != 0) continue;
      tenon::detail::Binding binding{.type = *compute_type(dtype), .computed = dtype};
      for (size_t i = 0; i < info->tensor_names.size(); ++i) binding.inputs[i] = dtype;
      const Expression* e = nullptr;
      try {
        e = tenon::detail::instance_of(*info, binding).expression.get();
      } catch (const Error&) {
        continue;  // not of complex numbers
      }
      ++complex;
      ASSERT_TRUE(same_as_interpreted(DenseLaunch(*e, 60, 6))) << info->name << " in " << tenon::name(dtype);
    }
  }
  EXPECT_GT(programs[Type::F32], 300);
  EXPECT_GT(programs[Type::I64], 100);
  EXPECT_GT(complex, 150);
}

ExpressionPtr text(std::string_view t) { return parse_typed(t); }

TEST(Program, HasFunctionsInlinedAndTellsWhatItUses) {
  const ExpressionPtr e =
      text("in x: float32; number a: f32; out float32: mul(exp(x), a); out bool: lt(x, a);");
  const DeviceProgram program(*e);
  const TenonProgram& p = program.get();
  EXPECT_EQ(p.num_inputs, 1u);
  EXPECT_EQ(p.num_scalars, 1u);
  EXPECT_EQ(p.num_outputs, 2u);
  EXPECT_GT(p.num_nodes, 10u);
  uint64_t ops = 0;
  for (uint32_t i = 0; i < p.num_nodes; ++i) {
    ops |= uint64_t{1} << p.nodes[i].op;
    for (int a = 0; a < p.nodes[i].arity; ++a) EXPECT_LT(p.nodes[i].args[a], i);
  }
  EXPECT_EQ(ops, p.ops_used);
  EXPECT_EQ(ops >> static_cast<int>(Op::Call) & 1u, 0u);
  EXPECT_EQ(p.types_used, 1u << TENON_TYPE_F32 | 1u << TENON_TYPE_I32 | 1u << TENON_TYPE_MASK);
  EXPECT_STREQ(p.text,
               "in x0: float32; number n0: f32; out float32: mul(exp(x0), n0); out bool: lt(x0, n0);");
  const DeviceProgram sine(*text("in x: float32; out float32: sin(x);"));
  EXPECT_TRUE(sine.get().types_used >> TENON_TYPE_F64 & 1u) << "large angles";
}

// A hash names kernels on disk: this value may change only together with kKeyVersion.
TEST(Program, HasAGoldenHash) {
  const auto hash = [](std::string_view t) {
    const DeviceProgram program(*text(t));
    return to_string(Key{program.get().hash[0], program.get().hash[1]});
  };
  const std::string sum = hash("in x: float32, y: float32; out float32: add(x, y);");
  EXPECT_EQ(sum, "03e0983dbc7a2d915550b00c7a50eb59");
  EXPECT_EQ(hash("in u: float32, v: float32; out float32: add(u, v);"), sum);
  EXPECT_NE(hash("in x: float32, y: float32; out float32: add(y, x);"), sum);
  EXPECT_NE(hash("in x: float64, y: float64; out float64: add(x, y);"), sum);
}

TEST(Variant, DiffersWithWhatAKernelIsMadeFor) {
  const DeviceProgram program(*text("in x: float32, y: float32; out float32: add(x, y);"));
  std::set<std::pair<uint64_t, uint64_t>> seen;
  struct Change {
    int64_t strides[3] = {4, 4, 4};
    TenonDType dtype = TENON_DTYPE_FLOAT32, result = TENON_DTYPE_FLOAT32;
    TenonPlace place = TENON_PLACE_DEVICE;
    uint32_t ndim = 1;
    int64_t sizes[2] = {8, 3};
  };
  const auto variant_of = [&](const Change& c) {
    const int64_t strides[3][2] = {{c.strides[0], 32}, {c.strides[1], 32}, {c.strides[2], 32}};
    const TenonOperand operands[] = {{.strides = strides[0], .dtype = TENON_DTYPE_FLOAT32},
                                     {.strides = strides[1], .dtype = c.dtype},
                                     {.strides = strides[2], .dtype = TENON_DTYPE_FLOAT32, .place = c.place}};
    TenonLaunch launch{.ndim = c.ndim,
                       .program = &program.get(),
                       .sizes = c.sizes,
                       .operands = operands,
                       .results = &c.result};
    set_variant(launch);
    return std::pair(launch.variant[0], launch.variant[1]);
  };
  const auto is_new = [&](const Change& c) { return seen.insert(variant_of(c)).second; };
  EXPECT_TRUE(is_new({}));
  EXPECT_FALSE(is_new({.sizes = {1000, 2}})) << "sizes are arguments";
  EXPECT_TRUE(is_new({.strides = {4, 0, 4}}));
  EXPECT_TRUE(is_new({.strides = {4, 4, 0}}));
  EXPECT_TRUE(is_new({.strides = {4, 4, 0}, .place = TENON_PLACE_HOST}));
  EXPECT_TRUE(is_new({.strides = {4, 8, 4}}));
  EXPECT_FALSE(is_new({.strides = {4, 12, -4}})) << "strides are arguments";
  EXPECT_TRUE(is_new({.ndim = 2}));
  EXPECT_TRUE(is_new({.strides = {4, 2, 4}, .dtype = TENON_DTYPE_FLOAT16}));
  EXPECT_TRUE(is_new({.result = TENON_DTYPE_FLOAT16}));
  EXPECT_EQ(variant_of({}).first, 10891985042093409064u) << "it names kernels on disk, as the hash does";
}

TEST(Slot, IsTheFirstThreads) {
  void* slot = nullptr;
  TenonLaunch launch{.slot = &slot};
  std::atomic<int> made{0};
  std::atomic<int*> seen{nullptr};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      int* mine = &abi::in_slot<int>(launch, [&] { return new int(++made); });
      int* others = nullptr;
      EXPECT_TRUE(seen.compare_exchange_strong(others, mine) || others == mine);
    });
  }
  for (std::thread& t : threads) t.join();
  delete static_cast<int*>(slot);
}

}  // namespace
}  // namespace tenon::expr::testing
