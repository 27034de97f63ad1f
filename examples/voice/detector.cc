#include "detector.h"

#include <tenon/tenon.h>

#include <algorithm>
#include <string>

using tenon::Tensor;

std::pair<Tensor, Tensor> detect(const tenon::onnx::Model& model, const Tensor& input, const Tensor& state) {
  std::vector<Tensor> inputs;
  for (const tenon::onnx::Port& port : model.inputs()) {
    if (port.name == "input") {
      inputs.push_back(input);
    } else if (port.name == "state") {
      inputs.push_back(state);
    } else if (port.name == "sr") {
      inputs.push_back(tenon::full({}, kRate, tenon::kInt64));
    } else {
      throw tenon::Error(tenon::ErrorKind::Value,
                         "the model takes '" + port.name + "', expected 'input', 'state' and 'sr'");
    }
  }
  std::vector<Tensor> outputs = model.run(inputs);
  const int64_t n = input.size(0);
  if (outputs.size() != 2 || !(outputs[0].sizes() == tenon::IntArrayRef({n, 1})) ||
      !(outputs[1].sizes() == tenon::IntArrayRef({2, n, kState}))) {
    throw tenon::Error(
        tenon::ErrorKind::Value,
        "the model returns other shapes, expected a probability [N, 1] and a state [2, N, 128]");
  }
  return {outputs[0], outputs[1]};
}

Detector::Detector(const tenon::onnx::Model& model)
    : run_({tenon::zeros({1, kInput}), tenon::zeros({2, 1, kState})}, [&](std::span<const Tensor> inputs) {
        const auto [probability, state] = detect(model, inputs[0], inputs[1]);
        return std::vector{probability, state};
      }) {}

float Detector::operator()(std::span<const float> chunk) {
  std::copy(input_.end() - kContext, input_.end(), input_.begin());
  std::copy_n(chunk.begin(), kChunk, input_.begin() + kContext);
  const auto address = [](const auto& memory) { return reinterpret_cast<tenon::Address>(&memory); };
  const std::array from{address(input_), address(states_[last_])};
  last_ = 1 - last_;
  const std::array to{address(probability_), address(states_[last_])};
  run_.execute(from, to);
  return probability_;
}

void Detector::reset() {
  input_.fill(0);
  states_[last_].fill(0);
}

std::vector<float> probabilities_of(Detector& detector, std::span<const float> samples) {
  std::vector<float> probabilities;
  detector.reset();
  for_each_chunk(samples, [&](std::span<const float> chunk) { probabilities.push_back(detector(chunk)); });
  return probabilities;
}
