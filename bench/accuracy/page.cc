#include "bench/accuracy/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/accuracy/functions.h"
#include "bench/accuracy/measure.h"

namespace tenon::accuracy {

namespace {

constexpr DType kColumns[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

constexpr std::string_view kIntroduction = R"(# Accuracy

The largest error of each maths function, in units in the last place (ULP), as measured by `accuracy`, a program that
also writes this page. An error of 0.5 means that every result that was tried is the nearest number of its dtype; an
error below 1, that it is one of the two numbers around the exact result.

    ninja -C build/release accuracy
    build/release/bench/accuracy --results build/accuracy.txt --output docs/accuracy.md

What is promised: at most 1 ULP for exp, log, sin, cos, sqrt and rsqrt, at most 2 for the rest; NaN, infinities and
zeros with their signs as in annex F of the C standard; denormals neither flushed nor taken for zero; and the same bits
on every instruction set. `./test` runs the same program on a small part of the inputs, and fails where that is not
kept.
)";

constexpr std::string_view kMethod[] = {
    "Error: |result - exact| / ulp(exact). ulp(exact) is the distance of neighbours in the binade of the "
    "exact result; of denormal results, that of denormals. An infinity stands for the number that would come "
    "after the largest. logaddexp passes through zero, where its two terms cancel: its unit is that of the "
    "larger argument, where that is larger than the result.",
    "float32, one argument: the inputs that the table says, against the C library's double. Odd and even "
    "functions share the reference for x and -x.",
    "float64, and two arguments: MPFR with 160 bits or more. Of the samples, a fifth each are any bits, any "
    "magnitude, and near thresholds and zeros (sin, cos and tan: also near multiples of pi/2, and the double "
    "that is nearest to one); the rest lies where the function bends. Then come three rounds of samples "
    "beside the worst that were found. Of two arguments, pairs are chosen where the function is hard: pow "
    "beside overflow, underflow and 1, for instance.",
    "float16 and bfloat16: every number (of two arguments: samples) through the operator on a tensor, "
    "against MPFR; it computes in float32 and rounds once more. A function without an operator of its own "
    "is run as an expression.",
    "A function is run by the kernels of the tile interpreter; kernels that the build prints give the same "
    "bits (`tests/expr/printed_kernels_test.cc`).",
    "An operator that is made of several functions (elu, hardswish, the losses) promises nothing by itself: "
    "the errors of its parts add up.",
    "Not listed: functions that only choose, test or move bits (sign, relu, copysign, isnan, ...), and "
    "trunc_divide, which truncates a rounded quotient.",
};

/// A list item of Markdown in lines of at most 120 columns.
std::string item(std::string_view text) {
  constexpr size_t kColumns = 120;
  std::string lines = "-";
  size_t column = 1;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column + 1 + end > kColumns) {
      lines += "\n ";
      column = 1;
    }
    lines += fmt::format(" {}", text.substr(0, end));
    column += 1 + end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + '\n';
}

const char* label(cpu::CpuTarget target) {
  const std::string_view text = name(target);
  return text == "AVX3" ? "AVX-512" : text == "NEON" ? "NEON" : text == "AVX2" ? "AVX2" : "SSE4";
}

std::string list_of_targets() {
  std::string text;
  const auto targets = cpu::supported_cpu_targets();
  for (size_t i = 0; i < targets.size(); ++i) {
    text += i == 0 ? "" : i + 1 == targets.size() ? " and " : ", ";
    text += label(targets[i]);
  }
  return text;
}

/// With thousands separated.
std::string grouped(uint64_t n) {
  std::string text = std::to_string(n);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

/// Three digits, rounded up: nothing measured is above what the page says.
std::string ulp_of(const Tally& t) {
  if (t.not_nearest == 0) return "0.5";
  return fmt::format("{:.3f}", std::ceil(t.worst * 1000) / 1000);
}

std::string inputs_of(const Measurement& m) {
  if (m.dtype == "float32" && m.tally.inputs > 100'000'000) {
    return m.effort == 1 ? "all" : fmt::format("every {}th", m.effort);
  }
  return grouped(m.tally.inputs);
}

std::string place(const MathFunction& f, const Tally& t) {
  if (t.not_nearest == 0) return "";
  return f.arity == 1 ? fmt::format("{:a}", t.at[0]) : fmt::format("{:a}, {:a}", t.at[0], t.at[1]);
}

std::string error_table(const Results& results) {
  std::string text = "| function | promised |";
  for (const DType dtype : kColumns) text += fmt::format(" {} |", name(dtype));
  text += "\n| --- | --- |";
  for ([[maybe_unused]] const DType dtype : kColumns) text += " --- |";
  text += '\n';
  for (const MathFunction& f : math_functions()) {
    text +=
        std::isinf(f.budget) ? fmt::format("| {} | |", f.name) : fmt::format("| {} | {} |", f.name, f.budget);
    for (const DType dtype : kColumns) {
      const Measurement* m = results.find(f.name, name(dtype));
      text += fmt::format(" {} |", m == nullptr ? "not measured" : ulp_of(m->tally));
    }
    text += '\n';
  }
  return text;
}

std::string place_table(const Results& results) {
  std::string text =
      "| function | float32: inputs | not the nearest | worst at | float64: samples | not the nearest | "
      "worst at |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const MathFunction& f : math_functions()) {
    text += fmt::format("| {} |", f.name);
    for (const DType dtype : {DType::Float32, DType::Float64}) {
      const Measurement* m = results.find(f.name, name(dtype));
      if (m == nullptr) {
        text += " not measured | | |";
        continue;
      }
      const Tally& t = m->tally;
      const double percent = 100 * static_cast<double>(t.not_nearest) / static_cast<double>(t.inputs);
      const std::string share = t.not_nearest == 0 ? "none"
                                : percent < 0.01   ? grouped(t.not_nearest)
                                                   : fmt::format("{:.2f} %", percent);
      text += fmt::format(" {} | {} | {} |", inputs_of(*m), share, place(f, t));
    }
    text += '\n';
  }
  return text;
}

struct Sum {
  uint64_t inputs = 0, without_fma = 0, wrong_class = 0, differences = 0;
  double seconds = 0;
  std::vector<std::string> broken;
};

Sum sum_of(const Results& results) {
  Sum sum;
  for (const Measurement& m : results.all()) {
    const auto f = std::ranges::find(math_functions(), m.function, &MathFunction::name);
    if (f == math_functions().end()) continue;
    sum.inputs += m.tally.inputs;
    if (m.dtype == "float32" && f->arity == 1) sum.without_fma += m.tally.without_fma;
    sum.wrong_class += m.tally.wrong_class;
    sum.differences += m.tally.differences;
    sum.seconds += m.seconds;
    if (f->budget == 0.5 ? m.tally.not_nearest != 0 : m.tally.worst > f->budget) {
      sum.broken.push_back(fmt::format("{} in {}", m.function, m.dtype));
    }
  }
  return sum;
}

std::string findings(const Results& results, const SpecialValues& special) {
  const Sum sum = sum_of(results);
  std::string broken = sum.broken.empty() ? "No function breaks its promise." : "These break their promise:";
  for (const std::string& b : sum.broken) broken += " " + b + (&b == &sum.broken.back() ? "." : ",");
  std::string targets = fmt::format(
      "Instruction sets: {}. At {} of the inputs did one of them give other bits than another, so that each "
      "figure holds "
      "for each of them.",
      list_of_targets(), sum.differences == 0 ? "none" : grouped(sum.differences));
  for (const cpu::CpuTarget target : cpu::supported_cpu_targets()) {
    if (has_fma(target)) continue;
    targets += fmt::format(
        " {} has no fused multiply-add and takes some twenty times as long to emulate it: of float32 it ran "
        "{} of the "
        "inputs, in blocks of 2,048 neighbours that are evenly spread.",
        label(target), grouped(sum.without_fma));
  }
  return item(broken) + item(targets) +
         item(fmt::format(
             "NaN, an infinity or the sign of a zero where it should not be, or the reverse: {} of all these "
             "inputs. Of {} results at special values that are written out by hand "
             "([`bench/accuracy/special_values.cc`](../bench/accuracy/special_values.cc)), {} are wrong.",
             sum.wrong_class == 0 ? "none" : grouped(sum.wrong_class), grouped(special.checked),
             special.wrong.empty() ? "none" : grouped(special.wrong.size()))) +
         item(fmt::format("{} inputs of all functions and dtypes; about {:.0f} minutes of one core.",
                          grouped(sum.inputs), std::ceil(sum.seconds / 60)));
}

}  // namespace

std::string page(const Results& results, const SpecialValues& special) {
  double reference = 0;
  for (const MathFunction& f : math_functions()) {
    if (f.in_double != nullptr) reference = std::max(reference, reference_error(f, 20'000));
  }
  std::string text(kIntroduction);
  text += "\n## Errors\n\nOn " + list_of_targets() + " alike.\n\n" + error_table(results);
  text += "\n## What was found\n\n" + findings(results, special);
  text += "\n## How it is measured\n\n";
  for (const std::string_view line : kMethod) text += item(line);
  text +=
      item(fmt::format("The C library's double was itself compared with MPFR at 20,000 samples of each "
                       "function: it is off by at most "
                       "{:.1g} ULP of float32.",
                       reference));
  text += "\n## Where the largest errors are\n\n" + place_table(results);
  return text;
}

}  // namespace tenon::accuracy
