#include "tenon/autograd/workers.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace tenon::autograd {
namespace {

std::atomic<uint32_t> forks{0};
constinit ThreadBinding binding;

/// The workers of one device. Never destroyed: they wait in it when the process ends.
class Workers {
 public:
  void run(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (idle_ >= jobs_.size()) return came_.notify_one();
    try {
      std::thread([this] { serve(); }).detach();
    } catch (...) {
      jobs_.pop_back();
      throw;
    }
    ++idle_;
  }

 private:
  void serve() {
    const uint32_t born = fork_count();
    std::unique_lock lock(mutex_);
    while (fork_count() == born) {
      came_.wait(lock, [&] { return !jobs_.empty(); });
      --idle_;
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      {
        const Computing computing(true);
        job();
      }
      job = nullptr;
      // A job may fork: its thread goes on in the child, where there is nothing to come back to.
      if (fork_count() != born) return;
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;  // threads that wait, or are about to
};

/// Those of all devices.
struct AllWorkers {
  std::mutex mutex;
  std::map<std::pair<Backend, int8_t>, Workers> of;
};
std::atomic<AllWorkers*> all_workers{nullptr};

[[maybe_unused]] const int watches_forks = pthread_atfork(nullptr, nullptr, [] {
  forks.fetch_add(1, std::memory_order_relaxed);
  // The threads are gone, and what they had locked stays locked.
  all_workers.store(nullptr, std::memory_order_relaxed);
});

Workers& workers_of(Device device) {
  AllWorkers* all = all_workers.load(std::memory_order_acquire);
  if (!all) {
    auto* made = new AllWorkers;
    if (all_workers.compare_exchange_strong(all, made, std::memory_order_acq_rel))
      all = made;
    else
      delete made;
  }
  const std::lock_guard lock(all->mutex);
  return all->of[{device.backend, device.index}];
}

}  // namespace

void run_on_worker(Device device, std::function<void()> job) { workers_of(device).run(std::move(job)); }

uint32_t fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

void set_thread_binding(const ThreadBinding& value) noexcept { binding = value; }

bool may_use_workers() noexcept { return !binding.is_ending || !binding.is_ending(); }

Computing::Computing(bool on) noexcept {
  if (binding.set_computing) before_ = binding.set_computing(on);
}
Computing::~Computing() {
  if (binding.set_computing) binding.set_computing(before_);
}

}  // namespace tenon::autograd
