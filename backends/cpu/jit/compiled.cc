#include "backends/cpu/jit/compiled.h"

#include <cstdlib>
#include <string_view>

namespace tenon::cpu {

bool makes_machine_code() noexcept {
  static const bool wanted = [] {
    const char* text = std::getenv("TENON_JIT");
    return !text || std::string_view(text) != "0";
  }();
  return wanted;
}

void MachineCode::make(int vectors) const {
  if (decided_.exchange(true, std::memory_order_relaxed)) return;
  const CpuTarget target = cpu_target();
  const std::string why =
      summed_ != 0 ? jit_sum_refusal(*expression_, target, summed_) : jit_refusal(*expression_, target);
  if (!why.empty() || !jit_loss(*expression_, target).empty()) return;
  auto code = summed_ != 0 ? JitKernel::make_sums(*expression_, target, summed_)
                           : JitKernel::make(*expression_, target, vectors);
  code_.store(code.release(), std::memory_order_release);
}

Compiled::Compiled(const expr::Expression& e, const HostProgramOptions& options)
    : program_(e, options.tile), code_(e) {
  if (options.kind == HostProgramOptions::Kind::Interpreter) code_.leave_to_interpreter();
  if (options.kind == HostProgramOptions::Kind::MachineCode) code_.make(options.vectors);
}

}  // namespace tenon::cpu
