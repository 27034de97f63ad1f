// SourceMark: which line of the program made a call. Taking a mark costs a few loads; it is turned into text
// only when an error message needs it. Used by autograd (where was this saved?) and by storages (where was
// this changed?). Knows C++ alone; a language binding adds its own language.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tenon {

struct SourceMark {
  /// A return address, or whatever a binding uses to find its line; 0 means unknown.
  uint64_t place = 0;
  /// -1 if `place` is a return address; otherwise up to the binding.
  int32_t detail = -1;

  explicit operator bool() const noexcept { return place != 0; }
};

/// How a language binding notes and names its lines.
struct SourceLanguage {
  /// Fills the mark of the line that this thread is running; false when the thread runs none.
  bool (*note)(SourceMark& mark) noexcept;
  /// "model.py:12".
  std::string (*describe)(const SourceMark& mark);
};
/// Sets the language of a binding, which must live as long as the process; null leaves C++ alone.
void set_source_language(const SourceLanguage* language) noexcept;

/// The line that called the library. `frame` is `__builtin_frame_address(0)` of a function that the caller's
/// code, or a function marked TENON_CALL_SITE, has called; null where it is not known, and then only a
/// binding may know the line.
SourceMark note_source(void* frame) noexcept;

/// The mark of a known caller: `return_address` is `__builtin_return_address(0)` of a function that it
/// called.
SourceMark note_caller(void* return_address) noexcept;

/// "model.py:12" or "trainer.cc:40". Without debug information, says what is known and does not throw.
std::string describe_source(const SourceMark& mark);

}  // namespace tenon

/// Marks a function that only passes a call on into the library (tenon::add), so that a source mark names its
/// caller. Files that use it are compiled with frame pointers.
#define TENON_CALL_SITE [[gnu::section("tenon_call_sites")]]
