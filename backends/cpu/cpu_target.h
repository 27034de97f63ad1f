// CpuTarget: the instruction sets that kernels are compiled for, and which one this process runs. Used by
// every table of kernels, and by reports of which kernels ran. Independent of the kernels themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::cpu {

// Bit i: the build has kernels for CpuTarget i.
#ifndef TENON_CPU_TARGETS
#define TENON_CPU_TARGETS 7
#endif

/// Instruction sets, from the narrowest. A table of kernels is indexed by it.
#if defined(__x86_64__)
enum class CpuTarget : uint8_t { Sse4, Avx2, Avx3 };
inline constexpr int kNumCpuTargets = 3;
#elif defined(__aarch64__)
enum class CpuTarget : uint8_t { Neon };
inline constexpr int kNumCpuTargets = 1;
#else
#error "Tenon's CPU kernels are compiled for x86-64 and aarch64"
#endif

/// "SSE4", "AVX2", "AVX3" (AVX-512 F, VL, DQ, BW), "NEON".
std::string_view name(CpuTarget target) noexcept;

/// Whether this machine and its operating system have an instruction set, whatever the build compiled kernels
/// for: code that is made at run time needs no more.
bool machine_has(CpuTarget target) noexcept;

/// Whether they can run an instruction set that the build has kernels of.
bool is_supported(CpuTarget target) noexcept;

/// Why a machine runs none of them.
#if defined(__x86_64__) && (TENON_CPU_TARGETS & 1)
inline constexpr std::string_view kBaselineSentence =
    "this processor lacks SSE4.2, PCLMULQDQ or AES, the least that Tenon's kernels need; processors have had "
    "them "
    "since 2010";
#elif defined(__x86_64__)
inline constexpr std::string_view kBaselineSentence =
    "this processor lacks the instruction sets that this Tenon was built for; TENON_CPU_TARGETS says which, "
    "when it is built";
#else
inline constexpr std::string_view kBaselineSentence = "this processor lacks NEON, which Tenon's kernels need";
#endif
/// The targets this machine can run, narrowest first; at least one, or `cpu_target()` throws.
std::span<const CpuTarget> supported_cpu_targets() noexcept;

/// The target by that name, case-insensitive ("AVX512" is AVX3). Throws Error{Value} for an unknown name,
/// listing the known ones, and for one that this machine cannot run.
CpuTarget parse_cpu_target(std::string_view text);

/// The target that kernels run on: the best one supported, or what TENON_CPU_TARGET names. Read once, at the
/// first use; throws Error{Value} (again at each use) if the variable names none, or one that this machine
/// cannot run.
CpuTarget cpu_target();

/// Whether TENON_CPU_TARGET names the target: then nothing beyond it computes, as matrix units otherwise do.
bool cpu_target_is_forced();

/// `name(cpu_target())`.
inline std::string_view cpu_target_name() { return name(cpu_target()); }

}  // namespace tenon::cpu
