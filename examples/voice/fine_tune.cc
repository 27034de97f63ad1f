// Trains the network of an ONNX file further, on recordings that are computed, and saves its weights:
//   fine_tune MODEL.onnx WEIGHTS.safetensors [--steps N] [--rate R] [--recording FILE.wav]
// `speech MODEL.onnx FILE.wav --weights WEIGHTS.safetensors` runs it.
#include <tenon/io.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "detector.h"
#include "recording.h"

namespace {

using tenon::Tensor;

constexpr int kBatch = 16;   ///< Recordings a step.
constexpr int kLength = 64;  ///< Their chunks.
constexpr int kUnroll = 16;  ///< Chunks that a derivative goes through.

/// Recordings of the same length: the inputs of each of their chunks [chunks, N, 576], and whether it is
/// speech [chunks, N, 1].
struct Batch {
  Tensor inputs, is_speech;
};

Batch make_batch(uint32_t first_seed) {
  std::vector<float> inputs(size_t{kLength} * kBatch * kInput), labels(size_t{kLength} * kBatch);
  for (size_t n = 0; n < kBatch; ++n) {
    const Recording made = make_recording(first_seed + static_cast<uint32_t>(n), kLength);
    for (size_t t = 0; t < kLength; ++t) {
      const size_t place = t * kBatch + n, context = t == 0 ? 0 : kContext;
      const float* const chunk = made.samples.data() + t * kChunk;
      std::copy(chunk - context, chunk + kChunk,
                inputs.data() + place * kInput + static_cast<size_t>(kContext) - context);
      labels[place] = made.is_speech[t] ? 1.0f : 0.0f;
    }
  }
  return {tenon::tensor(inputs).view({kLength, kBatch, kInput}),
          tenon::tensor(labels).view({kLength, kBatch, 1})};
}

/// The mean cross entropy of the chunks from `begin`, which moves `state` on.
Tensor loss_of(const tenon::onnx::Model& model, const Batch& batch, int begin, int count, Tensor& state) {
  std::vector<Tensor> probabilities;
  for (int t = begin; t < begin + count; ++t) {
    auto [probability, next] = detect(model, batch.inputs.select(0, t), state);
    probabilities.push_back(probability);
    state = next;
  }
  return tenon::binary_cross_entropy(tenon::stack(probabilities), batch.is_speech.narrow(0, begin, count));
}

Tensor first_state() { return tenon::zeros({2, kBatch, kState}); }

/// The loss of recordings that are not trained on.
float loss_of(const tenon::onnx::Model& model, const Batch& batch) {
  const tenon::NoGradGuard no_grad;
  Tensor state = first_state();
  return loss_of(model, batch, 0, kLength, state).item<float>();
}

struct Options {
  std::vector<std::string> files;
  std::string recording;
  int steps = 20;
  double rate = 2e-4;
};

template <class T>
T number(const std::string& flag, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TENON_CHECK(error == std::errc() && end == text.data() + text.size() && value >= 0, Value,
              flag + " needs a number that is not negative, got '" + text + "'");
  return value;
}

Options parse(int argc, char** argv) {
  const std::string usage =
      "usage: fine_tune MODEL.onnx WEIGHTS.safetensors [--steps N] [--rate R] [--recording FILE.wav]";
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (!flag.starts_with("--")) {
      options.files.push_back(flag);
      continue;
    }
    ++i;
    if (flag == "--steps")
      options.steps = number<int>(flag, value);
    else if (flag == "--rate")
      options.rate = number<double>(flag, value);
    else if (flag == "--recording")
      options.recording = value;
    else
      throw tenon::Error(tenon::ErrorKind::Value, "unknown option " + flag + "; " + usage);
  }
  TENON_CHECK(options.files.size() == 2, Value, usage);
  return options;
}

void run(const Options& options) {
  tenon::set_num_threads(1);  // operators on one chunk are too little work to share
  tenon::onnx::Model model = tenon::onnx::load(options.files[0]);
  tenon::optim::AdamW optimizer(model.parameters(), {.lr = options.rate});
  const Batch held_out = make_batch(1);
  std::printf("loss before: %.4f\n", static_cast<double>(loss_of(model, held_out)));
  for (int step = 0; step < options.steps; ++step) {
    const Batch batch = make_batch(1000 + static_cast<uint32_t>(step) * kBatch);
    Tensor state = first_state();
    double sum = 0;
    for (int begin = 0; begin < kLength; begin += kUnroll) {
      const Tensor loss = loss_of(model, batch, begin, kUnroll, state);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      state = state.detach();
      sum += loss.item<double>();
    }
    if (step % 10 == 9) std::fprintf(stderr, "step %3d  loss %.4f\n", step + 1, sum / (kLength / kUnroll));
  }
  const float after = loss_of(model, held_out);
  std::printf("loss after:  %.4f\n", static_cast<double>(after));

  tenon::save(model.state_dict(), options.files[1]);
  tenon::onnx::Model loaded = tenon::onnx::load(options.files[0]);
  loaded.load_state_dict(tenon::load(options.files[1]));
  std::printf("loaded again: %s\n", loss_of(loaded, held_out) == after ? "the same loss" : "ANOTHER LOSS");
  if (!options.recording.empty()) write_wav(options.recording, make_recording(1, 300).samples);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fine_tune: %s\n", error.what());
    return 1;
  }
}
