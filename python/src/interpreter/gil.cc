#include "python/src/interpreter/gil.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#ifdef TENON_PARK_ENDED_THREADS
#include <unwind.h>
#endif

#include <atomic>
#include <chrono>
#include <thread>

#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/source_lines.h"
#include "tenon/core/interrupt.h"

namespace tenon::python {
namespace {

/// Threads that compute without the lock, and threads that are about to have it.
std::atomic<int> g_computing{0}, g_asking{0};
thread_local bool t_computing = false, t_asking = false;

void begin(std::atomic<int>& count, bool& mine) noexcept {
  mine = true;
  count.fetch_add(1);
}
void end(std::atomic<int>& count, bool& mine) noexcept {
  mine = false;
  count.fetch_sub(1);
}

/// Stops the thread until the process ends.
[[noreturn]] void park() noexcept {
  if (t_computing) end(g_computing, t_computing);
  if (t_asking) end(g_asking, t_asking);
  for (;;) pause();
}

/// Takes the lock by `take`, which may end the thread: see the personality routine below.
template <class F>
auto ask_by(F&& take) noexcept {
  // Counted first: if the interpreter begins to end after the look, its end waits for this thread.
  begin(g_asking, t_asking);
  if (is_finalizing()) park();
  auto result = take();
  end(g_asking, t_asking);
  return result;
}

/// Not for ever, because an exit that hangs is worse than one that fails.
void wait_for_none(const std::atomic<int>& count) noexcept {
  using namespace std::chrono;
  const auto limit = steady_clock::now() + seconds(30);
  while (count.load() > 0 && steady_clock::now() < limit) std::this_thread::sleep_for(milliseconds(1));
}

/// Runs while the interpreter's dictionary is cleared: the interpreter has said that it ends, and its locks
/// and thread states are still there. Threads that wait for the lock now are sent away within milliseconds.
void wait_for_askers(PyObject*) {
  if (is_finalizing()) wait_for_none(g_asking);
}

/// Runs when the interpreter is gone: threads that still compute cannot start anything else, and end soon.
void wait_for_kernels() { wait_for_none(g_computing); }

// Python notes a signal in its C handler and runs the handler in Python when the main thread next runs
// Python's code, which it does not before a kernel has ended. So while this thread computes without the lock,
// a handler of ours comes before Python's: it asks the kernel to stop between two steps, where Python is
// asked what to do.

struct sigaction g_pythons_action;

void note_interrupt(int number) {
  request_interrupt();
  g_pythons_action.sa_handler(number);
}

/// Where Python's handlers run; set when the module is made, which most often happens there.
pthread_t g_main_thread;
bool g_knows_main_thread = false;

bool is_main_thread() noexcept { return g_knows_main_thread && pthread_equal(pthread_self(), g_main_thread); }

/// Puts our handler before the one that is there: Python's, which signal.signal sets again. A program without
/// one ends or goes on as the system has it.
void watch_interrupts() noexcept {
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO)) return;
  if (now.sa_handler == &note_interrupt || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
  g_pythons_action = now;
  now.sa_handler = &note_interrupt;
  sigaction(SIGINT, &now, nullptr);
}

/// Runs Python's handlers; false on the threads that they do not run on.
bool run_handlers() {
  if (!is_main_thread()) return false;
  const HoldGil gil;
  if (PyErr_CheckSignals() < 0) throw_python_interruption();
  return true;
}

}  // namespace

void answer_interrupts() noexcept {
  g_main_thread = pthread_self();
  g_knows_main_thread = gettid() == getpid();
  set_interrupt_answer(&run_handlers);
}

bool holds_gil() noexcept {
  PyThreadState* own = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
  return own && own == PyThreadState_GetUnchecked();
#else
  return own && own == _PyThreadState_UncheckedGet();
#endif
}

void HoldGil::ask() noexcept {
  // A hook may wait for ever: the process's end does not wait for it.
  was_computing_ = t_computing;
  if (was_computing_) end(g_computing, t_computing);
  state_ = ask_by([] { return PyGILState_Ensure(); });
  asked_ = true;
}

void HoldGil::give_back() noexcept {
  if (was_computing_) begin(g_computing, t_computing);
  PyGILState_Release(state_);
}

void ReleaseGil::give() noexcept {
  note_line_before_release();
  if (is_main_thread()) watch_interrupts();
  begin(g_computing, t_computing);
  state_ = PyEval_SaveThread();
}

void ReleaseGil::take_back() noexcept {
  end(g_computing, t_computing);
  ask_by([this] {
    PyEval_RestoreThread(state_);
    return true;
  });
}

bool set_computing(bool on) noexcept {
  const bool before = t_computing;
  if (on && !before) begin(g_computing, t_computing);
  if (!on && before) end(g_computing, t_computing);
  return before;
}

bool watch_interpreter_end() noexcept {
  // A forked child has this thread alone, which holds the lock.
  if (pthread_atfork(nullptr, nullptr, [] {
        g_computing = t_computing ? 1 : 0;
        g_asking = 0;
      }) != 0) {
    PyErr_NoMemory();
    return false;
  }
  if (Py_AtExit(&wait_for_kernels) != 0) {
    PyErr_SetString(PyExc_RuntimeError, "tenon: Py_AtExit has no room for another function");
    return false;
  }
  PyObject* dict = PyInterpreterState_GetDict(PyInterpreterState_Get());
  PyObject* capsule = dict ? PyCapsule_New(&g_asking, "tenon.end", &wait_for_askers) : nullptr;
  if (!capsule) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return false;
  }
  const bool kept = PyDict_SetItemString(dict, "tenon.end", capsule) == 0;
  Py_DECREF(capsule);
  return kept;
}

}  // namespace tenon::python

#ifdef TENON_PARK_ENDED_THREADS
// Until Python 3.14, a thread that wants the interpreter lock while the interpreter shuts down, anywhere in
// Python, is ended by pthread_exit, which unwinds its stack. The frames of this module that a Python function
// was called from must not be unwound: their destructors touch Python objects without the lock, and some are
// noexcept, which ends the process. So the first frame of ours that the unwinder comes to stops the thread,
// as Python 3.14 does. The linker has our functions name this routine where the compiler wrote
// __gxx_personality_v0 (--wrap), so that no call into Python can be forgotten; an exception takes the usual
// way.
extern "C" {
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind, _Unwind_Exception* exception,
                                                _Unwind_Context* context);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind, _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
  if ((actions & _UA_FORCE_UNWIND) && tenon::python::is_finalizing()) tenon::python::park();
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
}
#endif
