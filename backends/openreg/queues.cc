#include "queues.h"

#include <stdexcept>
#include <vector>

namespace openreg {

Queues::Queues(Mode mode, uint64_t seed) : mode_(mode), random_(seed) {}

Queues::Queue& Queues::queue(QueueKey key) {
  const auto [found, is_new] = queues_.try_emplace(key);
  if (is_new && mode_ == Mode::Thread && !stopping_)
    found->second.thread = std::thread([this, key] { serve(key); });
  return found->second;
}

uint64_t Queues::new_stream(int32_t index) {
  const Lock lock(mutex_);
  queue({index, ++last_id_});
  return last_id_;
}

void Queues::free_stream(QueueKey key) {
  if (key.second == 0) throw std::logic_error("openreg: the default stream was freed");
  // Events may mark places in the queue, so its counts stay; an idle queue costs little.
  wait(key);
}

void Queues::give(QueueKey key, Task task) {
  Lock lock(mutex_);
  const auto capture = captures_.find(key);
  if (capture != captures_.end()) return capture->second.push_back(std::move(task));
  give(lock, key, {std::move(task), {}});
}

void Queues::begin_capture(QueueKey key) {
  const Lock lock(mutex_);
  if (!captures_.try_emplace(key).second)
    throw std::logic_error("openreg: the stream is being captured already");
}

std::vector<Task> Queues::end_capture(QueueKey key) {
  const Lock lock(mutex_);
  const auto capture = captures_.find(key);
  if (capture == captures_.end()) throw std::logic_error("openreg: the stream is not being captured");
  std::vector<Task> tasks = std::move(capture->second);
  captures_.erase(capture);
  return tasks;
}

uint64_t Queues::waits() {
  const Lock lock(mutex_);
  return waits_;
}

void Queues::give(Lock& lock, QueueKey key, Step step) {
  if (stopping_) throw std::logic_error("openreg: work was given to a device that is shut down");
  Queue& q = queue(key);
  q.steps.push_back(std::move(step));
  ++q.given;
  if (mode_ == Mode::Sync) reach(lock, {key, q.given});
  if (mode_ == Mode::Thread) changed_.notify_all();
  if (mode_ == Mode::Random) {
    for (uint64_t steps = random_() % 3; steps > 0 && run_any(lock); --steps) {
    }
  }
}

void Queues::wait(QueueKey key) {
  Lock lock(mutex_);
  check_not_captured(key);
  ++waits_;
  reach(lock, {key, queue(key).given});
}

void Queues::check_not_captured(QueueKey key) const {
  if (captures_.count(key) > 0) throw std::logic_error("openreg: the stream is being captured");
}

uint64_t Queues::new_event(bool timed) {
  const Lock lock(mutex_);
  events_[++last_id_].time = timed ? std::make_shared<Clock::time_point>() : nullptr;
  return last_id_;
}

void Queues::free_event(uint64_t event) {
  const Lock lock(mutex_);
  events_.erase(event);
}

void Queues::record(uint64_t event, QueueKey key) {
  Lock lock(mutex_);
  check_not_captured(key);
  Event& recorded = events_.at(event);
  if (recorded.time) give(lock, key, {[time = recorded.time] { *time = Clock::now(); }, {}});
  events_.at(event).place = {key, queue(key).given};
}

double Queues::elapsed(uint64_t begin, uint64_t end) {
  const Lock lock(mutex_);
  const Event &first = events_.at(begin), &last = events_.at(end);
  if (!first.time || !last.time) throw std::logic_error("openreg: an event without a time");
  return std::chrono::duration<double, std::milli>(*last.time - *first.time).count();
}

void Queues::wait_for(QueueKey key, uint64_t event) {
  Lock lock(mutex_);
  check_not_captured(key);
  const Place place = events_.at(event).place;
  if (!reached(place)) give(lock, key, {nullptr, place});
}

void Queues::wait(uint64_t event) {
  Lock lock(mutex_);
  ++waits_;
  reach(lock, events_.at(event).place);
}

bool Queues::reached(uint64_t event) {
  Lock lock(mutex_);
  // Asking is all that a caller may do for the work to go on.
  if (mode_ == Mode::Random || mode_ == Mode::Lazy) run_any(lock);
  return reached(events_.at(event).place);
}

bool Queues::reached(const Place& place) { return place.count == 0 || queue(place.key).done >= place.count; }

bool Queues::ready(const Queue& queue) {
  return !queue.running && !queue.steps.empty() &&
         (queue.steps.front().run || reached(queue.steps.front().after));
}

void Queues::run_first(Lock& lock, Queue& queue) {
  const Step step = std::move(queue.steps.front());
  queue.steps.pop_front();
  if (step.run) {
    queue.running = true;
    lock.unlock();
    step.run();
    lock.lock();
    queue.running = false;
  }
  ++queue.done;
  changed_.notify_all();
}

void Queues::reach(Lock& lock, const Place& place) {
  while (!reached(place) && !stopping_) {
    Queue& q = queue(place.key);
    if (mode_ == Mode::Thread || q.running) {
      changed_.wait(lock);
    } else if (mode_ == Mode::Random) {
      if (!run_any(lock)) changed_.wait(lock);
    } else if (ready(q)) {
      run_first(lock, q);
    } else {
      reach(lock, Place(q.steps.front().after));
    }
  }
}

bool Queues::run_any(Lock& lock) {
  std::vector<Queue*> able;
  for (auto& [key, q] : queues_) {
    if (ready(q)) able.push_back(&q);
  }
  if (able.empty()) return false;
  run_first(lock, *able[random_() % able.size()]);
  return true;
}

void Queues::serve(QueueKey key) {
  Lock lock(mutex_);
  Queue& q = queues_.at(key);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || ready(q); });
    if (stopping_) return;
    run_first(lock, q);
  }
}

void Queues::stop() noexcept {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (auto& [key, q] : queues_) {
    if (q.thread.joinable()) q.thread.join();
  }
}

}  // namespace openreg
