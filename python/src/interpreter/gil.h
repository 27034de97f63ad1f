// HoldGil and ReleaseGil: the interpreter lock as scopes. The one place where a thread asks for the lock: it
// gets it, or, once the interpreter has begun to end, never comes back. Used by every file of the extension
// module. Knows nothing of tensors.
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

/// Holds the interpreter lock, from any thread. A thread that has it already keeps it, at the cost of a look.
/// A thread that asks for it while the interpreter shuts down, or afterwards, waits for the end of the
/// process.
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

/// Runs `f`, which lets go of Python objects, with the lock, on whatever thread. Does nothing once the
/// interpreter has begun to end: the process takes back what `f` would have freed.
template <class F>
void if_interpreter_lives(F&& f) noexcept {
  if (!Py_IsInitialized()) return;
  const HoldGil gil;
  std::forward<F>(f)();
}

/// Gives the interpreter lock to other threads where `release` says that the work is worth it. Threads that
/// compute without the lock are counted: the process ends only once they have finished, because libraries
/// such as OpenBLAS take their memory back while it ends.
class ReleaseGil {
 public:
  /// While the interpreter shuts down, the thread that does it keeps the lock.
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

/// A call that works on at least so many elements lets other Python threads run meanwhile. Below it, handing
/// the lock over costs more than the work. docs/differences.md states it.
inline constexpr int64_t kReleaseGilElements = 32768;

/// Has the interpreter's end wait for threads that ask for the lock, and the process's end for those that
/// compute. Called once, when the module is made. False with an exception set.
bool watch_interpreter_end() noexcept;

}  // namespace tenon::python
