#include "tenon/io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/io/checkpoint.h"
#include "tenon/io/replace_file.h"

namespace tenon {
namespace {

/// A path that is gone after the test.
struct Path {
  explicit Path(const std::string& name) : text(testing::TempDir() + name) {}
  ~Path() { std::remove(text.c_str()); }
  operator const std::string&() const { return text; }
  std::string text;
};

std::string bytes_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool same(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         std::string_view(static_cast<char*>(x.data_ptr()), x.nbytes()) ==
             std::string_view(static_cast<char*>(y.data_ptr()), y.nbytes());
}

TEST(Safetensors, TensorsComeBack) {
  const Path path("tensors_come_back.safetensors");
  const StateDict state{{"weight", randn({3, 4}).t()},
                        {"bias", randn({3}, kFloat64)},
                        {"empty", empty({0, 2}, kBFloat16)},
                        {"scalar", ones({}, kBool)}};
  safetensors::save_file(state, path, {{"made by", "a test"}});
  for (const bool mmap : {false, true}) {
    const StateDict found = safetensors::load_file(path, {.mmap = mmap});
    ASSERT_EQ(found.size(), state.size());
    for (const auto& [name, tensor] : state) EXPECT_TRUE(same(found.at(name), tensor)) << name;
    EXPECT_EQ(found.begin()->first, "weight");
  }
  EXPECT_EQ(bytes_at(path), safetensors::save(state, {{"made by", "a test"}}));
  const safetensors::File file(path);
  EXPECT_EQ(file.keys(), (std::vector<std::string>{"weight", "bias", "empty", "scalar"}));
  EXPECT_EQ(file.metadata(), (safetensors::Metadata{{"made by", "a test"}}));
  EXPECT_TRUE(same(file.tensor("bias"), state.at("bias")));
  const auto rows = file.rows();
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& row : rows) EXPECT_EQ(row.sizes, state.at(row.name).sizes().to_dims()) << row.name;
  EXPECT_EQ(std::ranges::find(rows, "bias", &safetensors::File::Row::name)->dtype, "F64");
}

TEST(Safetensors, MappedTensorsAreNotCopiedWhereTheyAreAligned) {
  const Path path("mapped.safetensors");
  safetensors::save_file({{"a", ones({3}, kInt8)}, {"b", ones({1000}, kFloat64)}}, path);
  const StateDict found = safetensors::load_file(path, {.mmap = true});
  const auto in_file = [&](const char* name) { return found.at(name).storage()->allocator() == nullptr; };
  EXPECT_TRUE(in_file("a") && in_file("b"));
  // Another program's file: the double is at 4 bytes of the data, which begins at a multiple of 8.
  std::string header =
      R"({"f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"d":{"dtype":"F64","shape":[1],"data_offsets":[4,12]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string other(8, '\0');
  other[0] = static_cast<char>(header.size());
  other += header;
  const float one = 1;
  const double two = 2;
  other.append(reinterpret_cast<const char*>(&one), 4).append(reinterpret_cast<const char*>(&two), 8);
  io::replace_file(path, std::vector<io::Bytes>{std::as_bytes(std::span(other))});
  const StateDict read = safetensors::load_file(path, {.mmap = true});
  EXPECT_EQ(read.at("f").item<float>(), 1);
  EXPECT_EQ(read.at("d").item<double>(), 2);
  EXPECT_EQ(read.at("f").storage()->allocator(), nullptr);
  EXPECT_NE(read.at("d").storage()->allocator(), nullptr);
}

// A program without recorded programs, too: nothing has set recording_hooks before.
TEST(Safetensors, AMappedFileThatWasCutShortIsAnErrorForReadersAndWriters) {
  const Path path("cut.safetensors");
  safetensors::save_file({{"a", ones({4096})}, {"b", ones({4096})}}, path);
  const Tensor a = safetensors::load_file(path, {.mmap = true}).at("a");
  const safetensors::File file(path, {.mmap = true});
  Tensor of_file = file.tensor("a");
  std::filesystem::resize_file(path.text, 4096);
  (void)sum(a);
  Tensor written = a, view = a.slice(0, 1), result = ones({4096}), other = ones({4096});
  EXPECT_THROW(written.add_(1), FileError);
  EXPECT_THROW(view.mul_(2), FileError);
  EXPECT_THROW(written.detach().fill_(0), FileError);
  EXPECT_THROW(add_out(written, other, other), FileError);
  EXPECT_THROW(result.copy_(a), FileError);
  // Each open file finds it by itself, and remembers it.
  EXPECT_THROW(file.tensor("b"), FileError);
  EXPECT_THROW(of_file.zero_(), FileError);
}

TEST(Safetensors, ErrorsNameThePathThePlaceAndTheTensor) {
  const Path path("damaged.safetensors");
  safetensors::save_file({{"weight", ones({4})}}, path);
  std::string bytes = bytes_at(path);
  bytes.back() ^= 1;
  io::replace_file(path, std::vector<io::Bytes>{std::as_bytes(std::span(bytes))});
  // Nothing of a mapped file is verified, and files are mapped unless a program asks otherwise.
  EXPECT_EQ(safetensors::load_file(path).at("weight").storage()->allocator(), nullptr);
  EXPECT_EQ(safetensors::File(path).tensor("weight").storage()->allocator(), nullptr);
  EXPECT_THROW(load(path), Error);
  try {
    safetensors::load_file(path, {.mmap = false});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    EXPECT_EQ(std::string(e.what()).find("load: " + path.text + ": at byte 40: the checksum"), 0u)
        << e.what();
  }
  try {
    safetensors::load_file(path.text + ".missing");
    FAIL();
  } catch (const io::SystemError& e) {
    EXPECT_EQ(e.code(), ENOENT);
    EXPECT_EQ(e.path(), path.text + ".missing");
  }
}

TEST(StateDict, KeepsTheOrderAndReplaces) {
  StateDict state{{"b", ones({1})}, {"a", ones({2})}};
  state.set("b", ones({3}));
  EXPECT_EQ(state.size(), 2u);
  EXPECT_EQ(state.begin()->first, "b");
  EXPECT_EQ(state.at("b").size(0), 3);
  EXPECT_FALSE(state.contains("c"));
  EXPECT_THROW(state.at("c"), Error);
}

}  // namespace
}  // namespace tenon
