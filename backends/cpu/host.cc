#include "tenon/iter/host.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/cpu_target.h"
#include "backends/cpu/jit/jit.h"
#include "backends/cpu/pointwise/interpreter.h"
#include "backends/cpu/pointwise/printed_kernels.h"
#include "backends/cpu/pointwise/streaming.h"

namespace tenon {

namespace {

bool wants_code() {
  static const bool wanted = [] {
    const char* text = std::getenv("TENON_JIT");
    return !text || std::string_view(text) != "0";
  }();
  return wanted;
}

// A program for the interpreter, and machine code once it has run for long enough to pay for that.
class Compiled final : public HostProgram {
 public:
  explicit Compiled(const expr::Expression& e)
      : program_(e), expression_(expr::make_expression(expr::parts_of(e))), decided_(!wants_code()) {}
  ~Compiled() override { delete code_.load(std::memory_order_relaxed); }

  void run(void* const* ptrs, size_t n, const void* numbers) const final {
    if (const cpu::JitKernel* code = code_.load(std::memory_order_acquire))
      return code->run(ptrs, n, numbers);
    if (!decided_.load(std::memory_order_relaxed) &&
        elements_.fetch_add(n, std::memory_order_relaxed) + n >= kElements)
      make_code();
    program_.run(ptrs, n, numbers);
  }
  bool is_machine_code() const noexcept final { return code_.load(std::memory_order_relaxed) != nullptr; }

 private:
  // Of some 0.3 ns that an element costs more here than in machine code, as many as its making takes.
  static constexpr size_t kElements = size_t{1} << 17;

  void make_code() const {
    if (decided_.exchange(true, std::memory_order_relaxed)) return;
    const cpu::CpuTarget target = cpu::cpu_target();
    if (cpu::jit_refusal(*expression_, target).empty())
      code_.store(cpu::JitKernel::make(*expression_, target).release(), std::memory_order_release);
  }

  cpu::Program program_;
  expr::ExpressionPtr expression_;
  mutable std::atomic<size_t> elements_{0};
  mutable std::atomic<bool> decided_;
  mutable std::atomic<const cpu::JitKernel*> code_{nullptr};
};

std::unique_ptr<const HostProgram> compile(const expr::Expression& e) {
  return std::make_unique<const Compiled>(e);
}

void split_pairs(void* first, void* second, const void* src, size_t n, size_t item) {
  cpu::row_kernels().split_pairs[item == 8](first, second, src, n);
}

void join_pairs(void* dst, const void* first, const void* second, size_t n, size_t item) {
  cpu::row_kernels().join_pairs[item == 8](dst, first, second, n);
}

void transpose(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, size_t rows,
               size_t columns, size_t item) {
  const size_t size = cpu::element_size_index(static_cast<int64_t>(item));
  cpu::row_kernels().transpose[size](dst, dst_stride, src, src_stride, rows, columns);
}

}  // namespace

constinit const HostBackend kHost{
    &cpu::convert_fn,   &cpu::find_printed_kernel, &compile,     &cpu::cpu_target_name,
    &cpu::streams_from, &cpu::run_streaming,       &split_pairs, &join_pairs,
    &transpose};

}  // namespace tenon
