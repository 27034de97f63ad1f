// Mark: an event of Tenon's, which marks one place of a queue after another, and on request when it was
// reached. Used by Backend.
#pragma once

#include <mutex>

#include "driver.h"

namespace opencl {

class Mark {
 public:
  /// `timing`: an in-order queue of its own that profiles, for a mark that notes times; else null.
  explicit Mark(Queue timing) noexcept : timing_(std::move(timing)) {}

  /// Marks the end of the queue's work so far.
  void record(cl_command_queue queue);
  /// What it marks now, with a reference of its own; null before it is recorded.
  Event get();
  /// Milliseconds from one mark's place to another's, on one device; waits until both were reached. Throws
  /// abi::Error{RUNTIME} where a mark notes no times.
  static double milliseconds(Mark& begin, Mark& end);

 private:
  cl_ulong time();

  // A queue that profiles would cost all that it runs. Instead a marker of `timing_` waits for the marker of
  // the queue, and its time is taken. Whatever comes after the mark waits for it: later work of the queue,
  // and all that waits for the event. So the times of two marks have the order of the marks.
  const Queue timing_;
  std::mutex mutex_;  // of what follows
  Event event_;       // null before it is recorded
};

}  // namespace opencl
