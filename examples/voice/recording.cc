#include "recording.h"

#include <tenon/tenon.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numbers>
#include <random>
#include <string_view>

static_assert(std::endian::native == std::endian::little, "WAV files are little-endian");

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw tenon::Error(tenon::ErrorKind::Value, path + ": " + what);
}

/// The number of type T at `at`, or 0 where the text ends before it.
template <class T>
T number_at(std::string_view text, size_t at) {
  T value = 0;
  if (at + sizeof(T) <= text.size()) std::memcpy(&value, text.data() + at, sizeof(T));
  return value;
}

void check_format(const std::string& path, std::string_view format) {
  const auto expect = [&](const char* what, uint32_t given, uint32_t expected) {
    if (given != expected) {
      fail(path, std::string(what) + " " + std::to_string(given) + ", expected " + std::to_string(expected) +
                     ": convert it to 16-bit PCM, mono, 16000 Hz");
    }
  };
  const auto encoding = number_at<uint16_t>(format, 0);
  constexpr uint16_t kExtensible = 0xfffe;  // the encoding follows
  expect("encoding", encoding == kExtensible ? number_at<uint16_t>(format, 24) : encoding, 1);
  expect("channels", number_at<uint16_t>(format, 2), 1);
  expect("samples a second", number_at<uint32_t>(format, 4), kRate);
  expect("bits a sample", number_at<uint16_t>(format, 14), 16);
}

}  // namespace

std::vector<float> read_wav(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be opened");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string_view all = bytes;
  if (all.substr(0, 4) != "RIFF" || all.size() < 12 || all.substr(8, 4) != "WAVE")
    fail(path, "is no WAV file");

  bool has_format = false;
  for (size_t at = 12; at + 8 <= all.size();) {
    const std::string_view name = all.substr(at, 4);
    const auto length = number_at<uint32_t>(all, at + 4);
    const std::string_view body = all.substr(at + 8, length);
    if (name == "fmt ") {
      check_format(path, body);
      has_format = true;
    } else if (name == "data") {
      if (!has_format) fail(path, "has samples before their format");
      // A program that wrote to a pipe may have written no length, or too large a one.
      std::vector<float> samples(body.size() / 2);
      for (size_t i = 0; i < samples.size(); ++i) samples[i] = number_at<int16_t>(body, 2 * i) / 32768.0f;
      if (samples.empty()) fail(path, "has no samples");
      return samples;
    }
    at += 8 + size_t{length} + length % 2;
  }
  fail(path, "has no samples");
}

void write_wav(const std::string& path, const std::vector<float>& samples) {
  std::string bytes;
  const auto add = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto length = static_cast<uint32_t>(2 * samples.size());
  bytes += "RIFF";
  add(uint32_t{36} + length);
  bytes += "WAVEfmt ";
  add(uint32_t{16});
  add(uint16_t{1});  // PCM
  add(uint16_t{1});  // channels
  add(uint32_t{kRate});
  add(uint32_t{2 * kRate});  // bytes a second
  add(uint16_t{2});          // bytes a sample
  add(uint16_t{16});         // bits a sample
  bytes += "data";
  add(length);
  for (const float sample : samples) {
    add(static_cast<int16_t>(std::lround(std::clamp(sample, -1.0f, 1.0f) * 32767.0f)));
  }
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) fail(path, "cannot be written");
}

namespace {

/// Random numbers that every library computes alike.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_()) / 4294967296.0);
  }

 private:
  std::mt19937 engine_;
};

/// A resonance: y[n] = gain x[n] + b y[n-1] + c y[n-2].
class Resonance {
 public:
  void tune(double frequency, double bandwidth) {
    const double radius = std::exp(-std::numbers::pi * bandwidth / kRate);
    b_ = 2 * radius * std::cos(2 * std::numbers::pi * frequency / kRate);
    c_ = -radius * radius;
    gain_ = 1 - b_ - c_;
  }
  double operator()(double x) {
    const double y = gain_ * x + b_ * y1_ + c_ * y2_;
    y2_ = y1_;
    return y1_ = y;
  }

 private:
  double gain_ = 1, b_ = 0, c_ = 0, y1_ = 0, y2_ = 0;
};

// The first three resonances of vowels, in Hz (Peterson and Barney 1952, men).
constexpr std::array<std::array<double, 3>, 6> kVowels{{{730, 1090, 2440},
                                                        {530, 1840, 2480},
                                                        {270, 2290, 3010},
                                                        {570, 840, 2410},
                                                        {300, 870, 2240},
                                                        {660, 1720, 2410}}};
constexpr std::array<double, 3> kBandwidths{80, 100, 140};

/// Adds a phrase of syllables to `samples` from `begin` to `end`.
void add_phrase(std::vector<float>& samples, int begin, int end, Random& random) {
  const double pitch = random.between(95, 230), loudness = random.between(0.08, 0.3);
  std::array<Resonance, 3> resonances;
  double phase = 0;
  for (int at = begin; at < end;) {
    const int length = std::min(end - at, static_cast<int>(random.between(0.12, 0.28) * kRate));
    const auto& vowel = kVowels[static_cast<size_t>(random.between(0, kVowels.size()))];
    for (size_t i = 0; i < 3; ++i) resonances[i].tune(vowel[i], kBandwidths[i]);
    const double consonant = random.between(0, 0.25), accent = random.between(0.92, 1.12);
    for (int i = 0; i < length; ++i) {
      const double place = static_cast<double>(i) / length;
      phase += pitch * accent * (1 - 0.15 * static_cast<double>(at + i - begin) / (end - begin)) / kRate;
      double source = 0;
      if (phase >= 1) {  // the vocal folds close
        phase -= 1;
        source = 1;
      }
      source += random.between(-0.01, 0.01);
      for (Resonance& resonance : resonances) source = resonance(source);
      const double envelope = place < consonant ? 0.2 : std::sin(std::numbers::pi * place);
      const double hiss = place < consonant ? random.between(-0.15, 0.15) : 0;
      samples[static_cast<size_t>(at + i)] +=
          static_cast<float>(loudness * (4 * envelope * source + hiss * envelope));
    }
    at += length;
  }
}

}  // namespace

Recording make_recording(uint32_t seed, int chunks) {
  Random random(seed);
  Recording made{std::vector<float>(static_cast<size_t>(chunks) * kChunk),
                 std::vector<bool>(static_cast<size_t>(chunks))};
  const double noise = random.between(0.0005, 0.01), hum = random.between(0, 0.02);
  const double mains = random.between(0, 1) < 0.5 ? 50 : 60;
  for (size_t i = 0; i < made.samples.size(); ++i) {
    const double turn = 2 * std::numbers::pi * mains * static_cast<double>(i) / kRate;
    made.samples[i] =
        static_cast<float>(hum * (std::sin(turn) + 0.5 * std::sin(3 * turn)) + random.between(-noise, noise));
  }
  bool speaks = random.between(0, 1) < 0.3;
  for (int begin = 0; begin < chunks; speaks = !speaks) {
    const int end = std::min(chunks, begin + static_cast<int>(random.between(15, 50)));
    if (speaks) {
      add_phrase(made.samples, begin * kChunk, end * kChunk, random);
      std::fill(made.is_speech.begin() + begin, made.is_speech.begin() + end, true);
    }
    begin = end;
  }
  return made;
}
