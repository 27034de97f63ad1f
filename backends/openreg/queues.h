// Queues: the streams and events of all devices of one openreg. When tasks run depends on the mode; in every
// mode the tasks of a queue run in order, and a task that waits for an event runs after what the event marks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace openreg {

enum class Mode {
  Thread,  ///< A thread for each queue runs its tasks as soon as it can.
  Sync,    ///< A task runs before the call that gave it returns.
  Lazy,    ///< Tasks run only when something waits for them: what no event orders runs too late, every time.
  Random   ///< Tasks run one by one, of queues drawn at random, some at each call: other orders with other
           ///< seeds.
};

/// A device's index and a stream's id, 0 for the default stream.
using QueueKey = std::pair<int32_t, uint64_t>;
using Task = std::function<void()>;

class Queues {
 public:
  Queues(Mode mode, uint64_t seed);
  ~Queues() { stop(); }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  uint64_t new_stream(int32_t index);
  /// What was given to the stream still runs.
  void free_stream(QueueKey key);
  /// A task may not throw.
  void give(QueueKey key, Task task);
  /// Returns when all tasks given so far have run.
  void wait(QueueKey key);

  /// `timed`: when the work has run is noted.
  uint64_t new_event(bool timed);
  /// What waits for the event already keeps waiting.
  void free_event(uint64_t event);
  void record(uint64_t event, QueueKey key);
  /// What is given to `key` from now on runs after the event.
  void wait_for(QueueKey key, uint64_t event);
  void wait(uint64_t event);
  bool reached(uint64_t event);
  /// Milliseconds between two timed events that were reached.
  double elapsed(uint64_t begin, uint64_t end);

  /// From now on, what is given to the queue is recorded and does not run.
  void begin_capture(QueueKey key);
  /// What was recorded.
  std::vector<Task> end_capture(QueueKey key);

  /// How often the host has waited for a queue or an event.
  uint64_t waits();

  /// Ends all threads; tasks that have not run are dropped. Nothing may be given afterwards.
  void stop() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  /// The first `count` tasks of a queue; every task has run at count 0.
  struct Place {
    QueueKey key;
    uint64_t count = 0;
  };
  struct Event {
    Place place;
    std::shared_ptr<Clock::time_point> time;  // of a timed one, written by a task
  };
  struct Step {
    Task run;  // Empty: waits for `after`.
    Place after;
  };
  struct Queue {
    std::deque<Step> steps;
    uint64_t given = 0, done = 0;
    bool running = false;
    std::thread thread;
  };
  using Lock = std::unique_lock<std::mutex>;

  Queue& queue(QueueKey key);
  void check_not_captured(QueueKey key) const;
  void give(Lock& lock, QueueKey key, Step step);
  bool reached(const Place& place);
  /// Whether the queue's first step can run now.
  bool ready(const Queue& queue);
  /// Runs the first step, unlocked meanwhile.
  void run_first(Lock& lock, Queue& queue);
  /// Returns when the place is reached; in modes without threads, the caller runs what that takes.
  void reach(Lock& lock, const Place& place);
  /// Runs a step of a queue drawn at random; false if none can run.
  bool run_any(Lock& lock);
  void serve(QueueKey key);

  const Mode mode_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<QueueKey, Queue> queues_;  // nodes stay where they are
  std::map<uint64_t, Event> events_;
  std::map<QueueKey, std::vector<Task>> captures_;
  uint64_t waits_ = 0;
  uint64_t last_id_ = 0;
  bool stopping_ = false;
};

}  // namespace openreg
