// Layers beside Linear. That they compute what Python's do, bit for bit, is tested in
// tests/integration/weights_in_cpp_test.py.
#include <gtest/gtest.h>

#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/nn.h"
#include "tenon/ops/factory/from_data.h"
#include "tests/nn/testing.h"

namespace tenon::nn {
namespace {

TEST(Conv2d, SizesAreOneNumberOrTwo) {
  Conv2d layer(4, 6, {3, 5}, {.stride = {2, 1}, .padding = {1, 2}, .groups = 2});
  EXPECT_EQ(layer.weight.sizes(), (Dims{6, 2, 3, 5}));
  EXPECT_EQ(layer(ones({7, 4, 9, 8})).sizes(), (Dims{7, 6, 5, 8}));
  EXPECT_EQ(Conv2d(1, 1, 3, {.stride = 2, .padding = 1})(ones({1, 9, 9})).sizes(), (Dims{1, 5, 5}));
}

TEST(Conv2d, ChannelsThatGroupsCannotDivideAreRefused) {
  EXPECT_EQ(message_of([] { Conv2d(4, 6, 3, {.groups = 4}); }),
            "Conv2d: 4 and 6 channels cannot be divided into 4 groups");
  EXPECT_EQ(message_of([] { Conv2d(4, 6, 3, {.groups = 0}); }),
            "Conv2d: 4 and 6 channels cannot be divided into 0 groups");
  EXPECT_EQ(message_of([] { Conv2d(-1, 6, 3); }), "Conv2d: channels must not be negative, got -1 and 6");
  EXPECT_EQ(message_of([] { Conv2d(1, 1, {3, 0}); }), "Conv2d: kernel_size must be positive, got [3, 0]");
}

TEST(BatchNorm2d, StateHasItsStatistics) {
  EXPECT_EQ(names_of(BatchNorm2d(2)), (std::vector<std::string>{"weight", "bias", "running_mean",
                                                                "running_var", "num_batches_tracked"}));
  EXPECT_EQ(names_of(BatchNorm2d(2, {.affine = false, .track_running_stats = false})),
            std::vector<std::string>{});
}

TEST(BatchNorm2d, WithoutMomentumStatisticsAreMeansOfAllBatches) {
  BatchNorm2d layer(1, {.momentum = std::nullopt});
  layer(full({2, 1, 1, 2}, 3.0));
  layer(full({2, 1, 1, 2}, 6.0));
  EXPECT_FLOAT_EQ(layer.running_mean.item<float>(), 4.5f);
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 2);
  layer.eval();
  layer(full({2, 1, 1, 2}, 9.0));
  EXPECT_FLOAT_EQ(layer.running_mean.item<float>(), 4.5f);
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 2);
}

TEST(BatchNorm2d, ImagesOfManyElementsAreExpected) {
  BatchNorm2d layer(2);
  EXPECT_EQ(message_of([&] {
              layer(ones({3, 2}));
            }),
            "BatchNorm2d: expected input [N, C, H, W], got float32 [3, 2]");
  EXPECT_EQ(message_of([&] {
              layer(ones({1, 2, 1, 1}));
            }),
            "BatchNorm2d: training needs more than one value for each channel, got float32 [1, 2, 1, 1]");
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 0);
}

TEST(LayerNorm, NormalisesTrailingDimensions) {
  LayerNorm layer({2, 2}, {.eps = 0});
  const Tensor y = layer(tensor({1.0f, 1.0f, 3.0f, 3.0f}).reshape({1, 2, 2}));
  EXPECT_FLOAT_EQ(y.select(1, 0).sum().item<float>(), -2);
  EXPECT_EQ(names_of(LayerNorm(4, {.bias = false})), std::vector<std::string>{"weight"});
}

TEST(Embedding, APaddingRowIsZeroAndGetsNoGradient) {
  Embedding layer(4, 3, {.padding_idx = -1});
  EXPECT_TRUE(equal(layer.weight.detach().select(0, 3), zeros({3})));
  layer(tensor(std::vector<int64_t>{3, 1, 3})).sum().backward();
  EXPECT_TRUE(equal(layer.weight.grad().select(0, 3), zeros({3})));
  EXPECT_TRUE(equal(layer.weight.grad().select(0, 1), ones({3})));
  EXPECT_EQ(message_of([] { Embedding(4, 3, {.padding_idx = 4}); }),
            "Embedding: padding_idx 4 is out of range for 4 embeddings");
}

TEST(Dropout, DropsWhileTrainingAlone) {
  manual_seed(0);
  Dropout layer(0.5);
  const Tensor x = ones({1000});
  const double kept = layer(x).sum().item().to_double();  // of twos
  EXPECT_GT(kept, 800);
  EXPECT_LT(kept, 1200);
  layer.eval();
  EXPECT_TRUE(equal(layer(x), x));
}

TEST(MaxPool2d, StepsByItsKernelUnlessToldOtherwise) {
  EXPECT_EQ(MaxPool2d(2)(ones({1, 3, 6, 4})).sizes(), (Dims{1, 3, 3, 2}));
  EXPECT_EQ(MaxPool2d(3, {.stride = 1, .padding = 1})(ones({1, 3, 6, 4})).sizes(), (Dims{1, 3, 6, 4}));
}

template <class... M>
struct Wrapped : Module {
  Wrapped() { (register_module("inner", M()), ...); }
  Tensor forward(const Tensor& x) override { return x; }
};

struct Named : Module {
  Linear& head = register_module("head", Linear(2, 3, {.bias = false}));
  Sequential& tail = register_module("tail", Sequential{ReLU(), Wrapped<>()});
  Tensor forward(const Tensor& x) override { return tail(head(x)); }
  std::string extra_repr() const override { return "width=3"; }
};

std::string printed(const auto& module) {
  std::ostringstream out;
  out << module;
  return out.str();
}

TEST(PrintedModule, IsTheTreeThatPythonPrints) {
  EXPECT_EQ(printed(Sequential{Linear(64, 128), ReLU(), Linear(128, 10)}),
            "Sequential(\n"
            "  (0): Linear(in_features=64, out_features=128, bias=True)\n"
            "  (1): ReLU()\n"
            "  (2): Linear(in_features=128, out_features=10, bias=True)\n"
            ")");
  EXPECT_EQ(printed(Named()),
            "Named(\n"
            "  width=3\n"
            "  (head): Linear(in_features=2, out_features=3, bias=False)\n"
            "  (tail): Sequential(\n"
            "    (0): ReLU()\n"
            "    (1): Wrapped<>()\n"
            "  )\n"
            ")");
}

TEST(PrintedModule, KeepsItsClassBehindAReference) {
  const Sequential model{Linear(1, 2), Tanh()};
  EXPECT_EQ(printed(model[1]), "Tanh()");
  const Tanh alone;
  const Module& unknown = alone;
  EXPECT_EQ(printed(unknown), "Module()");
}

TEST(PrintedModule, HasTheOptionsOfEachLayer) {
  EXPECT_EQ(printed(Flatten()), "Flatten(start_dim=1, end_dim=-1)");
  EXPECT_EQ(printed(Dropout(0.25)), "Dropout(p=0.25, inplace=False)");
  EXPECT_EQ(printed(Dropout(1)), "Dropout(p=1.0, inplace=False)");
  EXPECT_EQ(printed(Conv2d(4, 8, 3)), "Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1))");
  EXPECT_EQ(printed(Conv2d(4, 8, {3, 5},
                           {.stride = 2, .padding = {1, 2}, .dilation = 2, .groups = 2, .bias = false})),
            "Conv2d(4, 8, kernel_size=(3, 5), stride=(2, 2), padding=(1, 2), dilation=(2, 2), groups=2, "
            "bias=False)");
  EXPECT_EQ(printed(LayerNorm(16)), "LayerNorm((16,), eps=1e-05, elementwise_affine=True, bias=True)");
  EXPECT_EQ(printed(LayerNorm({2, 3}, {.elementwise_affine = false})),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=False, bias=False)");
  EXPECT_EQ(printed(BatchNorm2d(3)),
            "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)");
  EXPECT_EQ(
      printed(BatchNorm2d(3, {.momentum = std::nullopt, .affine = false, .track_running_stats = false})),
      "BatchNorm2d(3, eps=1e-05, momentum=None, affine=False, bias=False, track_running_stats=False)");
  EXPECT_EQ(printed(MaxPool2d(2)),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  EXPECT_EQ(printed(MaxPool2d({3, 2}, {.stride = 1, .ceil_mode = true})),
            "MaxPool2d(kernel_size=(3, 2), stride=1, padding=0, dilation=1, ceil_mode=True)");
  EXPECT_EQ(printed(Embedding(10, 3)), "Embedding(10, 3)");
  EXPECT_EQ(printed(Embedding(10, 3, {.padding_idx = -1})), "Embedding(10, 3, padding_idx=9)");
}

}  // namespace
}  // namespace tenon::nn
