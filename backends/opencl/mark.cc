#include "mark.h"

#include "tenon/abi/plugin.h"

namespace opencl {
namespace {

namespace abi = tenon::abi;

/// A marker after all that the queue has, or after `after` alone. It is submitted, so that others may wait.
Event new_marker(cl_command_queue queue, cl_event after) {
  cl_event marker = nullptr;
  check(clEnqueueMarkerWithWaitList(queue, after ? 1 : 0, after ? &after : nullptr, &marker),
        "clEnqueueMarkerWithWaitList");
  Event owned(marker);
  check(clFlush(queue), "clFlush");
  return owned;
}

Event another(const Event& event) {
  if (event) clRetainEvent(event.get());
  return Event(event.get());
}

}  // namespace

void Mark::record(cl_command_queue queue) {
  Event event = new_marker(queue, nullptr);
  if (timing_) {
    event = new_marker(timing_.get(), event.get());
    const cl_event list[] = {event.get()};
    check(clEnqueueBarrierWithWaitList(queue, 1, list, nullptr), "clEnqueueBarrierWithWaitList");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  event_ = std::move(event);
}

Event Mark::get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return another(event_);
}

cl_ulong Mark::time() {
  const Event event = timing_ ? get() : nullptr;
  if (!event) throw abi::Error(TENON_ERROR_RUNTIME, "an event without a time");
  const cl_event list[] = {event.get()};
  check(clWaitForEvents(1, list), "clWaitForEvents");
  cl_ulong nanoseconds = 0;
  check(clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof nanoseconds, &nanoseconds,
                                nullptr),
        "clGetEventProfilingInfo");
  return nanoseconds;
}

double Mark::milliseconds(Mark& begin, Mark& end) {
  const cl_ulong first = begin.time(), last = end.time();
  return last >= first ? static_cast<double>(last - first) / 1e6 : -static_cast<double>(first - last) / 1e6;
}

}  // namespace opencl
