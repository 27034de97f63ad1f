// accuracy: measures the largest error of every maths function in every dtype on every instruction set of
// this machine, and writes docs/accuracy.md. Fails when a function breaks its budget, a special value is
// wrong, or instruction sets differ in a bit.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <span>

#include "bench/accuracy/functions.h"
#include "bench/accuracy/measure.h"
#include "bench/accuracy/page.h"
#include "bench/accuracy/results.h"
#include "bench/accuracy/special_values.h"
#include "tenon/core/error.h"

namespace {

using namespace tenon;
using namespace tenon::accuracy;

constexpr std::string_view kUsage =
    R"(usage: accuracy [options]
  --float32-step N        float32: every N-th number, 1 for all of them (1)
  --without-fma-every N   float32: instruction sets without fma run every N-th block (31)
  --samples N             samples of float64, and of functions of two arguments (1000000)
  --threads N             threads for float32 (1)
  --function NAME         this function only; may be repeated
  --dtype NAME            float16, bfloat16, float32 or float64 only
  --results FILE          keep measurements here, and take them from here where they are
  --output FILE           write the page
)";

struct Options {
  uint64_t float32_step = 1, without_fma_every = 31, samples = 1'000'000, threads = 1;
  std::vector<std::string_view> functions;
  std::string_view dtype;
  std::string results, output;

  bool wants(const MathFunction& f) const {
    return functions.empty() || std::ranges::find(functions, f.name) != functions.end();
  }
};

uint64_t number(std::string_view option, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TENON_CHECK(error == std::errc() && end == text.data() + text.size() && value > 0 && value < 0x80000000u,
              Value, fmt::format("{} takes a positive whole number, not '{}'", option, text));
  return value;
}

Options parse_options(std::span<char*> arguments) {
  Options o;
  TENON_CHECK(arguments.size() % 2 == 0, Value, std::string(kUsage));
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view option = arguments[i], value = arguments[i + 1];
    if (option == "--float32-step") {
      o.float32_step = number(option, value);
    } else if (option == "--without-fma-every") {
      o.without_fma_every = number(option, value);
    } else if (option == "--samples") {
      o.samples = number(option, value);
    } else if (option == "--threads") {
      o.threads = number(option, value);
    } else if (option == "--function") {
      o.functions.push_back(value);
    } else if (option == "--dtype") {
      o.dtype = value;
    } else if (option == "--results") {
      o.results = value;
    } else if (option == "--output") {
      o.output = value;
    } else {
      throw_error(ErrorKind::Value, fmt::format("unknown option {}\n{}", option, kUsage));
    }
  }
  return o;
}

Measurement measure(const MathFunction& f, DType dtype, const Options& o) {
  Measurement m{.function = std::string(f.name), .dtype = std::string(name(dtype)), .effort = o.samples};
  const std::clock_t start = std::clock();
  if (dtype == DType::Float16 || dtype == DType::BFloat16) {
    m.tally = measure_half(f, dtype, o.samples);
  } else if (dtype == DType::Float32 && f.arity == 1) {
    m.effort = o.float32_step;
    m.tally = measure_float32(f, static_cast<uint32_t>(o.float32_step), o.without_fma_every,
                              static_cast<int>(o.threads));
  } else {
    m.tally = measure_sampled(f, dtype, o.samples);
  }
  m.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return m;
}

bool kept(const MathFunction& f, DType dtype, const Measurement& m) {
  const Tally& t = m.tally;
  return t.wrong_class == 0 && t.differences == 0 &&
         (f.budget == 0.5 ? t.not_nearest == 0 : t.worst <= f.budget);
}

int run(const Options& o) {
  Results results(o.results);
  bool all_kept = unmeasured_functions().empty();
  for (const std::string_view f : unmeasured_functions()) fmt::print("FAIL {}: nothing measures it\n", f);
  // The processes of the half types come first: they are forked, which threads do not survive.
  for (const DType dtype : kMeasuredDTypes) {
    if (!o.dtype.empty() && o.dtype != name(dtype)) continue;
    for (const MathFunction& f : math_functions()) {
      if (!o.wants(f)) continue;
      if (results.find(f.name, name(dtype)) == nullptr) results.add(measure(f, dtype, o));
      const Measurement& m = *results.find(f.name, name(dtype));
      const Tally& t = m.tally;
      const bool ok = kept(f, dtype, m);
      fmt::print("{:<4} {:<12} {:<8} {:8.4f} ULP at {:a}", ok ? "ok" : "FAIL", f.name, m.dtype, t.worst,
                 t.at[0]);
      if (f.arity == 2) fmt::print(", {:a}", t.at[1]);
      fmt::print(": {:a}; {} inputs, {} not nearest, {} wrong kind, {} differ, {:.0f} s\n", t.got, t.inputs,
                 t.not_nearest, t.wrong_class, t.differences, m.seconds);
      std::fflush(stdout);
      all_kept = all_kept && ok;
    }
  }
  const SpecialValues special = check_special_values();
  for (const std::string& wrong : special.wrong) fmt::print("FAIL {}\n", wrong);
  fmt::print("{} special values, {} wrong\n", special.checked, special.wrong.size());
  if (!o.output.empty()) std::ofstream(o.output) << page(results, special);
  return all_kept && special.wrong.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse_options(std::span(argv + 1, static_cast<size_t>(argc - 1))));
  } catch (const tenon::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
