#include "tenon/core/crash_note.h"

#include <unistd.h>

#include <cstring>
#include <mutex>

namespace tenon {
namespace {

struct Handled {
  int signal;
  const char* name;
  struct sigaction before;  ///< What handled it before the first note.
};
constinit Handled g_handled[] = {{SIGSEGV, "SIGSEGV", {}},
                                 {SIGBUS, "SIGBUS", {}},
                                 {SIGILL, "SIGILL", {}},
                                 {SIGFPE, "SIGFPE", {}},
                                 {SIGABRT, "SIGABRT", {}}};
constinit std::mutex g_mutex;
constinit int g_notes = 0;  ///< Of all threads.

void write_text(const char* text) noexcept {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // There is no one left to tell.
}

}  // namespace

constinit thread_local const CrashNote* CrashNote::innermost_ = nullptr;

CrashNote::CrashNote(const char* function, const std::string& path, const char* step)
    : head_(std::string(function) + ": '" + path + "' crashed ("), step_(step), outer_(innermost_) {
  innermost_ = this;
  const std::lock_guard lock(g_mutex);
  if (g_notes++ > 0) return;
  struct sigaction own {};
  own.sa_sigaction = &handle;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (Handled& h : g_handled) sigaction(h.signal, &own, &h.before);
}

CrashNote::~CrashNote() {
  innermost_ = outer_;
  const std::lock_guard lock(g_mutex);
  if (--g_notes > 0) return;
  for (const Handled& h : g_handled) {
    struct sigaction now {};
    sigaction(h.signal, nullptr, &now);
    // The library may have set a handler of its own.
    if (now.sa_sigaction == &handle) sigaction(h.signal, &h.before, nullptr);
  }
}

void CrashNote::write_line(const char* signal) const noexcept {
  write_text(head_.c_str());
  write_text(signal);
  write_text(") in ");
  write_text(step_);
  write_text("\n");
}

void CrashNote::handle(int signal, siginfo_t* info, void*) {
  for (const Handled& h : g_handled) {
    if (h.signal != signal) continue;
    if (innermost_) innermost_->write_line(h.name);
    // What handled it before goes on: a fault happens again, anything else is sent again.
    sigaction(signal, &h.before, nullptr);
  }
  if (info->si_code <= 0) raise(signal);
}

}  // namespace tenon
