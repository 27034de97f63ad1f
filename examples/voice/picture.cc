#include "picture.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>

#include "recording.h"

namespace {

constexpr double kLeft = 60, kRight = 940, kWidth = 960, kHeight = 330;
constexpr size_t kMostPoints = 1000;
constexpr double kQuietest = -60;  // dB

/// A panel of the picture: where values from `bottom` to `top` are drawn.
struct Panel {
  double y0, y1;  // of `bottom` and `top`
  double bottom, top;
  double y(double value) const {
    return y0 + (y1 - y0) * (std::clamp(value, bottom, top) - bottom) / (top - bottom);
  }
};
constexpr Panel kProbability{160, 40, 0, 1}, kLoudness{290, 190, kQuietest, 0};

class Svg {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_ += line;
  }
  void label(double x, double y, const char* anchor, const std::string& text) {
    add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"#7d7d7d\" font-size=\"13\">%s</text>\n", x, y,
        anchor, text.c_str());
  }
  void line(const Panel& panel, double value, const char* more = "") {
    add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#7d7d7d\" "
        "stroke-opacity=\"0.35\"%s/>\n",
        kLeft, panel.y(value), kRight, panel.y(value), more);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// 1, 2 or 5 times a power of ten: about eight of them in `seconds`.
double tick_of(double seconds) {
  const double power = std::pow(10, std::floor(std::log10(seconds / 8)));
  for (const double times : {1.0, 2.0, 5.0})
    if (times * power >= seconds / 8) return times * power;
  return 10 * power;
}

double loudness(std::span<const float> samples) {
  double sum = 0;
  for (const float sample : samples) sum += static_cast<double>(sample) * sample;
  return 10 * std::log10(sum / static_cast<double>(samples.size()) + 1e-12);
}

}  // namespace

void draw(const std::string& path, std::span<const float> samples, std::span<const float> probabilities,
          std::span<const Segment> segments, const SegmentOptions& options) {
  const auto length = static_cast<double>(samples.size());
  const auto x = [&](double sample) { return kLeft + (kRight - kLeft) * sample / length; };
  Svg svg;
  svg.add(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"system-ui, sans-serif\">\n<title>Speech in a recording</title>\n",
      kWidth, kHeight, kWidth, kHeight);
  for (const Segment& segment : segments) {
    const double left = x(static_cast<double>(segment.begin)), right = x(static_cast<double>(segment.end));
    svg.add(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#c28a00\" opacity=\"0.15\"/>\n",
        left, kProbability.y1, right - left, kLoudness.y0 - kProbability.y1);
  }
  svg.label(kLeft, 24, "start", "Probability of speech; shaded: what counts as speech");
  svg.label(kLeft, 182, "start", "Loudness in dB");
  for (const double value : {0.0, 1.0}) svg.line(kProbability, value);
  for (const double value : {options.enter, options.leave})
    svg.line(kProbability, value, " stroke-dasharray=\"4 4\"");
  for (const double value : {0.0, 0.5, 1.0}) {
    svg.label(kLeft - 8, kProbability.y(value) + 4, "end", value == 0.5 ? "0.5" : value == 0 ? "0" : "1");
  }
  for (const double value : {kQuietest, kQuietest / 2, 0.0}) {
    svg.line(kLoudness, value);
    svg.label(kLeft - 8, kLoudness.y(value) + 4, "end", std::to_string(std::lround(value)));
  }

  // Neighbouring chunks share a point where the recording is long: the largest of each value.
  const size_t each = probabilities.size() / kMostPoints + 1;
  std::string curve, area;
  const auto point = [](std::string& points, double px, double py) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f,%.1f ", px, py);
    points += text;
  };
  for (size_t i = 0; i < probabilities.size(); i += each) {
    const auto group = probabilities.subspan(i, std::min(each, probabilities.size() - i));
    const size_t at = i * kChunk;
    const auto heard = samples.subspan(at, std::min(each * kChunk, samples.size() - at));
    const double middle = x(static_cast<double>(at) + static_cast<double>(heard.size()) / 2);
    point(curve, middle, kProbability.y(*std::max_element(group.begin(), group.end())));
    point(area, middle, kLoudness.y(loudness(heard)));
  }
  svg.add("<polygon fill=\"#3b82d6\" fill-opacity=\"0.5\" points=\"");
  std::string all = svg.text();
  point(all, kLeft, kLoudness.y0);
  all += area;
  point(all, kRight, kLoudness.y0);
  all +=
      "\"/>\n<polyline fill=\"none\" stroke=\"#c28a00\" stroke-width=\"2\" stroke-linejoin=\"round\" "
      "points=\"" +
      curve + "\"/>\n";

  Svg axis;
  const double seconds = length / kRate, tick = tick_of(seconds);
  for (int i = 0; i * tick <= seconds; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", i * tick);
    axis.label(x(i * tick * kRate), 310, "middle", text);
  }
  std::ofstream file(path);
  if (!(file << all << axis.text() << "</svg>\n")) {
    throw tenon::Error(tenon::ErrorKind::Value, path + ": cannot be written");
  }
}
