// Interruption of long work: a request, made by a signal handler, and the question whether there is one,
// asked between chunks of parallel_for, blocks of a product and nodes of a backward pass. The program
// decides what an interrupt means, by a function that throws. Independent of signals and of Python.
#pragma once

#include <atomic>

namespace tenon {

namespace detail {
extern std::atomic<bool> interrupt_requested;
void answer_interrupt();
}  // namespace detail

/// Has work ask for an answer at its next step. For signal handlers.
inline void request_interrupt() noexcept {
  detail::interrupt_requested.store(true, std::memory_order_relaxed);
}

/// Throws what the program's function throws, if an interrupt was requested. Costs a load otherwise.
inline void check_interrupt() {
  if (detail::interrupt_requested.load(std::memory_order_relaxed)) [[unlikely]]
    detail::answer_interrupt();
}

/// What exceptions of interrupted work derive from: tensors that the work has written in part count as
/// written.
struct Interruption {};

/// Says what answers a request: a function that returns false on threads whose work goes on (the request
/// stays, for the thread that it is meant for), and on the others throws an Interruption, or returns true to
/// go on. Null: nothing does.
using InterruptAnswer = bool (*)();
void set_interrupt_answer(InterruptAnswer answer) noexcept;

/// While alive, nothing on this thread is interrupted: for work that others rely on.
class Uninterrupted {
 public:
  Uninterrupted() noexcept;
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace tenon
