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

/// Machine code that is made of an expression once that has run for long enough to pay for it. Safe to use
/// from many threads at once.
class MachineCode {
 public:
  /// `summed`: outputs that are added up, JitKernel::make_sums.
  explicit MachineCode(const expr::Expression& e, uint32_t summed = 0)
      : expression_(expr::make_expression(expr::parts_of(e))),
        summed_(summed),
        decided_(!makes_machine_code()) {}
  MachineCode(const MachineCode&) = delete;
  ~MachineCode() { delete code_.load(std::memory_order_relaxed); }

  /// Null where there is none.
  const JitKernel* get() const noexcept { return code_.load(std::memory_order_acquire); }
  /// The same, before `n` elements run in some calls: they count, and once enough have run, code is made for
  /// what comes after them.
  const JitKernel* get_for(size_t n, size_t calls = 1) const {
    if (const JitKernel* code = get()) return code;
    if (const size_t ran = n + calls * kCall;
        !decided_.load(std::memory_order_relaxed) &&
        elements_.fetch_add(ran, std::memory_order_relaxed) + ran >= kElements)
      make();
    return nullptr;
  }
  void make(int vectors = 0) const;
  void leave_to_interpreter() noexcept { decided_.store(true, std::memory_order_relaxed); }

 private:
  // Of 0.1 to 0.4 ns that an element costs more in the interpreter, as many as the making takes.
  static constexpr size_t kElements = size_t{1} << 17;
  // A call costs as much more in the interpreter as so many elements, however few it has.
  static constexpr size_t kCall = 512;

  const expr::ExpressionPtr expression_;
  const uint32_t summed_;
  mutable std::atomic<size_t> elements_{0};
  mutable std::atomic<bool> decided_;
  mutable std::atomic<const JitKernel*> code_{nullptr};
};

class Compiled final : public HostProgram {
 public:
  explicit Compiled(const expr::Expression& e, const HostProgramOptions& options = {});

  void run(void* const* ptrs, size_t n, const void* numbers) const final {
    if (const JitKernel* code = code_.get_for(n)) return code->run(ptrs, n, numbers);
    program_.run(ptrs, n, numbers);
  }
  bool is_machine_code() const noexcept final { return code_.get() != nullptr; }

 private:
  Program program_;
  MachineCode code_;
};

}  // namespace tenon::cpu
