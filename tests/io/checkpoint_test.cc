#include "tenon/io/checkpoint.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/io/replace_file.h"
#include "tenon/nn/linear.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon {
namespace {

const std::string kGpt = TENON_RECORDED "/gpt.pt";

std::string message_of(auto&& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "no error";
}

/// Writes a file that is gone after the test.
struct Path {
  Path(const std::string& name, const std::string& bytes) : text(testing::TempDir() + name) {
    io::replace_file(text, std::vector<io::Bytes>{std::as_bytes(std::span(bytes))});
  }
  ~Path() { std::remove(text.c_str()); }
  std::string text;
};

TEST(Checkpoint, PytorchsValuesAreThere) {
  for (const bool mmap : {false, true}) {
    const Value checkpoint = load(kGpt, {.mmap = mmap});
    EXPECT_EQ(checkpoint.kind(), Value::Kind::Dict);
    EXPECT_EQ(checkpoint.size(), 3u);
    EXPECT_EQ(checkpoint.items()[1].first.to_text(), "input");
    EXPECT_EQ(checkpoint["input"].to_tensor().sizes(), (Dims{2, 12}));
    EXPECT_EQ(checkpoint["input"].to_tensor().dtype(), kInt64);
    EXPECT_TRUE(checkpoint.contains("logits") && !checkpoint.contains("optimizer"));
    const StateDict model = checkpoint["model"];
    EXPECT_EQ(model.begin()->first, "tokens.weight");
    EXPECT_EQ(model.at("tokens.weight").sizes(), (Dims{27, 16}));
    // Tied weights share their storage, as they did.
    EXPECT_EQ(model.at("head.weight").data_ptr(), model.at("tokens.weight").data_ptr());
  }
}

TEST(Checkpoint, PytorchsFormatBefore16IsRead) {
  for (const bool mmap : {false, true}) {
    const Value checkpoint = load(TENON_RECORDED "/old.pt", {.mmap = mmap});
    const StateDict model = checkpoint["model"];
    EXPECT_EQ(model.begin()->first, "0.weight");
    EXPECT_TRUE(equal(model.at("0.weight"), arange(6).to(kFloat32).reshape({2, 3})));
    EXPECT_TRUE(equal(checkpoint["view"].to_tensor(), arange(1, 4).to(kFloat64)));
    EXPECT_EQ(checkpoint["view"].to_tensor().storage().address(),
              checkpoint["base"].to_tensor().storage().address());
    EXPECT_EQ(checkpoint["epoch"].to_int(), 3);
  }
}

TEST(Checkpoint, StateDictsGoThroughAFile) {
  const Path path("module.safetensors", "");
  nn::Linear from(3, 4), to(3, 4);
  save(from.state_dict(), path.text);
  to.load_state_dict(load(path.text));
  EXPECT_TRUE(equal(to.weight, from.weight) && equal(to.bias, from.bias));
}

TEST(Checkpoint, WhatAValueIsNotSaysSo) {
  const Value checkpoint = load(kGpt);
  EXPECT_EQ(message_of([&] { (void)checkpoint["epoch"]; }, ErrorKind::Value),
            "Value: the dict has no key 'epoch'");
  EXPECT_EQ(message_of([&] { (void)checkpoint["model"].to_int(); }, ErrorKind::Type),
            "Value: an int is wanted, and this is a dict");
  EXPECT_EQ(message_of([&] { (void)checkpoint["input"]["x"]; }, ErrorKind::Type),
            "Value: a dict is wanted, and this is a tensor");
  EXPECT_EQ(message_of([&] { (void)checkpoint.state_dict(); }, ErrorKind::Type),
            "Value: a dict of tensors is wanted, and 'model' is a dict; where a checkpoint holds several "
            "things, take the "
            "one that is wanted, as in checkpoint[\"model\"]");
}

TEST(Checkpoint, OtherFilesAndOtherEndingsAreRefused) {
  const Path path("other.bin", "hello, world");
  EXPECT_EQ(message_of([&] { load(path.text); }, ErrorKind::Value),
            "load: " + path.text +
                ": at byte 0: neither safetensors, nor a checkpoint of PyTorch's, nor what tenon.save wrote");
}

TEST(Checkpoint, TensorsAndValuesGoThroughAFileOfTenons) {
  const Path path("own.tenon", "");
  const Tensor tensor = arange(100'000).to(kFloat32).reshape({100, 1000});  // larger than what is copied
  save(tensor.t(), path.text);
  EXPECT_TRUE(equal(load(path.text).to_tensor(), tensor.t()));
  Tensor leaf = ones({2}).requires_grad_();
  save({{"leaf", leaf}, {"loss", (leaf * 3).sum()}, {"none", zeros({0, 3}, kBFloat16)}}, path.text);
  const StateDict state = load(path.text);
  EXPECT_EQ(state.size(), 3u);
  EXPECT_TRUE(state.at("leaf").requires_grad() && state.at("loss").requires_grad());
  EXPECT_EQ(state.at("loss").item<float>(), 6);
  EXPECT_EQ(state.at("none").sizes(), (Dims{0, 3}));
  EXPECT_EQ(state.at("none").dtype(), kBFloat16);

  const Value whole = load(TENON_RECORDED "/gpt.pt");
  save(whole, path.text);
  const Value again = load(path.text);
  EXPECT_EQ(again.size(), 3u);
  EXPECT_TRUE(equal(again["logits"].to_tensor(), whole["logits"].to_tensor()));
  EXPECT_EQ(again["model"].state_dict().size(), whole["model"].state_dict().size());
  const Path names("model.safetensors", "");
  save(whole["model"], names.text);
  EXPECT_EQ(load(names.text).state_dict().size(), whole["model"].state_dict().size());
}

TEST(Checkpoint, WhatCannotBeSavedSaysSo) {
  const std::string path = testing::TempDir() + "never.safetensors";
  EXPECT_EQ(message_of([&] { save(ones({2}), path); }, ErrorKind::Value),
            "save: " + path +
                ": a .safetensors file holds tensors by name, and this is one tensor; give it a name, "
                "save({{\"weight\", tensor}}, path), or the path another ending");
  const std::string own = testing::TempDir() + "never.tenon";
  EXPECT_EQ(message_of([&] { save(empty({2}, kMeta), own); }, ErrorKind::Device),
            "save: a tensor on meta has no elements to save");
  EXPECT_EQ(message_of(
                [&] {
                  save({{"\xff", ones({2})}}, own);
                },
                ErrorKind::Value),
            "save: '?' is no UTF-8, as texts of checkpoints are");
}

/// {"w": tenon.tensor([1.0, 2.0]), "n": 3}, as tenon.save of Python writes it.
constexpr char kOwn[] =
    "tenon checkpoint, 2\n@SIZE@"
    "\x80\x04}(\x8c\x01w\x8c\x08tenon._C\x8c\x0f_rebuild_tensor\x93(\x8c\x05tenon\x8c\x06Tensor\x93"
    "C\x08\0\0\x80?\0\0\0@K\x02\x85\x8c\x08tenon._C\x8c\x07"
    "float32\x93\x89tR\x8c\x01nK\x03u.";

TEST(Checkpoint, WhatPythonsSaveWroteIsRead) {
  std::string bytes(kOwn, sizeof kOwn - 1);
  const size_t start = bytes.find("@SIZE@") + 6;
  const uint64_t size = bytes.size() - start;
  std::string head;
  for (int i = 0; i < 8; ++i) head += static_cast<char>(size >> (8 * i));
  // Its CRC-32, by zlib.crc32(length + pickle).
  const uint32_t sum = 0xd17fcf76;
  for (int i = 0; i < 4; ++i) head += static_cast<char>(sum >> (8 * i));
  bytes.replace(start - 6, 6, head);
  const Path path("own", bytes);
  const Value value = load(path.text);
  EXPECT_EQ(value["n"].to_int(), 3);
  EXPECT_EQ(value["w"].to_tensor()[1].item<float>(), 2);
  bytes.back() ^= 1;
  const Path damaged("own_damaged", bytes);
  EXPECT_NE(message_of([&] { load(damaged.text); }, ErrorKind::Value).find("the check sum"),
            std::string::npos);
}

TEST(Checkpoint, ListsAreIndexedByNumbersOfEveryType) {
  const Path path("list", "tenon-checkpoint-1\n\x80\x04](K\x05K\x06K\x07\x65.");
  const Value list = load(path.text);
  EXPECT_EQ(list[0].to_int(), 5);
  EXPECT_EQ(load(path.text)[2].to_int(), 7);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(list[i].to_int(), 5 + i);
  EXPECT_EQ(list[uint8_t{1}].to_int() + list[int64_t{1}].to_int() + list[size_t{1}].to_int(), 18);
  EXPECT_EQ(message_of([&] { (void)list[-1]; }, ErrorKind::Index),
            "Value: there is no element -1 in a list of 3");
  EXPECT_EQ(message_of([&] { (void)list[3u]; }, ErrorKind::Index),
            "Value: there is no element 3 in a list of 3");
  EXPECT_EQ(message_of([&] { (void)list["x"]; }, ErrorKind::Type),
            "Value: a dict is wanted, and this is a list");
}

}  // namespace
}  // namespace tenon
