#include "tenon/builder/graph.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "tenon/core/error.h"
#include "tenon/expr/expression.h"
#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"
#include "tenon/tenon.h"

namespace {
thread_local uint64_t num_allocations = 0;
thread_local uint64_t num_locks = 0;
}  // namespace
// Counts what the thread allocates, the library's own calls included. Where one of a pair is inlined and the
// other is not, the compiler takes them for no pair.
[[gnu::noinline]] void* operator new(size_t n) {
  ++num_allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
// Of std::stable_sort.
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(n ? n : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

// Counts what it locks; sanitizers have functions of their own in the place of these.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TENON_COUNTS_LOCKS 1
#define TENON_COUNTED(name, type)                                                       \
  extern "C" int name(type* lock) {                                                     \
    static const auto real = reinterpret_cast<int (*)(type*)>(dlsym(RTLD_NEXT, #name)); \
    ++num_locks;                                                                        \
    return real(lock);                                                                  \
  }
TENON_COUNTED(pthread_mutex_lock, pthread_mutex_t)
TENON_COUNTED(pthread_mutex_trylock, pthread_mutex_t)
TENON_COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
TENON_COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
#undef TENON_COUNTED
#endif

namespace tenon {
namespace {

using builder::Graph;
using builder::TensorAttributes;

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.sizes().to_dims() != b.sizes().to_dims() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

Address address(const Tensor& t) { return reinterpret_cast<Address>(t.data_ptr()); }

/// Bytes that a caller owns, aligned as plans ask for it.
struct Workspace {
  explicit Workspace(size_t n) : bytes(n + 64) {
    void* p = bytes.data();
    size_t room = bytes.size();
    start = static_cast<std::byte*>(std::align(64, n, p, room));
    size = n;
  }
  std::span<std::byte> span() const { return {start, size}; }
  std::vector<std::byte> bytes;
  std::byte* start;
  size_t size;
};

/// A message of what is thrown.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

struct Example {
  Tensor x = randn({33, 20}), w = randn({20, 17}), b = randn({17});
  Tensor out = empty({33, 1});
  Graph g;
  TensorAttributes *gx, *gw, *gb, *gy;

  Example() {
    gx = &g.tensor_like(x, "x");
    gw = &g.tensor_like(w, "w");
    gb = &g.tensor_like(b, "b");
    gy = &g.reduction(g.gelu(g.add(g.matmul(*gx, *gw), *gb)), "ADD").set_dim({33, 1}).set_output();
  }
  Tensor eager() const { return sum(gelu(add(matmul(x, w), b)), Dims{1}, true); }
};

TEST(BuiltGraph, AProductWithBiasActivationAndReduction) {
  Example e;
  e.g.build();
  Workspace workspace(e.g.workspace_size());
  e.g.execute({{1, address(e.x)}, {2, address(e.w)}, {3, address(e.b)}, {e.gy->uid(), address(e.out)}},
              workspace.span());
  EXPECT_TRUE(same_bits(e.out, e.eager()));
}

/// The keys of the segments of a program that is recorded.
template <class F>
std::vector<std::string> keys_of(F&& f) {
  const uint64_t program = record::new_program();
  record::Scope scope(program, {.threshold = 0});
  const Tensor kept = f();
  scope.end();
  std::vector<std::string> keys;
  for (const record::PlannedSegment& planned : record::Recorder::current().summary(program).plans)
    keys.push_back(expr::to_string(planned.plan->report().key));
  return keys;
}

TEST(BuiltGraph, HasTheKeyOfTheRecordedProgramOfTheSameMaths) {
  Example e;
  e.g.build();
  EXPECT_EQ(keys_of([&] { return e.eager(); }), std::vector{e.g.key()});
  // Of other maths, or other sizes, it is another one.
  EXPECT_NE(keys_of([&] { return sum(relu(add(matmul(e.x, e.w), e.b)), Dims{1}, true); }),
            std::vector{e.g.key()});
  EXPECT_EQ(expr::to_string(e.g.plan()->key()), e.g.key());
}

TEST(BuiltGraph, KeysOfViewsConversionsAndNumbers) {
  const Tensor x = randn({12, 8}), w = randn({10, 8}).to(kFloat64);
  const auto program = [&] { return mul(matmul(mul(x, 0.25).to(kFloat64), w.t()), 3.0).to(kFloat32); };
  Graph g;
  TensorAttributes& gx = g.tensor_like(x);
  TensorAttributes& gw = g.tensor_like(w);
  TensorAttributes& quarter = g.tensor_scalar(0.25);
  TensorAttributes& scaled = *g.node("mul", std::array{&gx, &quarter}, {}, "", kFloat32)[0];
  scaled.set_data_type(kFloat64);
  TensorAttributes& product =
      g.matmul(scaled, *g.node("transpose", std::array{&gw}, {{"permutation", Dims{1, 0}}})[0]);
  g.mul(product, g.tensor_scalar(3.0)).set_data_type(kFloat32).set_output();
  g.build();
  EXPECT_EQ(keys_of(program), std::vector{g.key()});
}

TEST(BuiltGraph, ThreadsShareAPlanWithAWorkspaceEach) {
  Example e;
  e.g.build();
  const Tensor wanted = e.eager();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Workspace workspace(e.g.workspace_size());
      for (int i = 0; i < 50; ++i) {
        Tensor out = empty({33, 1});
        const Address sorted[] = {address(e.x), address(e.w), address(e.b), address(out)};
        e.g.execute_with_ptrs(sorted, workspace.span());
        wrong += !same_bits(out, wanted);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(BuiltGraph, RunningAllocatesNothingAndTakesNoLock) {
  set_num_threads(1);
  const Tensor x = randn({64, 48}), w = randn({48, 40}), b = randn({40});
  Graph g;
  TensorAttributes &gx = g.tensor_like(x), &gw = g.tensor_like(w), &gb = g.tensor_like(b);
  TensorAttributes& y = g.add(g.matmul(gx, gw), gb);
  TensorAttributes& z =
      g.matmul(g.mul(g.gelu(y), g.tensor_scalar(0.5)),
               g.relu(*g.node("transpose", std::array{&gw}, {{"permutation", Dims{1, 0}}})[0]));
  z.set_output();
  g.validate();
  g.build_operation_graph();
  g.create_execution_plan("fused", {{"position", 0}});
  // So that products are steps of their own.
  g.deselect_engines(std::array{std::string("composed")});
  g.check_support();
  g.build_plans();
  Workspace workspace(g.workspace_size());
  const Tensor out = empty({64, 48});
  const Address sorted[] = {address(x), address(w), address(b), address(out)};
  g.execute_with_ptrs(sorted, workspace.span());
  const uint64_t allocated = num_allocations, locked = num_locks;
  for (int i = 0; i < 10; ++i) g.execute_with_ptrs(sorted, workspace.span());
#ifdef NDEBUG  // builds with assertions watch who uses the workspace
  EXPECT_EQ(num_allocations - allocated, 0u);
  EXPECT_EQ(num_locks - locked, 0u);
#endif
#ifdef TENON_COUNTS_LOCKS
  // The library's are counted, too.
  manual_seed(1);
  EXPECT_GT(num_locks, locked);
#endif
  EXPECT_TRUE(same_bits(out, matmul(mul(gelu(add(matmul(x, w), b)), 0.5), relu(w.t()))));
}

TEST(BuiltGraph, TheFastestPlanIsFoundWithoutAWriteToTheCallersOutputs) {
  Example e;
  e.g.validate();
  e.g.build_operation_graph();
  const builder::HeuristicMode modes[] = {builder::HeuristicMode::A};
  e.g.create_execution_plans(modes);
  e.g.check_support();
  e.g.build_plans(builder::BuildPolicy::All);
  const size_t count = e.g.execution_plan_count();
  e.out.fill_(7);
  Workspace workspace(e.g.autotune_workspace_size());
  const std::unordered_map<uint64_t, Address> pack{
      {1, address(e.x)}, {2, address(e.w)}, {3, address(e.b)}, {e.gy->uid(), address(e.out)}};
  const std::vector<graph::Trial> told = e.g.autotune(pack, workspace.span(), 5000);
  EXPECT_TRUE(same_bits(e.out, full({33, 1}, 7.0)));
  EXPECT_GE(told.size(), count);
  EXPECT_EQ(std::ranges::count_if(told, [](const graph::Trial& t) { return t.reason.empty(); }), 1);
  for (const graph::Trial& t : told) {
    EXPECT_GT(t.ns, 0) << t.name;
    if (t.reason.empty()) {
      EXPECT_EQ(t.name, e.g.plan_name_at_index(0));
    }
  }
  e.g.execute(pack, workspace.span());
  EXPECT_TRUE(same_bits(e.out, e.eager()));
}

TEST(BuiltGraph, TemporariesShareTheWorkspace) {
  Graph g;
  TensorAttributes* t = &g.tensor({.dim = {64, 64}, .data_type = kFloat32});
  for (int i = 0; i < 6; ++i) t = &g.matmul(*t, *t);
  t->set_output();
  g.build();
  EXPECT_LE(g.workspace_size(), 2u * 64 * 64 * 4);
  EXPECT_EQ(g.workspace_size() % 64, 0u);
}

TEST(BuiltGraph, NumbersArePassedByAddress) {
  const Tensor x = randn({40});
  Graph g;
  TensorAttributes& gx = g.tensor_like(x);
  TensorAttributes& alpha = g.tensor({.data_type = kFloat32, .uid = 100, .is_pass_by_value = true});
  TensorAttributes& y = g.add(g.mul(gx, alpha), g.pointwise("div", {&alpha, &gx}));
  y.set_output().set_uid(7);
  g.build();
  EXPECT_EQ(std::vector<uint64_t>(g.variant_pack_uids_sorted().begin(), g.variant_pack_uids_sorted().end()),
            (std::vector<uint64_t>{1, 7, 100}));
  Workspace workspace(g.workspace_size());
  for (const float value : {0.5f, -3.0f}) {
    const Tensor out = empty({40});
    g.execute({{1, address(x)}, {7, address(out)}, {100, reinterpret_cast<Address>(&value)}},
              workspace.span());
    EXPECT_TRUE(same_bits(out, add(mul(x, value), div(full({}, value), x))));
  }
}

TEST(BuiltGraph, ANumberIsAnInputOrAnAttribute) {
  const Tensor x = randn({4, 8}), scale = randn({8}), out = empty({4, 8});
  const Tensor wanted = x * rsqrt(mean(x * x, Dims{1}, true) + 2.0) * scale;
  for (const bool input : {true, false}) {
    for (const bool attribute : {true, false}) {
      Graph g;
      TensorAttributes &gx = g.tensor_like(x), &gs = g.tensor_like(scale), &eps = g.tensor_scalar(2.0);
      builder::Attributes attributes;
      if (attribute) attributes["epsilon"] = 2.0;
      const std::array<TensorAttributes*, 4> inputs{&gx, &gs, nullptr, input ? &eps : nullptr};
      TensorAttributes& y = g.node("rmsnorm", inputs, attributes)[0]->set_output();
      if (input && attribute) {
        EXPECT_EQ(error_of([&] { g.validate(); }),
                  "graph: node 'rmsnorm_0': rmsnorm: `epsilon` is given as an input and as an attribute");
        continue;
      }
      g.build();
      Workspace workspace(g.workspace_size());
      g.execute({{gx.uid(), address(x)}, {gs.uid(), address(scale)}, {y.uid(), address(out)}},
                workspace.span());
      EXPECT_EQ(allclose(out, wanted), input || attribute);
    }
  }
}

TEST(BuiltGraph, UidsAreGivenInTheOrderOfTensorsAroundThoseThatWereSet) {
  Graph g;
  TensorAttributes& a = g.tensor({.dim = {4}, .data_type = kFloat32});
  TensorAttributes& b = g.tensor({.dim = {4}, .data_type = kFloat32, .uid = 1});
  TensorAttributes& c = g.add(a, b);
  c.set_output();
  g.validate();
  EXPECT_EQ(a.uid(), 2u);
  EXPECT_EQ(b.uid(), 1u);
  EXPECT_EQ(c.uid(), 3u);
  b.set_uid(2);
  g.validate();
  EXPECT_EQ(a.uid(), 1u);
  EXPECT_EQ(b.uid(), 2u);
  EXPECT_EQ(error_of([&] { c.set_uid(2); }), "set_uid: UID 2 is that of tensor '' already");
}

TEST(BuiltGraph, RefusesCallsThatDoNotFit) {
  Example e;
  // Of several steps, so that there is a workspace.
  e.gy->set_output(false);
  e.g.mul(*e.gy, e.g.reduction(e.g.matmul(*e.gx, *e.gw), "MAX", {{"axis", Dims{0}}})).set_output();
  EXPECT_EQ(error_of([&] { e.g.build_operation_graph(); }), "build_operation_graph: call validate() first");
  EXPECT_EQ(error_of([&] { e.g.check_support(); }),
            "check_support: call validate(), build_operation_graph(), create_execution_plans() first");
  e.g.validate();
  EXPECT_EQ(error_of([&] { e.g.execute({}); }),
            "execute: call build_operation_graph(), create_execution_plans(), check_support(), build_plans() "
            "first");
  e.g.build();
  ASSERT_GT(e.g.workspace_size(), 0u);
  Workspace workspace(e.g.workspace_size());
  const Address x = address(e.x);
  EXPECT_EQ(error_of([&] {
              e.g.execute_with_ptrs(std::array{x, x}, workspace.span());
            }),
            "execute: 2 addresses, expected 4, one for each UID of [1, 2, 3, 10]");
  const std::array all{x, address(e.w), address(e.b), address(e.out)};
  EXPECT_NE(error_of([&] {
              e.g.execute_with_ptrs(all, workspace.span().first(8));
            }).find("the workspace has 8 bytes"),
            std::string::npos);
  EXPECT_EQ(error_of([&] {
              e.g.execute_with_ptrs(all, {workspace.start + 4, workspace.size});
            }),
            "execute: the workspace is not aligned to 64 bytes");
  EXPECT_EQ(error_of([&] {
              e.g.execute_with_ptrs(std::array{x, Address{0}, x, x}, workspace.span());
            }),
            "execute: the address of UID 2 is null");
  EXPECT_EQ(error_of([&] {
              e.g.execute({{1, x}, {2, x}, {3, x}}, workspace.span());
            }),
            "execute: the address of UID 10 ('mul_6::OUT_0') is missing");
  EXPECT_NE(error_of([&] { e.gx->set_uid(9); }).find("set_uid: the graph's operations are built"),
            std::string::npos);
}

#ifndef NDEBUG
TEST(BuiltGraph, AWorkspaceOfTwoThreadsAtOnceIsNoticed) {
  const Tensor x = randn({256, 256});
  Graph g;
  TensorAttributes& gx = g.tensor_like(x);
  g.matmul(g.matmul(gx, gx), gx).set_output();
  g.build();
  Workspace workspace(g.workspace_size());
  std::atomic<bool> noticed{false};
  const auto run = [&] {
    const Tensor out = empty({256, 256});
    while (!noticed) {
      const std::string error = error_of([&] {
        g.execute_with_ptrs(std::array{address(x), address(out)}, workspace.span());
      });
      if (error.find("the workspace is in use by another thread") != std::string::npos) noticed = true;
    }
  };
  std::thread other(run);
  run();
  other.join();
}
#endif

TEST(BuiltGraph, IsWrittenAndRead) {
  Example e;
  e.g.build();
  const std::vector<std::byte> bytes = e.g.serialize();
  Graph read;
  read.deserialize(bytes);
  EXPECT_EQ(read.key(), e.g.key());
  EXPECT_EQ(read.serialize(), bytes);
  Workspace workspace(read.workspace_size());
  const Address sorted[] = {address(e.x), address(e.w), address(e.b), address(e.out)};
  read.execute_with_ptrs(sorted, workspace.span());
  EXPECT_TRUE(same_bits(e.out, e.eager()));
}

}  // namespace
}  // namespace tenon
