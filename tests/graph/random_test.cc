// Random graphs leave the same bytes fused, in every position of the matcher, as the eager operators one by
// one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tenon/core/half.h"
#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/text.h"
#include "tests/graph/random_graph.h"

namespace tenon::graph::testing {
namespace {

template <class T>
bool same_values(const T* a, const T* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const bool nans = static_cast<double>(a[i]) != static_cast<double>(a[i]) &&
                      static_cast<double>(b[i]) != static_cast<double>(b[i]);
    if (!nans && std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

// Bit for bit; a NaN is one, whatever its bits.
bool same(const tenon::Storage& a, const tenon::Storage& b, DType dtype) {
  const auto* x = reinterpret_cast<const std::byte*>(a.address());
  const auto* y = reinterpret_cast<const std::byte*>(b.address());
  const auto values = [&]<class T>(T) {
    return same_values(reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(y), a.nbytes() / sizeof(T));
  };
  switch (dtype) {
    case DType::Float16:
      return values(Half());
    case DType::BFloat16:
      return values(BFloat16());
    case DType::Float32:
    case DType::Complex64:
      return values(float());
    case DType::Float64:
    case DType::Complex128:
      return values(double());
    default:
      return std::memcmp(x, y, a.nbytes()) == 0;
  }
}

TEST(RandomGraphs, LeaveTheSameBytesFusedAsOneByOne) {
  size_t regions = 0, members = 0, around = 0, over_rows = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomGraph program(seed);
    ASSERT_EQ(verify(program.graph).sentence, "") << "seed " << seed << "\n" << to_string(program.graph);
    const std::string text = to_string(program.graph);
    const Graph parsed = parse(text);
    ASSERT_EQ(to_string(parsed), text) << "seed " << seed;
    ASSERT_EQ(key_of(parsed), key_of(program.graph)) << "seed " << seed;
    for (const MatcherPosition position : kMatcherPositions) {
      // The other positions change what is around products alone.
      if (position != MatcherPosition::AfterFuser && seed % 4 > 1) continue;
      Graph fused = program.graph.copy();
      const FusionReport report = fuse(fused, {.position = position, .rows = seed % 2 != 0});
      ASSERT_EQ(verify(fused).sentence, "") << "seed " << seed << " " << name(position) << "\n"
                                            << text << to_string(fused);
      ASSERT_EQ(key_of(parse(to_string(fused))), key_of(fused)) << "seed " << seed;
      // Calls keep their numbers, by which errors find their lines and plans on disk their calls.
      std::set<uint32_t> calls;
      each_call(fused, [&](const Node& call) {
        ASSERT_TRUE(call.call < program.graph.nodes.size() && calls.insert(call.call).second);
        ASSERT_EQ(call.op, program.graph.nodes[call.call].op) << "seed " << seed;
      });
      for (const FusionReport::Fusion& f : report.fusions) {
        ++regions;
        members += f.operators.size();
        around += f.kind == RegionKind::Matmul;
        over_rows += f.kind == RegionKind::Rows;
      }
      for (const bool engine : {false, true}) {
        Machine machine(fused, program.inputs, program.numbers, engine);
        ASSERT_NO_THROW(machine.run()) << "seed " << seed << "\n" << text << to_string(fused);
        for (StorageId s = 0; s < fused.storages.size(); ++s) {
          if (!fused.storages[s].is_output) continue;
          ASSERT_TRUE(same(machine.memory(s), program.left[s], program.dtypes[s]))
              << "seed " << seed << " " << name(position) << " storage %" << s << "\n"
              << text << to_string(fused);
        }
      }
    }
  }
  EXPECT_GT(regions, 1500u);
  EXPECT_GT(members, 4000u);
  EXPECT_GT(around, 50u);
  EXPECT_GT(over_rows, 300u);
}

}  // namespace
}  // namespace tenon::graph::testing
