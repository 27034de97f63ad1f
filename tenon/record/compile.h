// Programs that are recorded while they run, and computed in one piece when a value is needed.
// Used by everybody; in Python it is tenon.compile.
//
//     auto step = tenon::compile([&](const Tensor& x) { return tenon::silu(x * a + b) * tenon::tanh(x) + b;
//     }); Tensor y = step(x);
#pragma once

#include "tenon/core/require_cxx20.h"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace tenon::record {

struct ScopeOptions {
  /// Calls on at most that many elements, none of them still to be computed, run at once; calls that do not
  /// become loops with others on four times as many. It costs as much to record them.
  int64_t threshold = 16384;
  /// Records reads and writes of memory that NumPy or DLPack shares, too: its other owners do not touch it
  /// before what was recorded has run.
  bool trust_shared = false;
  /// Values are rounded to half types where they are stored, not after each operator of a region.
  bool relaxed = false;
  /// Milliseconds that a new plan may spend on timing what may run each of its regions, on memory of its own;
  /// 0: models decide.
  double tune_ms = 0;
};

/// A number for a program, under which its plans are found again.
uint64_t new_program() noexcept;

/// While it lives, the thread's calls are recorded; what they compute is there when the outermost scope has
/// ended, or as soon as somebody reads it.
class Scope {
 public:
  /// `size`: how large what the program is given is (`size_of`); negative if that is not known.
  explicit Scope(uint64_t program = 0, const ScopeOptions& options = {}, int64_t size = -1);
  /// Computes what is left, and throws what that throws. On the thread that began it, after the scopes
  /// inside.
  void end();
  /// As `end`, but that results which cannot be computed throw when they are read.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  uint64_t number_;
  bool open_ = true;
};

/// Computes what the thread has recorded. Throws the first error.
void flush();

/// How large what a program is given is: elements of tensors, and whole numbers, which may be sizes. -1 where
/// a type says nothing of that. Runs that are given no more than earlier ones, none of which saved
/// anything by joined calls, are recorded now and then only.
template <class... A>
int64_t size_of(const A&... args) {
  int64_t size = 0;
  bool is_known = true;
  [[maybe_unused]] const auto add = [&]<class T>(const T& value) {
    if constexpr (requires { value.numel(); })
      size += value.numel();
    else if constexpr (std::is_integral_v<T>)
      size += value < 0 ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    else if constexpr (!std::is_floating_point_v<T>)
      is_known = false;
  };
  (add(args), ...);
  return is_known ? size : -1;
}

}  // namespace tenon::record

namespace tenon {

/// `f` with its calls recorded: the same results, with the same bits, whatever it does in between.
template <class F>
auto compile(F f, const record::ScopeOptions& options = {}) {
  return [f = std::move(f), options, program = record::new_program()]<class... A>(A&&... args) mutable {
    record::Scope scope(program, options, record::size_of(args...));
    if constexpr (std::is_void_v<std::invoke_result_t<F&, A...>>) {
      f(std::forward<A>(args)...);
      scope.end();
    } else {
      auto result = f(std::forward<A>(args)...);
      scope.end();
      return result;
    }
  };
}

}  // namespace tenon
