// Half types as users meet them: an operator on a tensor, which computes in float32 and rounds once. The
// operator runs on the process's instruction set, so that each has a process of its own, which sends its
// results through a pipe.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "bench/accuracy/kernel.h"
#include "bench/accuracy/measure.h"
#include "tenon/core/error.h"
#include "tenon/core/half.h"
#include "tenon/iter/pointwise.h"
#include "tenon/tenon.h"

namespace tenon::accuracy {

namespace {

using Bits = std::vector<uint16_t>;

float value_of(DType dtype, uint16_t bits) {
  return dtype == DType::Float16 ? detail::half_to_float(bits) : detail::bfloat16_to_float(bits);
}

/// The operator of that name, or the expression as an operator of its own.
Tensor call(const MathFunction& f, const Tensor& x, const Tensor& y) {
  if (!f.op.empty()) {
    const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(f.op);
    return f.arity == 1 ? op.typed<Tensor(const Tensor&)>().call(x)
                        : op.typed<Tensor(const Tensor&, const Tensor&)>().call(x, y);
  }
  static constexpr std::string_view kNames[] = {"x", "y"};
  const std::span<const std::string_view> names(kNames, static_cast<size_t>(f.arity));
  const Tensor* const operands[] = {&x, &y};
  return pointwise(make_pointwise(f.text, names, {}, ComputeRule::Float, ResultRule::Compute),
                   {operands, static_cast<size_t>(f.arity)}, {});
}

Bits results_of(const MathFunction& f, DType dtype, Bits& x, Bits& y) {
  const auto n = static_cast<int64_t>(x.size());
  const Tensor out = call(f, from_blob(x.data(), {n}, dtype), from_blob(y.data(), {n}, dtype));
  TENON_CHECK(out.dtype() == dtype, Type, std::string(f.name) + " of a half type gave another type");
  const auto* bits = static_cast<const uint16_t*>(out.data_ptr());
  return Bits(bits, bits + n);
}

void check(bool ok, const char* what) {
  if (!ok) throw_error(ErrorKind::Runtime, std::string("accuracy: ") + what + " failed");
}

/// `results_of` in a process that runs `target`.
Bits results_on(cpu::CpuTarget target, const MathFunction& f, DType dtype, Bits& x, Bits& y) {
  int ends[2] = {};
  check(pipe(ends) == 0, "pipe");
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (child == 0) {
    // What it prints and throws ends here; the parent misses its results.
    try {
      setenv("TENON_CPU_TARGET", std::string(name(target)).c_str(), 1);
      if (cpu::cpu_target() != target) _exit(1);
      const Bits results = results_of(f, dtype, x, y);
      const auto* next = reinterpret_cast<const char*>(results.data());
      for (size_t left = results.size() * sizeof(uint16_t); left > 0;) {
        const ssize_t written = write(ends[1], next, left);
        if (written <= 0) _exit(1);
        next += written, left -= static_cast<size_t>(written);
      }
      _exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      _exit(1);
    }
  }
  close(ends[1]);
  Bits results(x.size());
  auto* next = reinterpret_cast<char*>(results.data());
  size_t left = results.size() * sizeof(uint16_t);
  for (ssize_t got = 1; left > 0 && got > 0; next += got, left -= static_cast<size_t>(got)) {
    do got = read(ends[0], next, left);
    while (got < 0 && errno == EINTR);
    if (got < 0) break;
  }
  close(ends[0]);
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0 && left == 0, "the process of an instruction set");
  return results;
}

}  // namespace

Tally measure_half(const MathFunction& f, DType dtype, size_t samples) {
  Bits x, y;
  Random random(99);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) x.push_back(static_cast<uint16_t>(bits));
  if (f.arity == 2) {
    while (x.size() < samples) x.push_back(static_cast<uint16_t>(random()));
    for (size_t i = 0; i < x.size(); ++i) {
      // Of any magnitude, or of one like the first's.
      const auto near = static_cast<uint16_t>(x[i] + random() % 4096 - 2048);
      y.push_back(random() % 2 == 0 ? near : static_cast<uint16_t>(random()));
    }
  } else {
    y = x;
  }
  const auto targets = cpu::supported_cpu_targets();
  std::vector<Bits> results;
  for (const cpu::CpuTarget target : targets) results.push_back(results_on(target, f, dtype, x, y));

  const Format format = dtype == DType::Float16 ? kFormatFloat16 : kFormatBFloat16;
  Exact exact_x, exact_y, want, scratch;
  Tally tally{.inputs = x.size(), .without_fma = x.size()};
  for (size_t i = 0; i < x.size(); ++i) {
    const float a = value_of(dtype, x[i]), b = value_of(dtype, y[i]);
    mpfr_set_d(exact_x, a, MPFR_RNDN);
    mpfr_set_d(exact_y, b, MPFR_RNDN);
    f.exact(want, exact_x, exact_y);
    const double nearest = nearest_in(format, want, scratch);
    for (size_t t = 0; t < targets.size(); ++t) {
      const float got = value_of(dtype, results[t][i]), first = value_of(dtype, results[0][i]);
      if (t > 0 && same_bits(got, first)) continue;
      tally.differences += t > 0;
      if (same_bits(got, static_cast<float>(nearest))) continue;
      const Format unit = f.cancels ? no_finer_than(format, std::max(a, b)) : format;
      tally.add(ulp_error(unit, got, nearest, want, scratch), a, b, got);
    }
  }
  return tally;
}

}  // namespace tenon::accuracy
