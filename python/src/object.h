// Ref and Gil: owning Python references and the interpreter lock, as scopes.
// Used by every file of the extension module. Knows nothing of tensors.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string_view>
#include <utility>

#if __has_include(<cxxabi.h>) && __has_include(<unistd.h>)
#include <cxxabi.h>
#include <unistd.h>
#define TENON_THREADS_CAN_PARK 1
#endif

namespace tenon::python {

/// An owned reference; null stands for "no object" or "an exception is set".
class Ref {
 public:
  Ref() = default;
  /// Takes over a reference that the caller owns.
  explicit Ref(PyObject* owned) noexcept : object_(owned) {}
  static Ref borrow(PyObject* o) noexcept { return Ref(Py_XNewRef(o)); }
  Ref(const Ref& other) noexcept : object_(Py_XNewRef(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Threads that compute without the interpreter lock are counted: the process may only end once they have,
/// because libraries such as OpenBLAS take their memory back while it ends. module.cc waits for them.
void enter_kernel() noexcept;
void leave_kernel() noexcept;
/// For a thread that will never come back.
void leave_kernels() noexcept;

/// Whether the interpreter is shutting down.
inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

#ifdef TENON_THREADS_CAN_PARK
/// Stops the thread until the process ends.
[[noreturn]] inline void park() noexcept {
  leave_kernels();
  for (;;) pause();
}
#endif

/// Takes the interpreter lock by `take`. A thread that comes back while the interpreter shuts down never gets
/// it, and until Python 3.14 is ended by unwinding its stack, which C++ answers by ending the process: it
/// waits for the end of the process instead, as in 3.14.
template <class F>
auto take_gil(F&& take) noexcept {
#ifdef TENON_THREADS_CAN_PARK
  if (is_finalizing() && !PyGILState_Check()) park();
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    park();
  }
#else
  return take();
#endif
}

/// Holds the interpreter lock, from any thread.
class HoldGil {
 public:
  HoldGil() noexcept : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Error messages name the line of Python that makes a call, also where the call gives the lock away.
void note_line_before_release() noexcept;

/// Gives the interpreter lock to other threads where `release` says that the work is worth it.
class ReleaseGil {
 public:
  /// While the interpreter shuts down, the thread that does it keeps the lock.
  explicit ReleaseGil(bool release = true) noexcept {
    if (!release || is_finalizing()) return;
    note_line_before_release();
    enter_kernel();
    state_ = PyEval_SaveThread();
  }
  ~ReleaseGil() {
    if (!state_) return;
    leave_kernel();
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  ReleaseGil(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

/// A call that works on at least so many elements lets other Python threads run meanwhile. Below it, handing
/// the lock over costs more than the work. docs/differences.md states it.
inline constexpr int64_t kReleaseGilElements = 32768;

inline PyObject* to_python(std::string_view text) noexcept {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                   PyObject* kwnames);

/// A method table's entry for a METH_FASTCALL | METH_KEYWORDS function.
inline PyMethodDef fast_method(const char* name, FastFunction f, const char* doc = nullptr,
                               int flags = 0) noexcept {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)),
          METH_FASTCALL | METH_KEYWORDS | flags, doc};
}

}  // namespace tenon::python
