// Detector: a network of an ONNX file that tells speech from other sounds, chunk by chunk.
// The file's inputs are `input` [N, 576] (64 samples that came before, then 512 new ones), `state` [2, N,
// 128] and, in some files, `sr` (int64: samples a second); its outputs are the probability of speech [N, 1]
// and the next state. The ONNX files of the package silero-vad are like that.
#pragma once

#include <tenon/builder/inference.h>
#include <tenon/onnx.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "recording.h"

constexpr int kContext = 64;  ///< Samples before a chunk.
constexpr int kInput = kContext + kChunk;
constexpr int kState = 128;

/// The probability [N, 1] and the next state [2, N, 128] of N recordings at once, with derivatives.
/// Throws tenon::Error{Value} for a model with other inputs or outputs.
std::pair<tenon::Tensor, tenon::Tensor> detect(const tenon::onnx::Model& model, const tenon::Tensor& input,
                                               const tenon::Tensor& state);

class Detector {
 public:
  explicit Detector(const tenon::onnx::Model& model);
  Detector(const Detector&) = delete;  // a plan is given addresses of its members
  Detector& operator=(const Detector&) = delete;

  /// The probability of speech in the next kChunk samples. Makes no tensors: the plan reads and writes
  /// members.
  float operator()(std::span<const float> chunk);
  /// Before the first chunk of a recording.
  void reset();

  /// What the plan computes.
  std::string report() const { return run_.report(); }

 private:
  std::array<float, kInput> input_{};
  std::array<std::array<float, 2 * kState>, 2> states_{};  // the last one and the next one, by turns
  size_t last_ = 0;
  float probability_ = 0;
  tenon::Inference run_;
};

/// Of all chunks of a recording; the last one is filled up with silence.
std::vector<float> probabilities_of(Detector& detector, std::span<const float> samples);
/// Calls `f` with each chunk of a recording.
template <class F>
void for_each_chunk(std::span<const float> samples, const F& f) {
  std::array<float, kChunk> last{};
  for (size_t at = 0; at < samples.size(); at += kChunk) {
    const auto chunk = samples.subspan(at, std::min<size_t>(kChunk, samples.size() - at));
    if (chunk.size() == kChunk) {
      f(chunk);
    } else {
      std::copy(chunk.begin(), chunk.end(), last.begin());
      f(std::span<const float>(last));
    }
  }
}
