// Trains a classifier of handwritten digits: the same model, step for step, as digits.py.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/record/compile.h>
#include <tenon/tenon.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "load_digits.h"

namespace nn = tenon::nn;
using tenon::Tensor;

namespace {

constexpr int64_t kHeldOut = 360;
constexpr int64_t kBatch = 32;
constexpr int kEpochs = 30;

struct Run {
  double accuracy = 0;
  std::vector<float> losses;  // of every step
};

Run train(const Digits& digits, uint64_t seed, bool perturb, bool progress) {
  tenon::manual_seed(seed);
  const Tensor order = tenon::randperm(digits.labels.size(0));
  const Tensor test = order.narrow(0, 0, kHeldOut);
  const Tensor train = order.narrow(0, kHeldOut, order.size(0) - kHeldOut);

  // Braces: they start the layers, and so draw the initial weights, from left to right.
  nn::Sequential model{nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 128), nn::ReLU(),
                       nn::Linear(128, 10)};
  if (perturb) {
    const tenon::NoGradGuard no_grad;
    model.parameters()[0].select(0, 0).select(0, 20).add_(0.5);
  }
  tenon::optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});

  Run run;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Tensor shuffled = train.index_select(0, tenon::randperm(train.size(0)));
    for (const Tensor& batch : shuffled.split(kBatch)) {
      const Tensor logits = model(digits.pixels.index_select(0, batch));
      const Tensor loss = tenon::cross_entropy_loss(logits, digits.labels.index_select(0, batch));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      run.losses.push_back(loss.item<float>());
    }
    if (progress) {
      std::fprintf(stderr, "\repoch %2d/%d  loss %.4f  [%-30.*s]", epoch + 1, kEpochs, run.losses.back(),
                   epoch + 1, "##############################");
    }
  }
  if (progress) std::fputc('\n', stderr);

  const tenon::InferenceMode inference;
  const Tensor predicted = model(digits.pixels.index_select(0, test)).argmax(1);
  run.accuracy = predicted.eq(digits.labels.index_select(0, test)).to(tenon::kFloat64).mean().item<double>();
  return run;
}

struct Options {
  std::string data = TENON_DIGITS;
  std::string losses;
  uint64_t seed = 0;
  int seeds = 0;
  int threads = 0;
  bool perturb = false;
  bool kernels = false;
  bool compile = false;
};

/// The value of an option as a number. Throws tenon::Error{Value} for anything else.
uint64_t number(const std::string& flag, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw tenon::Error(tenon::ErrorKind::Value, flag + " needs a whole number, got '" + text + "'");
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--perturb") {
      options.perturb = true;
      continue;
    }
    if (flag == "--kernels") {
      options.kernels = true;
      continue;
    }
    if (flag == "--compile") {
      options.compile = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--data")
      options.data = value;
    else if (flag == "--losses")
      options.losses = value;
    else if (flag == "--seed")
      options.seed = number(flag, value);
    else if (flag == "--seeds")
      options.seeds = static_cast<int>(number(flag, value));
    else if (flag == "--threads")
      options.threads = static_cast<int>(number(flag, value));
    else
      throw tenon::Error(tenon::ErrorKind::Value, "unknown option " + flag +
                                                      "; known: --data FILE --losses FILE --seed N --seeds N "
                                                      "--threads N --compile --kernels --perturb");
  }
  return options;
}

void run(const Options& options) {
  if (options.threads) tenon::set_num_threads(options.threads);
  const Digits digits = load_digits(options.data);
  if (digits.labels.size(0) <= kHeldOut) {
    throw tenon::Error(tenon::ErrorKind::Value, options.data + ": " + std::to_string(digits.labels.size(0)) +
                                                    " rows, expected more than the " +
                                                    std::to_string(kHeldOut) + " that are held out");
  }
  if (options.seeds) {
    double sum = 0;
    for (int seed = 1; seed <= options.seeds; ++seed) sum += train(digits, seed, false, false).accuracy;
    std::printf("mean accuracy over %d other seeds: %.4f\n", options.seeds, sum / options.seeds);
    return;
  }
  tenon::set_kernel_reporting(options.kernels);
  const Run result = options.compile ? tenon::compile(train)(digits, options.seed, options.perturb, true)
                                     : train(digits, options.seed, options.perturb, true);
  if (!options.losses.empty()) {
    std::ofstream file(options.losses, std::ios::binary);
    file.write(reinterpret_cast<const char*>(result.losses.data()),
               static_cast<std::streamsize>(result.losses.size() * sizeof(float)));
    file.write(reinterpret_cast<const char*>(&result.accuracy), sizeof result.accuracy);
    if (!file) throw tenon::Error(tenon::ErrorKind::Value, options.losses + ": cannot be written");
  }
  if (options.kernels) {
    for (const tenon::KernelCount& k : tenon::kernel_counts()) {
      std::printf("%-32s %-20s %8lu\n", k.report.op, k.report.kernel, static_cast<unsigned long>(k.calls));
    }
  }
  std::printf("accuracy on %ld held-out rows: %.4f\n", static_cast<long>(kHeldOut), result.accuracy);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
}
