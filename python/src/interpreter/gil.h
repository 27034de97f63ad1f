// HoldGil and ReleaseGil take and release the interpreter lock for a scope. Threads take the lock here only:
// a thread gets it or, once the interpreter has begun to shut down, stops for good. Used by every file of the
// extension module. Independent of tensors.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <utility>

namespace tenon::python {

/// Whether the interpreter is shutting down. Stays true once it is gone.
inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Whether the calling thread holds the interpreter lock. False on every thread once the interpreter is gone.
bool holds_gil() noexcept;

/// Holds the interpreter lock for a scope, on any thread. Costs one check if the thread holds it already. A
/// thread that asks for it during or after the interpreter's shutdown waits for the end of the process.
class HoldGil {
 public:
  HoldGil() noexcept {
    if (!holds_gil()) ask();
  }
  ~HoldGil() {
    if (asked_) give_back();
  }
  HoldGil(const HoldGil&) = delete;

 private:
  void ask() noexcept;
  void give_back() noexcept;

  PyGILState_STATE state_{};
  bool asked_ = false;
  bool was_computing_ = false;
};

/// Runs `f`, which releases Python objects, with the lock, on any thread. Does nothing once the interpreter
/// has begun to shut down: the objects are then freed with the process.
template <class F>
void if_interpreter_lives(F&& f) noexcept {
  if (!Py_IsInitialized()) return;
  const HoldGil gil;
  std::forward<F>(f)();
}

/// Releases the interpreter lock for a scope if `release` is true, so that other threads run during long
/// work. Threads that compute without the lock are counted, and the process exits only after they have
/// finished, because libraries such as libgomp and oneDNN free their memory at exit.
class ReleaseGil {
 public:
  /// The thread that shuts the interpreter down keeps the lock.
  explicit ReleaseGil(bool release = true) noexcept {
    if (release && !is_finalizing()) give();
  }
  ~ReleaseGil() {
    if (state_) take_back();
  }
  ReleaseGil(const ReleaseGil&) = delete;

 private:
  void give() noexcept;
  void take_back() noexcept;

  PyThreadState* state_ = nullptr;
};

/// What `f` returns, which runs without the interpreter lock if `release` is true.
template <class F>
auto without_gil(bool release, F&& f) {
  const ReleaseGil released(release);
  return std::forward<F>(f)();
}
template <class F>
auto without_gil(F&& f) {
  return without_gil(true, std::forward<F>(f));
}

/// Says that this thread, which does not hold the lock, computes or that it waits; returns what it did
/// before. The process exits only after threads that compute have finished.
bool set_computing(bool on) noexcept;

/// A call on at least this many elements releases the interpreter lock, unless it makes a view; for smaller
/// ones, releasing it costs more than the work. docs/differences.md documents it.
inline constexpr int64_t kReleaseGilElements = 32768;

/// Has Python's signal handlers run between the steps of long work on the main thread, which releases the
/// lock: what they raise, KeyboardInterrupt say, ends the work. Called once, when the module is made.
void answer_interrupts() noexcept;

/// Makes the interpreter's shutdown wait for threads that ask for the lock, and the process's exit wait for
/// threads that compute. Called once, when the module is made. False with an exception set on failure.
bool watch_interpreter_end() noexcept;

}  // namespace tenon::python
