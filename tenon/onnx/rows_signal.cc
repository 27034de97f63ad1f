// Windows and spectra. Transforms are products with a matrix of cosines and sines, in float64.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

constexpr double kTwoPi = 2 * std::numbers::pi;

/// a - b cos(t) + c cos(2 t), over one period.
void window(N& n, double a, double b, double c) {
  const int64_t size = n.integer(0);
  TENON_NODE_CHECK(n, size >= 0, Value, fmt::format("`size` is {}", size));
  const auto period = static_cast<double>(std::max<int64_t>(size - (n.flag("periodic", true) ? 0 : 1), 1));
  const Tensor t = mul(arange(size, TensorOptions(kFloat64)), Scalar(kTwoPi / period));
  const Tensor out = add(add(mul(cos(t), Scalar(-b)), Scalar(a)), mul(cos(mul(t, Scalar(2))), Scalar(c)));
  n.set(out.to(n.dtype("output_datatype").value_or(kFloat32)));
}
void hann(N& n) { window(n, 0.5, 0.5, 0); }
void hamming(N& n) { window(n, 25.0 / 46, 21.0 / 46, 0); }
void blackman(N& n) { window(n, 0.42, 0.5, 0.08); }

void mel_weights(N& n) {
  const int64_t bands = n.integer(0), length = n.integer(1), rate = n.integer(2);
  const double low = n.number(3), high = n.number(4);
  TENON_NODE_CHECK(
      n, bands > 0 && length > 0 && rate > 0 && 0 <= low && low <= high && std::isfinite(high), Value,
      fmt::format("{} bands from {} to {} Hz, of {} points at {} Hz", bands, low, high, length, rate));
  const int64_t rows = length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  // The point of the spectrum where each triangle begins: its peak is where the next one does.
  const auto point = [&](int64_t i) {
    const double at =
        mel(low) + static_cast<double>(i) * (mel(high) - mel(low)) / static_cast<double>(bands + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    return std::max(std::floor((static_cast<double>(length) + 1) * hertz / static_cast<double>(rate)), 0.0);
  };
  TENON_NODE_CHECK(
      n, point(bands + 1) <= static_cast<double>(rows), Value,
      fmt::format("a band ends at {} Hz, beyond a spectrum of {} points at {} Hz", high, length, rate));
  Tensor out = zeros({rows, bands}, TensorOptions(kFloat64));
  for (int64_t band = 0; band < bands; ++band) {
    const auto begin = static_cast<int64_t>(point(band)), peak = static_cast<int64_t>(point(band + 1)),
               end = static_cast<int64_t>(point(band + 2));
    double* const values = out.data_ptr<double>() + band;
    for (int64_t i = begin; i <= peak && i < rows; ++i)
      values[i * bands] =
          begin == peak ? 1 : static_cast<double>(i - begin) / static_cast<double>(peak - begin);
    for (int64_t i = peak; i < end && i < rows; ++i)
      values[i * bands] = static_cast<double>(end - i) / static_cast<double>(end - peak);
  }
  n.set(out.to(n.dtype("output_datatype").value_or(kFloat32)));
}

struct Transform {
  int64_t length;
  bool is_inverse, is_one_sided;
};
/// The matrix of a transform of `count` complex or real numbers (`parts` is 2 or 1) to `results` numbers of
/// `to` parts. Parts of a number are next to each other.
Tensor matrix_of(const Transform& of, int64_t count, int64_t parts, int64_t results, int64_t to) {
  Tensor out = empty({count * parts, results * to}, TensorOptions(kFloat64));
  double* value = out.data_ptr<double>();
  std::vector<double> cosines, sines;
  for (int64_t i = 0; i < of.length; ++i) {
    const double t = kTwoPi * static_cast<double>(i) / static_cast<double>(of.length);
    cosines.push_back(std::cos(t));
    sines.push_back(of.is_inverse ? std::sin(t) : -std::sin(t));
  }
  for (int64_t j = 0; j < count; ++j) {
    double factor = of.is_inverse ? 1 / static_cast<double>(of.length) : 1;
    // The other half of the spectrum is the conjugate.
    if (of.is_inverse && of.is_one_sided && j > 0 && 2 * j != of.length) factor *= 2;
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t k = 0; k < results; ++k) {
        const auto at = static_cast<size_t>(j * k % of.length);
        *value++ = factor * (part == 0 ? cosines[at] : -sines[at]);
        if (to == 2) *value++ = factor * (part == 0 ? sines[at] : cosines[at]);
      }
  }
  return out;
}
/// Of the numbers along `axis`, whose parts are the last dimension.
Tensor transformed(N& n, const Tensor& x, int64_t axis, const Transform& of) {
  const auto last = static_cast<int64_t>(x.sizes().size()) - 1;
  const int64_t parts = x.sizes()[static_cast<size_t>(last)];
  TENON_NODE_CHECK(n, axis < last && (parts == 1 || parts == 2), Shape,
                   fmt::format("along axis {} of an input of shape {}", axis, to_string(x.sizes())));
  constexpr int64_t kLongest = 4096;
  TENON_NODE_CHECK(n, 1 <= of.length && of.length <= kLongest, NotImplemented,
                   fmt::format("a transform of {} numbers, expected 1 to {}", of.length, kLongest));
  const int64_t half = of.length / 2 + 1;
  const bool is_real = of.is_inverse && of.is_one_sided;
  // Numbers after the first ones are left out, and those that are missing are zeros.
  const int64_t count = std::min(x.sizes()[static_cast<size_t>(axis)], is_real ? half : of.length);
  const int64_t results = of.is_one_sided && !of.is_inverse ? half : of.length, to = is_real ? 1 : 2;
  const Tensor rows = movedim(slice(x, axis, 0, count), axis, last - 1).to(kFloat64);
  Dims sizes = Dims(rows.sizes());
  Dims flat(std::span<const int64_t>(sizes.begin(), sizes.end() - 2));
  flat.push_back(count * parts);
  sizes[sizes.size() - 2] = results;
  sizes[sizes.size() - 1] = to;
  const Tensor out = matmul(rows.reshape(flat), matrix_of(of, count, parts, results, to)).reshape(sizes);
  return movedim(out, last - 1, axis).to(x.dtype());
}
void dft(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t given = n.opset() < 20 ? n.integer("axis", 1) : n.has(2) ? n.integer(2) : -2;
  const int64_t axis = n.axis(given, x.sizes().size()), size = x.sizes()[static_cast<size_t>(axis)];
  const bool is_inverse = n.flag("inverse", false), is_one_sided = n.flag("onesided", false);
  const int64_t length = is_inverse && is_one_sided ? 2 * (size - 1) : size;
  n.set(transformed(n, x, axis, {n.has(1) ? n.integer(1) : length, is_inverse, is_one_sided}));
}
void stft(N& n) {
  const Tensor& x = n.tensor(0);
  TENON_NODE_CHECK(n, x.sizes().size() == 3, Shape,
                   fmt::format("a signal of shape {}", to_string(x.sizes())));
  const Tensor window = n.optional(2);
  const int64_t size = x.sizes()[1], step = n.integer(1);
  const int64_t length = n.has(3) ? n.integer(3) : window.defined() ? window.numel() : size;
  const int64_t width = window.defined() ? window.numel() : length;
  TENON_NODE_CHECK(n, step > 0 && 0 < width && width <= length && length <= size, Value,
                   fmt::format("frames of {} elements every {}, a window of {}, a signal of {}", length, step,
                               width, size));
  const TensorOptions ints(kInt64);
  const Tensor first = arange(0, size - length + 1, step, ints).reshape({-1, 1});
  Tensor frames = tenon::index(x, std::vector{Tensor(), add(first, arange(width, ints))});
  if (window.defined()) frames = mul(frames, window.reshape({-1, 1}));
  n.set(transformed(n, frames, 2, {length, false, n.flag("onesided", true)}));
}

constexpr auto kSignalRows = std::to_array<Row>({
    {"BlackmanWindow", 17, blackman},
    {"DFT", 17, dft},
    {"HammingWindow", 17, hamming},
    {"HannWindow", 17, hann},
    {"MelWeightMatrix", 17, mel_weights},
    {"STFT", 17, stft},
});

}  // namespace

std::span<const Row> signal_rows() noexcept { return kSignalRows; }

}  // namespace tenon::onnx
