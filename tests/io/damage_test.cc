// Damaged files: an error of kind Value, or what was written. TENON_MUTATIONS is how many of each format are
// tried.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tenon/generated/random/functions.h"
#include "tenon/io/crc32.h"
#include "tenon/io/input.h"
#include "tenon/io/read_checkpoint.h"
#include "tenon/io/safetensors.h"
#include "tests/altered_bytes.h"

namespace tenon {
namespace {

using testing::mutations;

constexpr int kUsually = 1000;

/// A dict may contain itself.
void write(const Value& value, std::string& out, int depth = 0) {
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
      if (depth == 20) break;
      for (const auto& [key, element] : value.items()) {
        write(key, out, depth + 1);
        write(element, out, depth + 1);
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

Value read(const std::string& bytes) {
  return io::read_checkpoint(io::Input::memory(std::as_bytes(std::span(bytes)), "the bytes")).value;
}

void expect_refusal(const Error& e) {
  EXPECT_EQ(e.kind(), ErrorKind::Value) << e.what();
  EXPECT_TRUE(std::string_view(e.what()).starts_with("load: the bytes: at byte ")) << e.what();
}

/// Tries damaged copies of a file; returns how many of them loaded.
int try_damaged(const std::string& whole, uint64_t seed) {
  const std::string right = contents(read(whole));
  const testing::MemoryBound bound(whole.size());
  std::mt19937_64 draw(seed);
  int loaded = 0;
  for (int i = 0; i < mutations(kUsually); ++i) {
    const std::string bytes = damaged(whole, draw);
    try {
      const std::string found = contents(read(bytes));
      EXPECT_TRUE(found == right) << "mutation " << i << " of seed " << seed << " loads as something else";
      ++loaded;
    } catch (const Error& e) {
      expect_refusal(e);
    }
  }
  return loaded;
}

std::string recorded(const char* name) {
  std::ifstream file(std::string(TENON_RECORDED "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Damage, OfSafetensorsIsAnError) {
  manual_seed(0);
  const std::string whole = safetensors::save(
      {{"weight", randn({8, 4})}, {"bias", randn({8}, kFloat64)}, {"half", randn({3}).to(kBFloat16)}},
      {{"format", "pt"}});
  // A part over itself changes nothing.
  EXPECT_LE(try_damaged(whole, 1), mutations(kUsually) / 20);
}

TEST(Damage, OfACheckpointOfPytorchsIsAnErrorOrTouchesNoValue) {
  const std::string whole = recorded("gpt.pt");
  const int loaded = try_damaged(whole, 2);
  EXPECT_GT(loaded, 0);  // times, padding
  EXPECT_LT(loaded, mutations(kUsually));
}

constexpr size_t kOwnMagic = 20, kOwnHead = kOwnMagic + 12;

/// A checkpoint of Tenon's with a length and a sum that fit.
std::string sealed(const std::string& pickle) {
  std::string length;
  for (size_t i = 0; i < 8; ++i) length += static_cast<char>(pickle.size() >> (8 * i) & 0xff);
  const uint32_t sum = io::crc32(pickle.data(), pickle.size(), io::crc32(length.data(), length.size()));
  std::string out = "tenon checkpoint, 2\n" + length;
  for (size_t i = 0; i < 4; ++i) out += static_cast<char>(sum >> (8 * i) & 0xff);
  return out + pickle;
}

TEST(Damage, OfACheckpointOfTenonsIsAnError) {
  // A part over itself changes nothing.
  EXPECT_LE(try_damaged(recorded("own_2.tenon"), 3), mutations(kUsually) / 20);
}

// The format has no sums: elements may have changed.
TEST(Damage, OfPytorchsFormatBefore16IsAnErrorOrAnotherValue) {
  const std::string whole = recorded("old.pt");
  std::mt19937_64 draw(5);
  int loaded = 0;
  const testing::MemoryBound bound(whole.size());
  for (int i = 0; i < mutations(kUsually); ++i) {
    try {
      loaded += !contents(read(damaged(whole, draw))).empty();
    } catch (const Error& e) {
      expect_refusal(e);
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, mutations(kUsually));
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(read(whole.substr(0, n)), Error) << n;
}

// With sums that fit, as only a hostile writer computes them, and in the first format, which has none.
TEST(Damage, OfAPickleOfTenonsIsAnErrorOrAnotherValue) {
  const std::string pickle = recorded("own_2.tenon").substr(kOwnHead);
  std::mt19937_64 draw(4);
  int loaded = 0;
  const testing::MemoryBound bound(pickle.size());
  for (int i = 0; i < mutations(kUsually); ++i) {
    const std::string bytes = damaged(pickle, draw);
    try {
      loaded += !contents(read(i % 2 ? sealed(bytes) : "tenon-checkpoint-1\n" + bytes)).empty();
    } catch (const Error& e) {
      expect_refusal(e);
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, mutations(kUsually));
}

}  // namespace
}  // namespace tenon
