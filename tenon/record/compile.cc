#include "tenon/record/compile.h"

#include <atomic>

#include "tenon/record/recorder.h"

namespace tenon::record {

uint64_t new_program() noexcept {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Scope::Scope(uint64_t program, const ScopeOptions& options, int64_t size)
    : number_(Recorder::current().begin(program, options, size)) {}

void Scope::end() {
  open_ = false;
  Recorder::current().end(number_);
}

Scope::~Scope() {
  if (!open_) return;
  try {
    end();
  } catch (...) {
    // Whoever reads what could not be computed gets the error.
  }
}

void flush() { Recorder::current().flush("flush() was called"); }

}  // namespace tenon::record
