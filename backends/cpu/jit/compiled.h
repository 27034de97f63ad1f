// Compiled: an expression that was not printed at build time, as what runs it: the interpreter, and machine
// code once it has run for long enough to pay for that. Used by pointwise calls, regions and rows. Knows no
// tensors.
#pragma once

#include <atomic>

#include "backends/cpu/jit/jit.h"
#include "backends/cpu/pointwise/interpreter.h"

namespace tenon::cpu {

/// False where TENON_JIT=0 leaves all to the interpreter.
bool makes_machine_code() noexcept;

class Compiled final : public HostProgram {
 public:
  explicit Compiled(const expr::Expression& e, const HostProgramOptions& options = {});
  ~Compiled() override { delete code_.load(std::memory_order_relaxed); }

  void run(void* const* ptrs, size_t n, const void* numbers) const final {
    if (const JitKernel* code = code_.load(std::memory_order_acquire)) return code->run(ptrs, n, numbers);
    if (const size_t ran = n + kCall; !decided_.load(std::memory_order_relaxed) &&
                                      elements_.fetch_add(ran, std::memory_order_relaxed) + ran >= kElements)
      make_code();
    program_.run(ptrs, n, numbers);
  }
  bool is_machine_code() const noexcept final { return code_.load(std::memory_order_relaxed) != nullptr; }

 private:
  // Of 0.1 to 0.4 ns that an element costs more here than in machine code, as many as its making takes.
  static constexpr size_t kElements = size_t{1} << 17;
  // As many as a call by itself costs more, which is all that a step on few rows has.
  static constexpr size_t kCall = 512;

  void make_code(int vectors = 0) const;

  Program program_;
  expr::ExpressionPtr expression_;
  mutable std::atomic<size_t> elements_{0};
  mutable std::atomic<bool> decided_;
  mutable std::atomic<const JitKernel*> code_{nullptr};
};

}  // namespace tenon::cpu
