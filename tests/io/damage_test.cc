// Damaged files: an error of kind Value, or what was written. TENON_MUTATIONS is how many of each format are
// tried.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "tenon/generated/random/functions.h"
#include "tenon/io/input.h"
#include "tenon/io/read_checkpoint.h"
#include "tenon/io/safetensors.h"

namespace tenon {
namespace {

int mutations() {
  const char* const count = std::getenv("TENON_MUTATIONS");
  return count ? std::atoi(count) : 1000;
}

void write(const Value& value, std::string& out) {
  using Kind = Value::Kind;
  out += fmt::format("{}:", value.kind_name());
  switch (value.kind()) {
    case Kind::Text:
      out += value.to_text() + '\n';
      break;
    case Kind::Tensor: {
      const Tensor t = value.to_tensor().contiguous();
      out += fmt::format("{} {}:", name(t.dtype()), to_string(t.sizes()));
      if (t.numel()) out.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
      break;
    }
    case Kind::Dict:
      for (const auto& [key, element] : value.items()) {
        write(key, out);
        write(element, out);
      }
      break;
    default:
      break;
  }
}
/// All that a value holds, as text.
std::string contents(const Value& value) {
  std::string out;
  write(value, out);
  return out;
}

std::string damaged(const std::string& whole, std::mt19937_64& draw) {
  const auto below = [&](size_t n) { return static_cast<size_t>(draw() % n); };
  std::string out = whole;
  switch (below(8)) {
    case 0:
      return out.substr(0, below(out.size()));
    case 1:
      return out.insert(below(out.size()), std::string(1 + below(16), static_cast<char>(draw())));
    case 2:
      return out.erase(below(out.size()), 1 + below(64));
    case 3: {  // a part over another
      const size_t size = 1 + below(64), from = below(out.size() - size), to = below(out.size() - size);
      return out.replace(to, size, whole.substr(from, size));
    }
    case 4: {  // a number that is as large as can be
      const size_t size = size_t{1} << below(4);
      return out.replace(below(out.size() - size), size, std::string(size, below(2) ? '\xff' : '\x7f'));
    }
    default:
      for (size_t i = 0, n = 1 + below(below(4) ? 2 : 20); i < n; ++i)
        out[below(out.size())] =
            static_cast<char>(below(2) ? draw() : out[below(out.size())] ^ (1 << below(8)));
      return out;
  }
}

/// Tries damaged copies of a file; returns how many of them loaded.
int try_damaged(const std::string& whole, uint64_t seed) {
  const auto read = [](const std::string& bytes) {
    return io::read_checkpoint(io::Input::memory(std::as_bytes(std::span(bytes)), "the bytes")).value;
  };
  const std::string right = contents(read(whole));
  std::mt19937_64 draw(seed);
  int loaded = 0;
  for (int i = 0; i < mutations(); ++i) {
    const std::string bytes = damaged(whole, draw);
    try {
      const std::string found = contents(read(bytes));
      EXPECT_TRUE(found == right) << "mutation " << i << " of seed " << seed << " loads as something else";
      ++loaded;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Value) << e.what();
      EXPECT_TRUE(std::string_view(e.what()).starts_with("load: the bytes: at byte ")) << e.what();
    }
  }
  return loaded;
}

TEST(Damage, OfSafetensorsIsAnError) {
  manual_seed(0);
  const std::string whole = safetensors::save(
      {{"weight", randn({8, 4})}, {"bias", randn({8}, kFloat64)}, {"half", randn({3}).to(kBFloat16)}},
      {{"format", "pt"}});
  // A part over itself changes nothing.
  EXPECT_LE(try_damaged(whole, 1), mutations() / 20);
}

TEST(Damage, OfACheckpointOfPytorchsIsAnErrorOrTouchesNoValue) {
  std::ifstream file(TENON_RECORDED "/gpt.pt", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const int loaded = try_damaged(whole, 2);
  EXPECT_GT(loaded, 0);  // times, padding
  EXPECT_LT(loaded, mutations());
}

}  // namespace
}  // namespace tenon
