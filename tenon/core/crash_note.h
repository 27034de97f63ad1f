// CrashNote: says which library a process was loading when it crashed. Used by what opens shared libraries,
// whose constructors and first functions are foreign code.
#pragma once

#include <csignal>
#include <string>

namespace tenon {

/// While it lives, a crash of its thread (SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT) writes a line to
/// standard error, "load_device: 'gizmo.so' crashed (SIGSEGV) in tenon_plugin_v1", before the process dies as
/// it would otherwise, by whatever handles the signal outside. Nested notes: the innermost one speaks.
class CrashNote {
 public:
  /// `function` is what the user called, `step` what runs now.
  CrashNote(const char* function, const std::string& path, const char* step);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  /// What runs from now on; the text lives as long as the note.
  void set_step(const char* step) noexcept { step_ = step; }

 private:
  static void handle(int signal, siginfo_t* info, void* context);
  void write_line(const char* signal) const noexcept;

  static constinit thread_local const CrashNote* innermost_;

  const std::string head_;
  const char* volatile step_;
  const CrashNote* const outer_;
};

}  // namespace tenon
