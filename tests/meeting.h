// Threads that wait for each other: what tests of several devices' hooks share.
#pragma once

#include <condition_variable>
#include <mutex>

namespace tenon::testing {

/// Threads that come go on in pairs: neither without the other. (std::barrier is for a fixed set of threads.)
class Meeting {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    const int pair_ends = (++come_ + 1) / 2 * 2;
    changed_.notify_all();
    changed_.wait(lock, [&] { return come_ >= pair_ends; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int come_ = 0;
};

}  // namespace tenon::testing
