#include "tenon/core/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/core/interrupt.h"

#ifdef TENON_OPENMP
#include <omp.h>
#endif

namespace tenon {
namespace {

thread_local bool t_in_parallel = false;

int threads_from_environment() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const int n = std::atoi(text);
    if (n >= 1) return n;
  }
  // Of more threads than the process may use processors, some wait for others at the end of every range.
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{threads_from_environment()};
  return count;
}

std::atomic<bool> g_forked_child{false};
[[maybe_unused]] const int g_noticed_when_forked =
    pthread_atfork(nullptr, nullptr, [] { g_forked_child = true; });

// The first error of any range, kept until every range is done.
class FirstError {
 public:
  template <class F>
  void run(F&& f) noexcept {
    try {
      f();
    } catch (...) {
      if (!taken_.test_and_set()) error_ = std::current_exception();
    }
  }
  bool has() const noexcept { return taken_.test(std::memory_order_relaxed); }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::exception_ptr error_;
};

/// A range is run in pieces, between which an interrupt is asked for: of at least so many times the grain,
/// and not more of them than this.
constexpr int64_t kGrainsOfPiece = 16, kMostPieces = 64;

/// Calls f for the pieces of a range until `ends` says so.
template <class F, class Ends>
void in_pieces(int64_t begin, int64_t end, int64_t grain, F&& f, Ends&& ends) {
  const int64_t piece = std::max(std::max<int64_t>(grain, 1) * kGrainsOfPiece, (end - begin) / kMostPieces);
  while (begin < end && !ends()) {
    check_interrupt();
    const int64_t stop = end - begin < 2 * piece ? end : begin + piece;  // none is smaller than a piece
    f(begin, stop);
    begin = stop;
  }
}

/// The error of the loop that this thread is in.
thread_local const FirstError* t_error = nullptr;

struct ParallelScope {
  explicit ParallelScope(const FirstError& error) noexcept {
    t_in_parallel = true;
    t_error = &error;
  }
  ~ParallelScope() {
    t_in_parallel = false;
    t_error = nullptr;
  }
};

/// Ends a thread's part of a loop in which there is an error already.
struct Ended {};

}  // namespace

int num_threads() noexcept { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  TENON_CHECK(n >= 1, Value, "set_num_threads: expected at least 1, got " + std::to_string(n));
  thread_count().store(n, std::memory_order_relaxed);
}

bool in_parallel_region() noexcept { return t_in_parallel; }
void check_stop() {
  check_interrupt();
  if (t_error && t_error->has()) throw Ended();
}

bool in_forked_child() noexcept { return g_forked_child.load(std::memory_order_relaxed); }

#ifdef TENON_OPENMP
OpenMpThreads::OpenMpThreads() noexcept
    : count_(t_in_parallel ? 1 : num_threads()), before_(omp_get_max_threads()) {
  if (count_ != before_) omp_set_num_threads(count_);
}

OpenMpThreads::~OpenMpThreads() {
  if (count_ != before_) omp_set_num_threads(before_);
}
#else
OpenMpThreads::OpenMpThreads() noexcept : count_(t_in_parallel ? 1 : num_threads()), before_(count_) {}
OpenMpThreads::~OpenMpThreads() = default;
#endif

namespace detail {

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFunction f, void* context) {
  const int64_t total = end - begin;
  const int64_t most = (total + std::max<int64_t>(grain, 1) - 1) / std::max<int64_t>(grain, 1);
  const int64_t ranges = std::min<int64_t>(num_threads(), most);
  const auto call = [&](int64_t b, int64_t e) { f(context, b, e); };
  if (t_in_parallel) return f(context, begin, end);
  if (ranges <= 1 || in_forked_child()) return in_pieces(begin, end, grain, call, [] { return false; });

  FirstError error;
  const auto run = [&](int64_t i) {
    const ParallelScope scope(error);
    const int64_t b = begin + total * i / ranges, e = begin + total * (i + 1) / ranges;
    error.run([&] { in_pieces(b, e, grain, call, [&] { return error.has(); }); });
  };
#ifdef TENON_OPENMP
#pragma omp parallel for num_threads(static_cast <int>(ranges)) schedule(static, 1)
  for (int64_t i = 0; i < ranges; ++i) run(i);
#else
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < ranges; ++i) threads.emplace_back(run, i);
  run(0);
  for (auto& t : threads) t.join();
#endif
  error.rethrow();
}

}  // namespace detail
}  // namespace tenon
