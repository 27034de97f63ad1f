#include "tenon/core/interrupt.h"

namespace tenon {
namespace {

std::atomic<InterruptAnswer> g_answer{nullptr};
thread_local int t_uninterrupted = 0;

}  // namespace

namespace detail {

std::atomic<bool> interrupt_requested{false};

void answer_interrupt() {
  const InterruptAnswer answer = g_answer.load();
  if (!answer || t_uninterrupted > 0) return;
  // Lowered first: a signal that comes while this one is answered is asked for again.
  interrupt_requested.store(false);
  if (!answer()) interrupt_requested.store(true);
}

}  // namespace detail

void set_interrupt_answer(InterruptAnswer answer) noexcept { g_answer = answer; }

Uninterrupted::Uninterrupted() noexcept { ++t_uninterrupted; }
Uninterrupted::~Uninterrupted() { --t_uninterrupted; }

}  // namespace tenon
