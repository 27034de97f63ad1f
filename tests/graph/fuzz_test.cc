// Texts of graphs with bytes, words and lines changed at random: each is a legal graph that prints and parses
// back, or is refused with a clear error. Under a sanitizer, nothing else happens either.
#include <gtest/gtest.h>

#include <random>

#include "tenon/core/error.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/dump.h"
#include "tenon/graph/text/text.h"
#include "tests/graph/samples.h"

namespace tenon::graph::testing {
namespace {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : rng_(seed) {}

  std::string mutate(std::string text) {
    for (size_t n = 1 + below(4); n > 0 && !text.empty(); --n) change(text);
    return text;
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(rng_() % n); }

  // The bounds of a word or of one other character.
  std::pair<size_t, size_t> token(const std::string& text) {
    size_t first = below(text.size()), last = first + 1;
    const auto in_word = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
    if (!in_word(first)) return {first, last};
    while (first > 0 && in_word(first - 1)) --first;
    while (last < text.size() && in_word(last)) ++last;
    return {first, last};
  }
  std::pair<size_t, size_t> line(const std::string& text) {
    const size_t at = below(text.size());
    const size_t before = text.rfind('\n', at), after = text.find('\n', at);
    return {before == std::string::npos ? 0 : before + (before < at),
            after == std::string::npos ? text.size() : after + 1};
  }

  void change(std::string& text) {
    static constexpr const char* kWords[] = {"0",
                                             "1",
                                             "-1",
                                             "7",
                                             "4294967295",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "none",
                                             "_",
                                             "%0.0",
                                             "%1.0",
                                             "%2.0",
                                             "$0",
                                             "[",
                                             "]",
                                             "(",
                                             ")",
                                             "{",
                                             "}",
                                             ",",
                                             "float64",
                                             "int8",
                                             "bool",
                                             "complex64",
                                             "nan",
                                             "1e400",
                                             "\"",
                                             "input",
                                             "output",
                                             "anchor",
                                             "aten::mm",
                                             "aten::add_.Tensor",
                                             "aten::split.Tensor",
                                             "tenon::region_rows",
                                             "region_flat",
                                             "aten::relu",
                                             "body",
                                             "epilogue () () ():",
                                             "meta",
                                             "cuda:0",
                                             "#"};
    const auto [first, last] = token(text);
    switch (below(8)) {
      case 0:
        text[first] = static_cast<char>(rng_());
        return;
      case 1:
        text.erase(first, last - first);
        return;
      case 2:
        text.insert(first, kWords[below(std::size(kWords))]);
        return;
      case 3: {  // a word of another place
        const auto [from, to] = token(text);
        text.replace(first, last - first, text.substr(from, to - from));
        return;
      }
      case 4: {
        const auto [from, to] = line(text);
        text.erase(from, to - from);
        return;
      }
      case 5: {
        const auto [from, to] = line(text);
        const std::string copy = text.substr(from, to - from);
        text.insert(line(text).first, copy);
        return;
      }
      case 6:
        text.resize(first);
        return;
      default:
        text.replace(first, last - first, kWords[below(std::size(kWords))]);
    }
  }

  std::mt19937_64 rng_;
};

TEST(GraphFuzz, AChangedTextIsAGraphOrIsRefused) {
  int graphs = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const std::string text = Mutator(seed).mutate(seed % 2 != 0 ? kCalls : kRegions);
    try {
      const Graph graph = parse(text);
      ++graphs;
      ASSERT_EQ(verify(graph).sentence, "") << text;
      const std::string printed = to_string(graph);
      ASSERT_EQ(to_string(parse(printed)), printed) << text;
      ASSERT_EQ(key_of(parse(printed)), key_of(graph)) << text;
      ASSERT_FALSE(to_dot(graph).empty());
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Value) << text << "\n" << error.what();
      ASSERT_NE(std::string_view(error.what()).find("line "), std::string_view::npos) << error.what();
    }
  }
  // Most changes break a graph, not all.
  EXPECT_GT(graphs, 300);
  EXPECT_LT(graphs, 15000);
}

}  // namespace
}  // namespace tenon::graph::testing
