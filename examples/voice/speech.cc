// Finds speech in a recording:
//   speech MODEL.onnx RECORDING.wav [--weights FILE] [--picture FILE.svg] [--probabilities] [--report]
//   [--time]
#include <tenon/io.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "detector.h"
#include "picture.h"
#include "recording.h"
#include "segments.h"

namespace {

constexpr size_t kTimedChunks = 2000;

struct Options {
  std::vector<std::string> files;
  std::string weights, picture;
  bool probabilities = false, report = false, time = false;
};

Options parse(int argc, char** argv) {
  const std::string usage =
      "usage: speech MODEL.onnx RECORDING.wav [--weights FILE] [--picture FILE.svg] [--probabilities] "
      "[--report] [--time]";
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] {
      TENON_CHECK(i + 1 < argc, Value, flag + " needs the name of a file; " + usage);
      return std::string(argv[++i]);
    };
    if (flag == "--weights")
      options.weights = value();
    else if (flag == "--picture")
      options.picture = value();
    else if (flag == "--probabilities")
      options.probabilities = true;
    else if (flag == "--report")
      options.report = true;
    else if (flag == "--time")
      options.time = true;
    else if (flag.starts_with("--"))
      throw tenon::Error(tenon::ErrorKind::Value, "unknown option " + flag + "; " + usage);
    else
      options.files.push_back(flag);
  }
  TENON_CHECK(options.files.size() == 2, Value, usage);
  return options;
}

/// Prints how long a chunk takes. The recording is run as often as that needs.
void time(Detector& detector, const std::vector<float>& samples) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> taken;
  while (taken.size() < kTimedChunks) {
    detector.reset();
    for_each_chunk(samples, [&](std::span<const float> chunk) {
      const Clock::time_point begin = Clock::now();
      detector(chunk);
      taken.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    });
  }
  std::sort(taken.begin(), taken.end());
  std::printf("a chunk of %d samples: %.2f us, at best %.2f us\n", kChunk, taken[taken.size() / 2], taken[0]);
}

void run(const Options& options) {
  tenon::set_num_threads(1);  // a chunk is too little work to share
  tenon::onnx::Model model = tenon::onnx::load(options.files[0]);
  if (!options.weights.empty()) model.load_state_dict(tenon::load(options.weights));
  const std::vector<float> samples = read_wav(options.files[1]);
  Detector detector(model);

  const std::vector<float> probabilities = probabilities_of(detector, samples);
  const std::vector<Segment> segments = find_segments(probabilities, samples.size());
  for (const auto& [begin, end] : segments) {
    std::printf("speech from %.3f s to %.3f s\n", static_cast<double>(begin) / kRate,
                static_cast<double>(end) / kRate);
  }
  if (segments.empty()) std::puts("no speech");
  if (options.probabilities)
    for (const float probability : probabilities) std::printf("%.9g\n", static_cast<double>(probability));
  if (!options.picture.empty()) draw(options.picture, samples, probabilities, segments);
  if (options.report) std::puts(detector.report().c_str());
  if (options.time) time(detector, samples);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "speech: %s\n", error.what());
    return 1;
  }
}
