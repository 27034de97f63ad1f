// RNN, LSTM, GRU, their cells and packed sequences. That they compute what Python's do, bit for bit, is
// tested in tests/integration/weights_in_cpp_test.py; that those compute what the definition says, in
// tests/nn/recurrent_test.py.
#include <gtest/gtest.h>

#include <sstream>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/nn.h"
#include "tenon/ops/factory/from_data.h"
#include "tests/nn/testing.h"

namespace tenon::nn {
namespace {

bool same(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes() && a.equal(b); }

TEST(Lstm, StateHasPyTorchsNames) {
  const LSTM layer(3, 4, {.bidirectional = true, .proj_size = 2});
  EXPECT_EQ(names_of(layer),
            (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                      "weight_hr_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                                      "bias_ih_l0_reverse", "bias_hh_l0_reverse", "weight_hr_l0_reverse"}));
  EXPECT_EQ(names_of(GRU(3, 4, {.num_layers = 2, .bias = false})),
            (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "weight_ih_l1", "weight_hh_l1"}));
  EXPECT_EQ(names_of(GRUCell(3, 4)),
            (std::vector<std::string>{"weight_ih", "weight_hh", "bias_ih", "bias_hh"}));
}

TEST(Lstm, PrintsAsInPython) {
  std::ostringstream text;
  text << LSTM(3, 4, {.num_layers = 2, .bias = false, .batch_first = true, .dropout = 0.25, .proj_size = 2})
       << "\n"
       << RNNCell(3, 4, {.nonlinearity = "relu"});
  EXPECT_EQ(text.str(),
            "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.25)\n"
            "RNNCell(3, 4, nonlinearity=relu)");
}

TEST(Lstm, ShapesOfResults) {
  LSTM layer(3, 5, {.num_layers = 2, .batch_first = true, .bidirectional = true, .proj_size = 4});
  const auto [output, last] = layer.forward(randn({2, 7, 3}), {});
  EXPECT_EQ(output.sizes(), (Dims{2, 7, 8}));
  EXPECT_EQ(last.h.sizes(), (Dims{4, 2, 4}));
  EXPECT_EQ(last.c.sizes(), (Dims{4, 2, 5}));
  const auto [one, its_last] = layer.forward(randn({7, 3}), {});
  EXPECT_EQ(one.sizes(), (Dims{7, 8}));
  EXPECT_EQ(its_last.c.sizes(), (Dims{4, 5}));
  EXPECT_EQ(layer(randn({2, 7, 3})).sizes(), (Dims{2, 7, 8}));
}

TEST(Gru, ALayerRunsItsCellAtEachStep) {
  GRU layer(3, 4);
  GRUCell cell(3, 4);
  StateDict state;
  for (const auto& [name, value] : layer.state_dict()) state.set(name.substr(0, name.size() - 3), value);
  cell.load_state_dict(state);
  const Tensor x = randn({5, 2, 3});
  const auto [output, last] = layer.forward(x, {});
  Tensor h;
  for (int64_t t = 0; t < 5; ++t) {
    h = cell.forward(x.select(0, t), h);
    EXPECT_TRUE(same(h, output.select(0, t)));
  }
  EXPECT_TRUE(same(h, last.squeeze(0)));
}

TEST(Rnn, GradientsReachAllWeights) {
  RNN layer(3, 4, {.num_layers = 2, .bidirectional = true, .nonlinearity = "relu"});
  layer(randn({6, 2, 3})).sum().backward();
  for (const Tensor& p : layer.parameters()) EXPECT_TRUE(p.grad().defined());
}

TEST(PackedSequence, HasTheStepsOfAllSequencesOneAfterTheOther) {
  const Tensor padded = tensor({1, 2, 0, 3, 4, 5}).reshape({2, 3});
  const int64_t lengths[] = {2, 3};
  const PackedSequence packed = pack_padded_sequence(padded, lengths, true, false);
  EXPECT_TRUE(same(packed.data, tensor({3, 1, 4, 2, 5})));
  EXPECT_TRUE(same(packed.batch_sizes, tensor(std::vector<int64_t>{2, 2, 1})));
  const auto [again, counts] = pad_packed_sequence(packed, true);
  EXPECT_TRUE(same(again, padded));
  EXPECT_TRUE(same(counts, tensor(std::vector<int64_t>{2, 3})));
}

TEST(PackedSequence, LayersComputeEachSequenceByItself) {
  LSTM layer(3, 4, {.num_layers = 2, .bidirectional = true, .dtype = DType::Float64});
  const Tensor x = randn({5, 3, 3}, DType::Float64);
  const int64_t lengths[] = {2, 5, 3};
  const auto [packed, last] = layer.forward(pack_padded_sequence(x, lengths, false, false));
  const auto [padded, counts] = pad_packed_sequence(packed);
  for (int64_t n = 0; n < 3; ++n) {
    const auto [output, its_last] = layer.forward(x.select(1, n).narrow(0, 0, lengths[n]), {});
    EXPECT_TRUE(same(padded.select(1, n).narrow(0, 0, lengths[n]), output));
    EXPECT_TRUE(same(last.h.select(1, n), its_last.h));
    EXPECT_TRUE(same(last.c.select(1, n), its_last.c));
  }
}

TEST(PackedSequence, LengthsThatDoNotFitAreRefused) {
  const auto pack = [](std::vector<int64_t> lengths) {
    return message_of([&] { pack_padded_sequence(zeros({4, 2, 3}), lengths); });
  };
  EXPECT_EQ(pack({4}), "pack_padded_sequence: expected `lengths` of the batch's 2 sequences, got 1");
  EXPECT_EQ(pack({5, 1}),
            "pack_padded_sequence: expected `lengths` between 1 and the 4 steps of `input` [4, 2, 3], got 5");
  EXPECT_EQ(pack({1, 4}),
            "pack_padded_sequence: `lengths` must be in decreasing order; sequences in another order need "
            "enforce_sorted = false");
}

TEST(Recurrent, WrongArgumentsAreRefused) {
  EXPECT_EQ(message_of([] { GRU(3, 0); }),
            "GRU: input_size, hidden_size and num_layers must be positive, got 3, 0 and 1");
  EXPECT_EQ(message_of([] { GRU(3, 4, {.proj_size = 2}); }),
            "GRU: proj_size is LSTM's, and less than hidden_size 4, got 2");
  EXPECT_EQ(message_of([] { LSTM(3, 4, {.dropout = 2}); }), "LSTM: dropout must be between 0 and 1, got 2.0");
  EXPECT_EQ(message_of([] { RNN(3, 4, {.nonlinearity = "sin"}); }),
            "RNN: unknown nonlinearity \"sin\"; expected \"tanh\" or \"relu\"");
  EXPECT_EQ(message_of([] {
              GRU(3, 4)(zeros({2, 2}));
            }),
            "GRU: expected input [steps, batch, 3], got [2, 2]");
  EXPECT_EQ(message_of([] { GRU(3, 4)(zeros({3})); }), "GRU: expected input [steps, batch, 3], got [3]");
}

}  // namespace
}  // namespace tenon::nn
