// Regions around products and convolutions, run by the composed engine, have eager's bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tenon/core/parallel.h"
#include "tenon/core/strict.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/text.h"
#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"
#include "tenon/tenon.h"
#include "tests/graph/machine.h"
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

// What the last planned segment of a program was fused to: "matmul(mm, add, gelu, sum) by composed".
std::string fusions_of(uint64_t program) {
  std::string text;
  const std::vector<record::PlannedSegment> plans = record::Recorder::current().summary(program).plans;
  if (plans.empty()) return text;
  for (const graph::FusionReport::Fusion& f : plans.back().plan->report().fusions) {
    text += text.empty() ? "" : " ";
    text += std::string(name(f.kind)) + "(";
    for (size_t i = 0; i < f.operators.size(); ++i)
      text += (i ? ", " : "") + std::string(f.operators[i].schema().name);
    text += ") by " + f.engine;
  }
  return text;
}

// The results of f, eager and recorded twice, are the same; what it was fused to.
template <class F>
std::string compare(F&& f) {
  const std::vector<Tensor> wanted = f();
  const uint64_t program = record::new_program();
  for (int i = 0; i < 2; ++i) {
    record::Scope scope(program, kAll);
    const std::vector<Tensor> got = f();
    scope.end();
    for (size_t k = 0; k < wanted.size(); ++k)
      EXPECT_TRUE(same_bits(got[k], wanted[k])) << "result " << k << ", run " << i;
  }
  return fusions_of(program);
}

TEST(Composed, ACastAndScaleAProductItsEpilogueAndARowSumAreOneRegion) {
  const Tensor x = randn({64, 784}).to(kBFloat16), w = randn({784, 512}), b = randn({512});
  const std::string fusions =
      compare([&] { return std::vector{gelu(mm(x.to(kFloat32) * 0.5, w) + b).sum({1})}; });
  EXPECT_EQ(fusions, "matmul(_to_copy, mul, mm, add, _gelu_erf, sum) by composed");
}

TEST(Composed, AConvolutionABiasAndReluAreOneRegion) {
  const Tensor x = randn({8, 16, 32, 32}), w = randn({32, 16, 3, 3}), b = randn({32, 1, 1});
  EXPECT_EQ(compare([&] { return std::vector{relu(conv2d(x, w, {}, 1, 1) + b)}; }),
            "convolution(convolution, add, relu) by composed");
}

TEST(Composed, SeveralOutputsAndAResidual) {
  const Tensor x = randn({300, 256}), w = randn({512, 256}), b = randn({512}), r = randn({300, 512});
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const std::string fusions = compare([&] {
      const Tensor y = addmm(b, x, w.t());
      const Tensor z = y * sigmoid(y) + r;
      return std::vector{y, z, z.amax({-1}, true)};
    });
    EXPECT_EQ(fusions, "matmul(addmm, sigmoid, mul, add, amax) by composed");
  }
  set_num_threads(1);
}

TEST(Composed, BlocksOfALargeProductHaveItsBits) {
  for (const int64_t rows : {1024, 16384}) {
    const Tensor x = randn({rows, 512}), w = randn({512, 512}), b = randn({512});
    EXPECT_EQ(compare([&] { return std::vector{tanh(mm(x * 2.0, w) + b).mean({1})}; }),
              "matmul(mul, mm, add, tanh, mean) by composed")
        << rows;
  }
}

TEST(Composed, ResultsInPlaceOfWhatTheProductReads) {
  const Tensor w = randn({400, 400}) * 0.05;
  Tensor x = randn({400, 400}), e = x.clone();
  const auto f = [&](Tensor t) {
    t.copy_(relu(mm(t, w)) + t);
    Tensor v = w.clone();
    v.copy_(tanh(mm(t, v) * 2.0));
    return std::vector{t, v};
  };
  const std::vector<Tensor> wanted = f(e);
  record::Scope scope(record::new_program(), kAll);
  const std::vector<Tensor> got = f(x);
  scope.end();
  EXPECT_TRUE(same_bits(got[0], wanted[0]));
  EXPECT_TRUE(same_bits(got[1], wanted[1]));
}

TEST(Composed, SmallProductsStayApart) {
  const Tensor x = randn({1, 8}), w = randn({8, 8}), b = randn({8});
  EXPECT_EQ(compare([&] { return std::vector{mm(x, w) + b}; }), "");
}

// Random programs around one product, as graphs: every region that is formed runs, whatever it would cost.
class RandomProduct {
 public:
  explicit RandomProduct(uint64_t seed) : rng_(seed) {
    constexpr DType kTypes[] = {kFloat32, kFloat32, kFloat64, kFloat16, kBFloat16, kInt64};
    dtype_ = kTypes[below(std::size(kTypes))];
    constexpr int64_t kRows[] = {0, 1, 2, 7, 64, 900}, kColumns[] = {0, 1, 3, 17, 64, 300};
    constexpr int64_t kSums[] = {0, 1, 2, 5, 64};
    const int64_t m = kRows[below(6)], n = kColumns[below(6)], k = kSums[below(5)];
    const std::vector<int64_t> batch(below(3) == 0, 3);
    const auto with_batch = [&](int64_t r, int64_t c) {
      std::vector<int64_t> sizes = batch;
      sizes.insert(sizes.end(), {r, c});
      return sizes;
    };
    loop_ = with_batch(m, n);
    std::string left = input(with_batch(m, k));
    const std::string right = input(with_batch(k, n));
    if (below(2)) left = call("aten::mul.Tensor({}, {})", with_batch(m, k), left, left);
    const bool addmm = batch.empty() && below(2);
    std::string last =
        addmm ? call("aten::addmm({}, {}, {}, 2, 3)", loop_,
                     input(below(2) ? loop_ : std::vector<int64_t>{n}), left, right)
              : call(batch.empty() ? "aten::mm({}, {})" : "aten::bmm({}, {})", loop_, left, right);
    for (size_t i = below(4); i > 0; --i) {
      const std::string other = below(3) == 0 ? last : input(below(2) ? loop_ : std::vector<int64_t>{n});
      if (below(3) == 0) keep();
      last = call(below(2) ? "aten::sub.Tensor({}, {}, 1)" : "aten::mul.Tensor({}, {})", loop_, last, other);
    }
    const bool reduces = n > 0 && below(2);
    if (!reduces || below(2)) keep();
    if (reduces) {
      std::vector<int64_t> sizes = loop_;
      sizes.pop_back();
      call("aten::amax({}, [-1], false)", sizes, last);
      keep();
    }
  }

  graph::Graph graph() const { return graph::parse("graph 1\n" + storages_ + nodes_); }
  std::vector<Storage> memory;

 private:
  size_t below(size_t n) { return rng_() % n; }

  // Turned, reversed or expanded, some of it.
  std::string input(std::vector<int64_t> sizes) {
    const size_t n = sizes.size();
    const auto made = [&](const std::vector<int64_t>& s) { return (randn(s) * 3.0).to(dtype_); };
    Tensor t;
    switch (below(n > 1 ? 5 : 1)) {
      case 1:
        std::swap(sizes[n - 1], sizes[n - 2]);
        t = made(sizes).transpose(-1, -2);
        break;
      case 2:
        t = graph::testing::view(made(sizes).storage(), reversed(sizes));
        break;
      case 3: {
        const std::vector<int64_t> all = sizes;
        sizes[n - 2] = 1;
        t = made(sizes).expand(all);
        break;
      }
      default:
        t = made(sizes);
    }
    memory.push_back(t.storage());
    return add(t.storage().nbytes(), " input",
               {dtype_, false, t.storage_offset(), Dims(t.sizes()), Dims(t.strides())});
  }
  graph::Geometry reversed(const std::vector<int64_t>& sizes) const {
    graph::Geometry g{.dtype = dtype_, .sizes = Dims(sizes), .strides = Dims(contiguous_strides(sizes))};
    if (g.numel() == 0) return g;
    g.offset = (sizes[0] - 1) * g.strides[0];
    g.strides[0] = -g.strides[0];
    return g;
  }
  std::string add(size_t nbytes, const char* kind, const graph::Geometry& g) {
    kept_ = fmt::format("storage %{} {} cpu", count_, nbytes);
    storages_ += kept_ + kind + "\n";
    return fmt::format("%{}.0 {}", count_++, graph::to_string(g));
  }
  template <class... A>
  std::string call(const char* form, const std::vector<int64_t>& sizes, const A&... arguments) {
    graph::Geometry g{.dtype = dtype_, .sizes = Dims(sizes), .strides = Dims(contiguous_strides(sizes))};
    const std::string made = add(static_cast<size_t>(g.numel()) * item_size(dtype_), "", g);
    nodes_ += made + " = " + fmt::format(fmt::runtime(form), arguments...) + "\n";
    memory.emplace_back();
    return made;
  }
  // What was made last is wanted.
  void keep() {
    if (storages_.ends_with(kept_ + "\n")) storages_.insert(storages_.size() - 1, " output");
  }

  std::mt19937_64 rng_;
  DType dtype_ = kFloat32;
  std::vector<int64_t> loop_;
  std::string storages_, nodes_, kept_;
  size_t count_ = 0;
};

TEST(Composed, RandomProductsHaveEagersBits) {
  size_t around = 0, over_rows = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    manual_seed(static_cast<int64_t>(seed));
    const RandomProduct program(seed);
    const graph::Graph eager = program.graph();
    graph::Graph fused = eager.copy();
    graph::fuse(fused, {.rows = true});
    ASSERT_EQ(graph::verify(fused).sentence, "") << "seed " << seed << "\n" << to_string(fused);
    ASSERT_EQ(graph::key_of(graph::parse(to_string(fused))), graph::key_of(fused)) << seed;
    for (const graph::Node& node : fused.nodes) {
      if (!node.region || node.region->anchor_member == graph::kNone) continue;
      ++around;
      over_rows += !node.region->over.empty();
    }
    set_strict(seed % 2);
    set_num_threads(1 + static_cast<int>(seed / 2 % 2));
    graph::testing::Machine one_by_one(eager, program.memory, {}), engine(fused, program.memory, {}, true);
    one_by_one.run();
    ASSERT_NO_THROW(engine.run()) << "seed " << seed << "\n" << to_string(fused);
    for (graph::StorageId s = 0; s < eager.storages.size(); ++s) {
      if (!eager.storages[s].is_output) continue;
      ASSERT_EQ(std::memcmp(reinterpret_cast<const void*>(engine.memory(s).address()),
                            reinterpret_cast<const void*>(one_by_one.memory(s).address()),
                            engine.memory(s).nbytes()),
                0)
          << "seed " << seed << " storage %" << s << "\n"
          << to_string(fused);
    }
  }
  set_strict(false);
  set_num_threads(1);
  EXPECT_GT(around, 200u);
  EXPECT_GT(over_rows, 80u);
}

}  // namespace
}  // namespace tenon
