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

Compiled::Compiled(const expr::Expression& e, const HostProgramOptions& options)
    : program_(e, options.tile),
      expression_(expr::make_expression(expr::parts_of(e))),
      decided_(!makes_machine_code() || options.kind == HostProgramOptions::Kind::Interpreter) {
  if (options.kind == HostProgramOptions::Kind::MachineCode) make_code(options.vectors);
}

void Compiled::make_code(int vectors) const {
  if (decided_.exchange(true, std::memory_order_relaxed)) return;
  const CpuTarget target = cpu_target();
  if (jit_refusal(*expression_, target).empty() && jit_loss(*expression_, target).empty())
    code_.store(JitKernel::make(*expression_, target, vectors).release(), std::memory_order_release);
}

}  // namespace tenon::cpu
