#include "backends/cpu/cpu_target.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tenon/core/error.h"

namespace tenon::cpu {

namespace {

struct TargetRow {
  CpuTarget target;
  std::string_view name;
  std::string_view alias;
};

#if defined(__x86_64__)
constexpr TargetRow kTargets[kNumCpuTargets] = {{CpuTarget::Sse4, "SSE4", "SSE4.2"},
                                                {CpuTarget::Avx2, "AVX2", "AVX2"},
                                                {CpuTarget::Avx3, "AVX3", "AVX512"}};
#else
constexpr TargetRow kTargets[kNumCpuTargets] = {{CpuTarget::Neon, "NEON", "NEON"}};
#endif

struct Supported {
  std::array<CpuTarget, kNumCpuTargets> targets{};
  size_t count = 0;
  Supported() noexcept {
    for (size_t i = 0; i < kNumCpuTargets; ++i) {
      if ((TENON_CPU_TARGETS >> i & 1) && machine_has(kTargets[i].target))
        targets[count++] = kTargets[i].target;
    }
  }
};

const Supported& supported() noexcept {
  static const Supported all;
  return all;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::string names_of(std::span<const CpuTarget> targets) {
  std::string result;
  for (CpuTarget t : targets) result += fmt::format("{}{}", result.empty() ? "" : ", ", name(t));
  return result;
}

/// TENON_CPU_TARGET, or "".
std::string_view forced_target() noexcept {
  const char* text = std::getenv("TENON_CPU_TARGET");
  return text ? text : "";
}

CpuTarget choose() {
  if (cpu_target_is_forced()) return parse_cpu_target(forced_target());
  const auto targets = supported_cpu_targets();
  TENON_CHECK(!targets.empty(), Value, fmt::format("cpu: {}", kBaselineSentence));
  return targets.back();
}

}  // namespace

#if defined(__x86_64__)
// __builtin_cpu_supports also asks the operating system whether it saves the wide registers.
bool machine_has(CpuTarget target) noexcept {
  __builtin_cpu_init();
  const bool sse4 =
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  if (target == CpuTarget::Sse4) return sse4;
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("f16c");
  if (target == CpuTarget::Avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
bool machine_has(CpuTarget) noexcept { return true; }
#endif

std::string_view name(CpuTarget target) noexcept { return kTargets[static_cast<int>(target)].name; }

bool is_supported(CpuTarget target) noexcept {
  for (CpuTarget t : supported_cpu_targets()) {
    if (t == target) return true;
  }
  return false;
}

std::span<const CpuTarget> supported_cpu_targets() noexcept {
  return {supported().targets.data(), supported().count};
}

CpuTarget parse_cpu_target(std::string_view text) {
  const std::string wanted = upper(text);
  std::string known;
  for (const TargetRow& row : kTargets) {
    if (wanted == row.name || wanted == row.alias) {
      TENON_CHECK(is_supported(row.target), Value,
                  fmt::format("TENON_CPU_TARGET: this machine cannot run {}; it can run {}", row.name,
                              names_of(supported_cpu_targets())));
      return row.target;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw_error(ErrorKind::Value,
              fmt::format("TENON_CPU_TARGET: unknown instruction set '{}', expected one of {}", text, known));
}

bool cpu_target_is_forced() {
  static const bool forced = !forced_target().empty();
  return forced;
}

CpuTarget cpu_target() {
  static const CpuTarget target = choose();  // a throw leaves it unset, so that the next use throws again
  return target;
}

}  // namespace tenon::cpu
