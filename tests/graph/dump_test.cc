// Stages of graphs in files, and pictures of them.
#include "tenon/graph/text/dump.h"

#include <gtest/gtest.h>

#include "tenon/graph/text/text.h"
#include "tests/graph/samples.h"

namespace tenon::graph::testing {
namespace {

size_t count(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(GraphPicture, HasABoxForEachCallAndAFrameForEachRegion) {
  const std::string dot = to_dot(parse(kRegions));
  EXPECT_EQ(count(dot, "subgraph cluster_"), 2u);
  EXPECT_NE(dot.find("label=\"region_1_neg_mm_relu\""), std::string::npos);
  EXPECT_EQ(count(dot, "[label=\"aten::"), 5u);
  // From the input: two; from one member to the next; to the output.
  EXPECT_NE(dot.find("n0_0 -> n0_1"), std::string::npos);
  EXPECT_NE(dot.find("n0_1 -> n1_1 [label=\"%2.0 float32[4, 4]:[1, 4]\"]"), std::string::npos);
  EXPECT_NE(dot.find("n1_2 -> out5"), std::string::npos);
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
}

TEST(GraphPicture, DumpsAreOffUnlessAskedFor) {
  GraphDump dump;
  EXPECT_FALSE(dump);
  dump.stage("lifted", parse(kCalls));
}

}  // namespace
}  // namespace tenon::graph::testing
