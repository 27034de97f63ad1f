#include "python/src/interpreter/source_lines.h"

#include <frameobject.h>  // up to 3.10, Python.h leaves out what a frame holds

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
// 3.11 keeps frames where only its own headers see them; from 3.12 on there are functions.
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include <deque>
#include <string>
#include <vector>

#include "python/src/interpreter/errors.h"
#include "tenon/core/small_alloc.h"
#include "tenon/core/source_mark.h"
#include "tenon/core/warn.h"

namespace tenon::python {
namespace {

// A mark's place is a code object's number, with the generation of that number in the high half; its detail
// is the offset of the instruction. Code objects know their number, and say when they die. The interpreter
// lock guards the table.
struct Code {
  PyCodeObject* alive = nullptr;
  uint32_t generation = 0;
  std::string epitaph;  // what is reported of code that is gone
};
std::vector<Code>& table() {
  static auto& codes = *new std::vector<Code>;
  return codes;
}
std::deque<uint32_t>& dead_codes() {
  static auto& dead = *new std::deque<uint32_t>;
  return dead;
}
constexpr size_t kRememberedDead = 1024;

Py_ssize_t g_extra = -1;
constexpr int kInstructionBytes = 2;  // of CPython's bytecode

#if PY_VERSION_HEX >= 0x030C0000
int get_extra(PyObject* code, void** out) { return PyUnstable_Code_GetExtra(code, g_extra, out); }
int set_extra(PyObject* code, void* value) { return PyUnstable_Code_SetExtra(code, g_extra, value); }
Py_ssize_t request_extra(freefunc f) { return PyUnstable_Eval_RequestCodeExtraIndex(f); }
#else
int get_extra(PyObject* code, void** out) { return _PyCode_GetExtra(code, g_extra, out); }
int set_extra(PyObject* code, void* value) { return _PyCode_SetExtra(code, g_extra, value); }
Py_ssize_t request_extra(freefunc f) { return _PyEval_RequestCodeExtraIndex(f); }
#endif

void forget(void* extra) {
  const auto number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(extra)) - 1;
  if (number >= table().size()) return;
  table()[number].alive = nullptr;
  dead_codes().push_back(number);
}

uint32_t number_of(PyCodeObject* code) noexcept {
  void* extra = nullptr;
  if (get_extra(reinterpret_cast<PyObject*>(code), &extra) < 0) PyErr_Clear();
  if (extra) [[likely]]
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(extra)) - 1;
  uint32_t number;
  if (dead_codes().size() > kRememberedDead) {
    number = dead_codes().front();
    dead_codes().pop_front();
    ++table()[number].generation;
  } else {
    number = static_cast<uint32_t>(table().size());
    table().emplace_back();
  }
  Code& entry = table()[number];
  entry.alive = code;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  entry.epitaph =
      std::string(file ? file : "?") + ", in code from line " + std::to_string(code->co_firstlineno);
  if (set_extra(reinterpret_cast<PyObject*>(code), reinterpret_cast<void*>(uintptr_t{number} + 1)) < 0)
    PyErr_Clear();
  return number;
}

/// The offset of the instruction that a frame is at.
int instruction_of(PyFrameObject* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * kInstructionBytes;
#endif
}

#if PY_VERSION_HEX >= 0x030C0000
/// Those of the innermost function where the innermost frame is the interpreter's own: one that C called has
/// ended, and what its variables owned runs something while they are freed.
PyCodeObject* code_of_caller(PyThreadState* thread, int& offset) noexcept {
  const Ref frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(thread)));
  if (!frame) return nullptr;
  auto* const at = reinterpret_cast<PyFrameObject*>(frame.get());
  offset = instruction_of(at);
  PyCodeObject* code = PyFrame_GetCode(at);
  Py_DECREF(code);  // the frame keeps it
  return code;
}
#endif

/// The code and the instruction that this thread's innermost Python function is at.
PyCodeObject* current_code(PyThreadState* thread, int& offset) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  _PyInterpreterFrame* frame = thread->current_frame;
#elif PY_VERSION_HEX >= 0x030B0000
  _PyInterpreterFrame* frame = thread->cframe->current_frame;
#else
  PyFrameObject* frame = thread->frame;
#endif
  if (!frame) return nullptr;
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* found = PyUnstable_InterpreterFrame_GetCode(frame);
  Py_DECREF(found);  // the frame keeps it
  auto* const code = reinterpret_cast<PyCodeObject*>(found);
  // Frames of the interpreter's own have None for code, or are at an instruction before those of a program.
  if (!PyCode_Check(found)) return code_of_caller(thread, offset);
  offset = PyUnstable_InterpreterFrame_GetLasti(frame);
  if (offset < code->_co_firsttraceable * kInstructionBytes) return code_of_caller(thread, offset);
  return code;
#elif PY_VERSION_HEX >= 0x030B0000
  offset = _PyInterpreterFrame_LASTI(frame) * kInstructionBytes;
  return frame->f_code;
#else
  offset = frame->f_lasti * kInstructionBytes;
  return frame->f_code;
#endif
}

SourceMark mark_of(PyCodeObject* code, int offset) noexcept {
  const uint32_t number = number_of(code);
  return {uint64_t{table()[number].generation} << 32 | (number + 1), offset};
}

thread_local constinit SourceMark g_released TENON_FAST_TLS;

bool note(SourceMark& mark) noexcept {
  PyThreadState* thread = PyGILState_GetThisThreadState();
  if (!thread) return false;
#if PY_VERSION_HEX >= 0x030D0000
  const bool holds = PyThreadState_GetUnchecked() == thread;
#else
  const bool holds = _PyThreadState_UncheckedGet() == thread;
#endif
  if (!holds) {
    // The lock is given away during a call: its line was noted then.
    mark = g_released;
    return static_cast<bool>(mark);
  }
  int offset = 0;
  PyCodeObject* code = current_code(thread, offset);
  if (!code || offset < 0) return false;
  mark = mark_of(code, offset);
  return true;
}

std::string describe(const SourceMark& mark) {
  if (!Py_IsInitialized()) return "a line of Python, which has ended";
  const HoldGil gil;
  const auto number = static_cast<uint32_t>(mark.place) - 1;
  const auto generation = static_cast<uint32_t>(mark.place >> 32);
  if (number >= table().size() || table()[number].generation != generation) return "code that is gone";
  const Code& entry = table()[number];
  if (!entry.alive) return entry.epitaph;
  const char* file = PyUnicode_AsUTF8(entry.alive->co_filename);
  if (!file) PyErr_Clear();
  return std::string(file ? file : "?") + ":" + std::to_string(PyCode_Addr2Line(entry.alive, mark.detail));
}

constexpr SourceLanguage kPython{&note, &describe};

/// Warns at the program's line; where the program makes warnings errors, throws that error.
void warn_program(const char* message) {
  if (is_finalizing()) return;
  const HoldGil gil;
  const Ref callers(PyImport_ImportModule("tenon.callers"));
  const Ref done(callers ? PyObject_CallMethod(callers.get(), "warn", "s", message) : nullptr);
  if (!done) throw_python_error();
}

}  // namespace

void note_line_before_release() noexcept {
  SourceMark mark;
  note(mark);
  g_released = mark;
}

SourceMark mark_of_program() noexcept {
  if (g_extra < 0 || !holds_gil()) return {};
  PyThreadState* const thread = PyThreadState_Get();
  for (Ref frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(thread))); frame;) {
    auto* const at = reinterpret_cast<PyFrameObject*>(frame.get());
    const Ref globals(PyObject_GetAttrString(frame.get(), "f_globals"));
    PyObject* const module = globals ? PyDict_GetItemString(globals.get(), "__name__") : nullptr;
    const char* const text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
    PyErr_Clear();
    const std::string_view name = text ? text : "";
    if (name != "tenon" && !name.starts_with("tenon.")) {
      const Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
      return mark_of(reinterpret_cast<PyCodeObject*>(code.get()), instruction_of(at));
    }
    frame = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return {};
}

bool add_source_language(PyObject*) {
  set_warning_function(&warn_program);
  g_extra = request_extra(&forget);
  if (g_extra < 0) return true;  // no slot is left: C++'s lines then
  set_source_language(&kPython);
  return true;
}

}  // namespace tenon::python
