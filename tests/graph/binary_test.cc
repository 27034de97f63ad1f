// The binary form: what comes back is the graph, and what is no such form is refused by its byte. Under a
// sanitizer, nothing else happens either.
#include "tenon/graph/text/binary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tenon/core/error.h"
#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/bytes.h"
#include "tenon/graph/text/text.h"
#include "tests/altered_bytes.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/samples.h"

namespace tenon::graph::testing {
namespace {

using Bytes = std::vector<std::byte>;

void expect_same(const Graph& graph) {
  const Bytes bytes = serialize(graph);
  const Graph read = deserialize(bytes);
  EXPECT_EQ(to_string(read), to_string(graph));
  EXPECT_EQ(key_of(read), key_of(graph));
  EXPECT_EQ(serialize(read), bytes);
}

TEST(GraphBinary, ReadsBackWhatWasWritten) {
  for (const char* text : {kCalls, kRegions}) expect_same(parse(text));
  expect_same(Graph());
}

// Numbers that no text shows exactly by chance, and every kind of attribute.
TEST(GraphBinary, KeepsNumbersToTheBit) {
  expect_same(parse(R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu output
number $0 complex
%1.0 float32[2, 3] = aten::add.Scalar(%0.0 float32[2, 3]:[-3, 1]+9, 0.1, -7)
%1.1 float32[2, 3] = aten::add.Scalar(%1.0 float32[2, 3], nan, true)
%1.2 complex64[2] = aten::full([2], (0.1, -inf), complex64, strided, cpu, false)
%1.3(%1.2) complex64[2] = aten::mul_.Scalar(%1.2 complex64[2], $0)
%1.4 float32[2] = aten::gelu(%1.3 float32[2], "a \"quoted\" \x01 text")
%1.5 float32[3] = aten::clone(%1.4 float32[3], channels_last)
)"));
}

TEST(GraphBinary, IsSmallerThanTheText) {
  for (const char* text : {kCalls, kRegions})
    EXPECT_LT(serialize(parse(text)).size(), std::strlen(text) * 2 / 3);
}

TEST(GraphBinary, ReadsBackFusedRandomGraphs) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGraph random(seed);
    const Graph& graph = random.graph;
    expect_same(graph);
    for (const MatcherPosition position : kMatcherPositions) {
      Graph fused = graph.copy();
      fuse(fused, {.position = position, .rows = true, .dump = false});
      expect_same(fused);
    }
  }
}

std::string refusal(const Bytes& bytes) {
  try {
    deserialize(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value) << error.what();
    return error.what();
  }
  return "";
}

void expect_refused(const Bytes& bytes, std::string_view sentence) {
  const std::string why = refusal(bytes);
  EXPECT_NE(why.find(sentence), std::string::npos) << why;
}

TEST(GraphBinary, RefusesWhatIsNoSuchForm) {
  const Bytes good = serialize(parse(kCalls));
  expect_refused({}, "graph: byte 0: this is no graph in binary form");
  Bytes bytes = good;
  bytes[0] = std::byte{0};
  expect_refused(bytes, "graph: byte 0: this is no graph in binary form");
  bytes = good;
  bytes[8] = std::byte{9};
  expect_refused(bytes, "graph: byte 8: this is version 9 of the form; this build reads version 2");
  bytes = good;
  bytes.push_back(std::byte{0});
  expect_refused(bytes, "bytes should follow, and");
  bytes = good;
  bytes[40] ^= std::byte{1};
  expect_refused(bytes, "graph: byte 32: the bytes that follow are not those that were written");
  for (size_t n = 0; n < good.size(); ++n)
    ASSERT_NE(refusal(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(n))), "") << n;
}

// With a checksum that fits, as only somebody who wants that writes one.
Bytes sealed(Bytes bytes) {
  const uint64_t length = bytes.size() - 32, sum = checksum(std::span(bytes).subspan(32));
  for (int i = 0; i < 8; ++i) {
    bytes[16 + static_cast<size_t>(i)] = static_cast<std::byte>(length >> 8 * i);
    bytes[24 + static_cast<size_t>(i)] = static_cast<std::byte>(sum >> 8 * i);
  }
  return bytes;
}

TEST(GraphBinary, RefusesUnknownOperatorsByName) {
  Bytes bytes = serialize(parse(kCalls));
  const std::string_view name = "aten::relu_";
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const size_t at = std::string_view(text, bytes.size()).find(name);
  ASSERT_NE(at, std::string_view::npos);
  bytes[at + 6] = std::byte{'z'};
  expect_refused(sealed(bytes), "'aten::zelu_' is no operator that is there");
}

// Texts become Python's, which hold nothing else.
TEST(GraphBinary, RefusesTextsThatAreNoUtf8) {
  for (const std::string_view name :
       {"\xff", "a\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\xaf"}) {
    EXPECT_FALSE(is_utf8(name));
    Graph graph = parse(kRegions);
    const auto region = std::ranges::find_if(graph.nodes, [](const Node& n) { return n.region != nullptr; });
    ASSERT_NE(region, graph.nodes.end());
    region->region->name = name;
    expect_refused(serialize(graph), "a string is no UTF-8");
  }
  for (const std::string_view name :
       {"", "region_0", "\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x99\x82"})
    EXPECT_TRUE(is_utf8(name));
}

TEST(GraphBinaryFuzz, ChangedBytesAreAGraphOrAreRefused) {
  int graphs = 0;
  const Bytes samples[] = {serialize(parse(kCalls)), serialize(parse(kRegions))};
  const int count = tenon::testing::mutations(40000);
  const tenon::testing::MemoryBound bound(samples[1].size());
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(count); ++seed) {
    std::mt19937_64 rng(seed);
    const Bytes bytes = tenon::testing::altered(samples[seed % 2], rng, 32);
    try {
      const Graph graph = deserialize(sealed(bytes));
      ++graphs;
      ASSERT_EQ(verify(graph).sentence, "") << seed;
      ASSERT_EQ(key_of(deserialize(serialize(graph))), key_of(graph)) << seed;
      ASSERT_FALSE(to_string(graph).empty());
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Value) << seed << ": " << error.what();
      ASSERT_NE(std::string_view(error.what()).find("byte "), std::string_view::npos) << error.what();
    }
  }
  // Most changes break a graph, not all.
  EXPECT_GT(graphs, count / 400);
  EXPECT_LT(graphs, count / 2);
}

}  // namespace
}  // namespace tenon::graph::testing
