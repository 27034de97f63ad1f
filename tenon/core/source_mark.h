// SourceMark: which line of the program made a call, noted at the cost of a few loads and put into words only
// when an error must name it. Used by autograd (where was this saved?) and by storages (where was it
// changed?). Knows no language but C++; a binding installs its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tenon {

struct SourceMark {
  /// A return address, or what a binding made of its own place; 0: unknown.
  uint64_t place = 0;
  /// -1: `place` is a return address. Otherwise the binding's.
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
/// `language` lives as long as the process; null for C++ alone.
void set_source_language(const SourceLanguage* language) noexcept;

/// The line that called the library. `frame` is `__builtin_frame_address(0)` of a function that the caller's
/// code, or a function marked TENON_CALL_SITE, has called.
SourceMark note_source(void* frame) noexcept;

/// The same where the caller's address is known: `__builtin_return_address(0)` of a function that it called.
SourceMark note_caller(void* return_address) noexcept;

/// "model.py:12", "trainer.cc:40", or what is known without debug information. Never throws for want of it.
std::string describe_source(const SourceMark& mark);

}  // namespace tenon

/// On functions that only pass a call on into the library (tenon::add): a mark names their caller. Their
/// files are compiled with frame pointers.
#define TENON_CALL_SITE [[gnu::section("tenon_call_sites")]]
