// ONNX models in C++: what Python's tests try, from bytes that are written down here.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "tenon/builder/inference.h"
#include "tenon/core/error.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/functions.h"
#include "tenon/onnx.h"
#include "tenon/optim.h"

namespace tenon {
namespace {

// Fields of protocol buffers.
std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>(value % 128 + 128);
  return out + static_cast<char>(value);
}
std::string number(uint64_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(uint64_t field, const std::string& data) {
  return varint(field << 3 | 2) + varint(data.size()) + data;
}
std::string weight(const std::string& name, const std::vector<int>& dims, const std::vector<float>& values) {
  std::string out, data(values.size() * sizeof(float), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  for (const int dim : dims) out += number(1, static_cast<uint64_t>(dim));
  return out + number(2, 1) + bytes(8, name) + bytes(9, data);
}
std::string port(const std::string& name, const std::vector<int>& dims) {
  std::string shape;
  for (const int dim : dims)
    shape += bytes(1, dim > 0 ? number(1, static_cast<uint64_t>(dim)) : bytes(2, "n"));
  return bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));
}
std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string out;
  for (const std::string& input : inputs) out += bytes(1, input);
  return out + bytes(2, output) + bytes(3, "the " + op) + bytes(4, op) + attributes;
}
/// y = relu(x @ w.T + b)
std::string model() {
  const std::string turned = bytes(5, bytes(1, "transB") + number(3, 1) + number(20, 2));
  const std::string graph =
      bytes(1, node("Gemm", {"x", "w", "b"}, "h", turned)) + bytes(1, node("Relu", {"h"}, "y")) +
      bytes(5, weight("w", {2, 3}, {1, 2, 3, -1, -2, -3})) + bytes(5, weight("b", {2}, {10, 20}));
  const std::string all = graph + bytes(11, port("x", {0, 3})) + bytes(12, port("y", {0, 2}));
  return number(1, 8) + bytes(7, all) + bytes(8, number(2, 17));
}
onnx::Model load(const std::string& data) { return onnx::load(std::as_bytes(std::span(data))); }

TEST(OnnxModel, ComputesAndHasTheWeightsOfItsFile) {
  onnx::Model net = load(model());
  const Tensor y = net(ones({1, 3}));
  EXPECT_EQ(y.select(0, 0).select(0, 0).item<float>(), 16.0f);
  EXPECT_EQ(y.select(0, 0).select(0, 1).item<float>(), 14.0f);
  ASSERT_EQ(net.named_parameters().size(), 2u);
  EXPECT_EQ(net.named_parameters()[0].first, "w");
  EXPECT_EQ(net.inputs()[0].text(), "float32[n, 3]");
  EXPECT_NE(net.repr().find("x: float32[n, 3] -> y: float32[n, 2]"), std::string::npos) << net.repr();
}

TEST(OnnxModel, Trains) {
  onnx::Model net = load(model());
  optim::SGD optimizer(net.parameters(), {.lr = 0.5});
  sum(net(ones({1, 3}))).backward();
  optimizer.step();
  const StateDict state = net.state_dict();
  EXPECT_EQ(state.find("b")->select(0, 0).item<float>(), 9.5f);
  EXPECT_EQ(state.find("w")->select(0, 0).select(0, 0).item<float>(), 0.5f);
}

TEST(OnnxModel, RunsAsAPlan) {
  onnx::Model net = load(model());
  const NoGradGuard no_grad;
  const Tensor x = randn({4, 3});
  const Inference run({x}, [&](std::span<const Tensor> inputs) { return net.run(inputs); }, {.exact = true});
  EXPECT_TRUE(equal(run({x})[0], net(x)));
}

TEST(OnnxModel, RefusesWhatItCannotRun) {
  const auto message = [](const std::string& data, const std::vector<Tensor>& inputs) {
    try {
      load(data).run(inputs);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("no model", {}).find("it is no ONNX model"), std::string::npos)
      << message("no model", {});
  std::string unknown = model();
  unknown.replace(unknown.find("Relu"), 4, "Rulu");
  unknown.replace(unknown.rfind("Relu"), 4, "Rulu");
  EXPECT_NE(message(unknown, {}).find("Rulu (version 17, 1 node"), std::string::npos) << message(unknown, {});
  EXPECT_NE(message(model(), {ones({3})}).find("input 'x' is of shape [3], expected float32[n, 3]"),
            std::string::npos);
  EXPECT_EQ(onnx::contents(std::as_bytes(std::span(unknown))).missing.size(), 1u);
}

TEST(OnnxModel, IsSavedWithTheNamesOfItsWeights) {
  const onnx::Model net = load(model());
  const Tensor x = randn({4, 3});
  const auto trace = [&](const Tensor& like) {
    return Inference({like}, [&](std::span<const Tensor> inputs) { return net.run(inputs); },
                     {.exact = true});
  };
  const Inference first = trace(x), doubled = trace(zeros({8, 3}));
  const std::array<const Inference*, 2> traces{&first, &doubled};
  const std::string path = testing::TempDir() + "saved.onnx";
  onnx::SaveOptions options{.input_names = {"x"}, .output_names = {"y"}, .weights = net.named_parameters()};
  options.dynamic_axes.push_back({0, 0, "batch"});
  onnx::save(traces, path, options);
  onnx::Model again = onnx::load(path);
  EXPECT_EQ(again.inputs()[0].text(), "float32[batch, 3]");
  EXPECT_EQ(again.named_parameters()[0].first, net.named_parameters()[0].first);
  const NoGradGuard no_grad;
  EXPECT_TRUE(equal(again(x), first({x})[0]));
  options.opset = 17;
  EXPECT_THROW(onnx::save(first, path, options), Error);
}

}  // namespace
}  // namespace tenon
