#include "tenon/core/kernel_report.h"

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tenon/core/thread_state.h"

namespace tenon {
namespace {

struct Records {
  std::mutex mutex;
  std::vector<KernelCount> counts;
};
Records& records() {
  static auto& r = *new Records;
  return r;
}

thread_local KernelReport t_last;

}  // namespace

namespace detail {

std::atomic<bool> kernel_reporting_on{false};

void record_kernel(const char* op, const char* kernel) {
  t_last = {op, kernel};
  Records& r = records();
  const std::lock_guard lock(r.mutex);
  const uint64_t outside = thread_state.trace_depth == 0;
  for (KernelCount& c : r.counts) {
    if (std::strcmp(c.report.op, op) == 0 && std::strcmp(c.report.kernel, kernel) == 0) {
      ++c.calls;
      c.outside += outside;
      return;
    }
  }
  r.counts.push_back({{op, kernel}, 1, outside});
}

}  // namespace detail

void set_kernel_reporting(bool on) {
  Records& r = records();
  const std::lock_guard lock(r.mutex);
  if (on) {
    r.counts.clear();
    t_last = {};
  }
  detail::kernel_reporting_on.store(on, std::memory_order_relaxed);
}

KernelReport last_kernel() noexcept { return t_last; }

std::vector<KernelCount> kernel_counts() {
  Records& r = records();
  const std::lock_guard lock(r.mutex);
  return r.counts;
}

const char* lasting_text(std::string text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(std::move(text)).first->c_str();
}

}  // namespace tenon
