// parallel_for: splits a loop over threads. Tenon uses several threads in no other way, but for libraries
// that bring a loop of their own (OpenMpThreads). Used by the iterator and by kernels. Nests safely (an inner
// loop runs on its caller's thread), rethrows the first exception, and works in a forked child.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tenon {

/// The number of threads that parallel_for may use: unless set, OMP_NUM_THREADS or the number of cores.
int num_threads() noexcept;
/// Throws Error{Value} unless n >= 1.
void set_num_threads(int n);
/// Whether this thread is inside a parallel_for.
bool in_parallel_region() noexcept;
/// Whether this process was forked from one that had loaded Tenon. Threads do not survive a fork, and
/// libraries that wait for theirs (libgomp) would hang, so a forked child runs everything on the
/// calling thread.
bool in_forked_child() noexcept;

/// While alive, parallel regions that another library (oneDNN) begins on this thread have as many threads
/// as parallel_for would use here. Without OpenMP it does nothing.
class OpenMpThreads {
 public:
  OpenMpThreads() noexcept;
  ~OpenMpThreads();
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

  int count() const noexcept { return count_; }

 private:
  int count_, before_;
};

/// For work that is long within one range of parallel_for, or outside of any: asks between its steps, of some
/// microseconds at least, whether to go on. Throws what an interrupt's answer throws (interrupt.h); where
/// another thread of the loop has thrown, an exception that ends at the loop.
void check_stop();

namespace detail {
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFunction f, void* context);
}  // namespace detail

/// Calls f(b, e) for ranges that cover [begin, end), each of at least `grain` except the last, on several
/// threads when there is more than one range. The way the range is cut must not change any result: callers
/// split over outputs only.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (end - begin <= grain) {
    if (begin < end) f(begin, end);
    return;
  }
  detail::parallel_for(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<F>*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace tenon
