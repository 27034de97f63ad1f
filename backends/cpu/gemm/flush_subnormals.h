// Arithmetic of this thread without subnormal numbers, as matrix units compute. Used by products of bfloat16.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon::cpu {

/// While it lives, subnormal operands and results are zeros of their sign. The compiler does not know: what
/// is to be computed so must be in a function that is not inlined.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(static_cast<unsigned>(before_) | kFlushAndZero); }
  ~FlushSubnormals() { _mm_setcsr(static_cast<unsigned>(before_)); }
#else
  FlushSubnormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | kFlushToZero));
  }
  ~FlushSubnormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  static constexpr unsigned kFlushAndZero = 0x8040;            // MXCSR: results, and operands
  static constexpr uint64_t kFlushToZero = uint64_t{1} << 24;  // FPCR: both
  uint64_t before_ = 0;
};

}  // namespace tenon::cpu
