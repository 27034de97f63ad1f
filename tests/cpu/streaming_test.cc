// Results that go past the caches are those of a plain call, at every distance from a line of the cache.
#include "backends/cpu/pointwise/streaming.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/copy/row_kernels.h"

namespace tenon::cpu {
namespace {

template <class T>
void twice_and_add(void* const* ptrs, size_t n, const void* numbers, uint32_t /*repeated*/ = 0) {
  T number;
  std::memcpy(&number, numbers, sizeof number);
  for (size_t i = 0; i < n; ++i)
    static_cast<T*>(ptrs[0])[i] =
        2 * static_cast<const T*>(ptrs[1])[i] + static_cast<const T*>(ptrs[2])[i] + number;
}

template <class T>
void results_are_those_of_a_plain_call() {
  const HostKernel kernel{&twice_and_add<T>, nullptr};
  const T number = 3;
  for (const size_t n : {0, 1, 7, 15, 16, 17, 100, 1023, 1024, 1025, 5000}) {
    for (size_t offset = 0; offset < 20; offset += 3) {
      std::vector<T> a(n + 20), b(n + 20), out(n + 40, T(-1)), expected;
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i), b[i] = static_cast<T>(7 * i % 11);
      expected = out;
      void* ptrs[] = {expected.data() + offset, a.data() + offset, b.data() + 1};
      twice_and_add<T>(ptrs, n, &number);
      ptrs[0] = out.data() + offset;
      run_streaming(kernel, ptrs, 3, sizeof(T), n, &number);
      EXPECT_EQ(out, expected) << n << " at " << offset;
    }
  }
}

TEST(Streaming, ResultsAreThoseOfAPlainCall) {
  results_are_those_of_a_plain_call<float>();
  results_are_those_of_a_plain_call<double>();
  results_are_those_of_a_plain_call<int32_t>();
  results_are_those_of_a_plain_call<int64_t>();
}

TEST(Streaming, EveryInstructionSetCopiesWhatItIsGiven) {
  for (const CpuTarget target : supported_cpu_targets()) {
    const RowKernels& kernels = row_kernels(target);
    for (const size_t bytes : {0, 1, 63, 64, 65, 128, 300, 4096}) {
      for (size_t offset = 0; offset < 70; offset += 7) {
        std::vector<char> from(bytes), out(bytes + 140, 'x'), expected = out;
        for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<char>(i);
        std::copy(from.begin(), from.end(), expected.begin() + static_cast<ptrdiff_t>(offset));
        kernels.stream(out.data() + offset, from.data(), bytes);
        kernels.end_stream();
        EXPECT_EQ(out, expected) << name(target) << " " << bytes << " at " << offset;
      }
    }
  }
}

TEST(Streaming, BeginsBeyondTheSecondLevelCache) { EXPECT_GE(streams_from(), size_t{1} << 17); }

}  // namespace
}  // namespace tenon::cpu
