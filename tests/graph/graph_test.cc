// What a graph is made of, and how its tables grow.
#include "tenon/graph/ir/graph.h"

#include <gtest/gtest.h>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {
namespace {

OperatorHandle op(std::string_view name) { return Dispatcher::singleton().find_schema_or_throw_full(name); }

TEST(Graph, EqualGeometriesHaveOneNumberHoweverManyThereAre) {
  Graph g;
  std::vector<GeometryId> ids;
  for (int64_t n = 0; n < 500; ++n)
    ids.push_back(g.add_geometry({.offset = n % 7, .sizes = {n}, .strides = {1}}));
  EXPECT_EQ(g.num_geometries(), 500u);
  for (int64_t n = 0; n < 500; ++n)
    EXPECT_EQ(g.add_geometry({.offset = n % 7, .sizes = {n}, .strides = {1}}), ids[n]);
  EXPECT_EQ(g.num_geometries(), 500u);
  EXPECT_NE(g.add_geometry({.wrapped_number = true, .sizes = {3}, .strides = {1}}), ids[3]);
}

TEST(Graph, ANodeTakesWhatWasAddedSinceTheLast) {
  Graph g;
  const StorageId x = g.add_storage({.nbytes = 16, .is_input = true});
  const StorageId y = g.add_storage({.nbytes = 16, .is_output = true});
  const ValueId x0 = g.add_input_value(x);
  const GeometryId four = g.add_geometry({.sizes = {4}, .strides = {1}});
  g.add_use({x0, four});
  const ValueId y0 = g.add_def(y, four, kNone);
  g.add_node(op("aten::relu"));
  g.add_use({y0, four});
  g.add_number_use(g.add_number(Scalar::Kind::Float));
  const ValueId y1 = g.add_def(y, four, y0);
  g.add_node(op("aten::mul_.Scalar"));

  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.uses(g.nodes[0]).size(), 1u);
  EXPECT_EQ(g.uses(g.nodes[1])[0].value, y0);
  EXPECT_EQ(g.numbers_of(g.nodes[1]).size(), 1u);
  EXPECT_EQ(g.values[y1].producer, 1u);
  EXPECT_EQ(g.values[y1].previous, y0);
  EXPECT_EQ(g.defs(g.nodes[0])[0].value, y0);

  const Graph h = g.copy();
  EXPECT_EQ(h.uses(h.nodes[1])[0], g.uses(g.nodes[1])[0]);
  EXPECT_NE(h.uses(h.nodes[1]).data(), g.uses(g.nodes[1]).data());
}

TEST(Region, EachAnchorHasAnEntryOfItsOwn) {
  EXPECT_EQ(region_operator(RegionKind::Matmul).full_name(), "tenon::region_matmul");
  EXPECT_FALSE(region_operator(RegionKind::Matmul) == op("aten::mm"));
  for (const std::string& name : Dispatcher::singleton().operator_names())
    EXPECT_NE(name, "tenon::region_matmul");
}

}  // namespace
}  // namespace tenon::graph
