// Writes: counts the versions of the tensors that a call writes. It keeps the versions from before the call.
// Used by typed calls, boxed calls, and calls of Python kernels. Independent of how a call finds its
// arguments.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "tenon/core/interrupt.h"
#include "tenon/core/tensor.h"
#include "tenon/core/thread_state.h"

namespace tenon {

struct OperatorEntry;

namespace detail {

inline uint64_t version_of(const Tensor& t) noexcept { return t.defined() ? t._version() : 0; }

/// The version that a written tensor will have once the running call has returned; `before` is its version
/// when the call began. A kernel that saves a tensor which it wrote must expect this version.
inline uint64_t version_after_call(const Tensor& t, uint64_t before) noexcept {
  return std::max(version_of(t), before + 1);
}

/// Whether operators must not write to `t`: its memory is read-only, or it was made in inference mode, where
/// writes are not counted, and the thread has left that mode.
inline bool is_read_only(const Tensor& t) noexcept {
  return t.storage()->read_only() || (t.impl()->is_inference() && !thread_state.inference_mode);
}
/// For a written argument that is_read_only refuses: throws Error{Runtime}. For one whose bytes are lost:
/// throws what a read throws. For one that recorded programs read or write: runs those of other threads.
void prepare_write(const OperatorEntry& entry, const Tensor& t);

/// For Writes: any number of tensors, which are kept alive, because a boxed call consumes its arguments.
inline constexpr size_t kAnyNumber = ~size_t{0};

/// The written tensors of one call: N tensors that outlive it, or kAnyNumber. `bump` raises each version that
/// no nested call has raised, so that a write counts once however many operators it passes through. A call
/// that throws raises none, unless it was interrupted between its steps. OperatorEntry::written says which
/// arguments are written.
template <size_t N>
class Writes {
  static constexpr bool kKeeps = N == kAnyNumber;

 public:
  struct Write {
    std::conditional_t<kKeeps, Tensor, const Tensor*> handle;
    uint64_t before = 0;
    size_t argument = 0;

    const Tensor& tensor() const noexcept {
      if constexpr (kKeeps)
        return handle;
      else
        return *handle;
    }
  };

  explicit Writes(const OperatorEntry& entry) noexcept : entry_(entry) {}

  /// Adds a written argument. Throws Error{Runtime} if it must not be written. Ignores an undefined tensor.
  void add(const Tensor& t, size_t argument) {
    if (t.defined() && (is_read_only(t) || t.storage()->is_recorded())) [[unlikely]]
      prepare_write(entry_, t);
    if constexpr (!kKeeps)
      writes_[count_++] = {&t, version_of(t), argument};
    else if (t.defined())
      writes_.push_back({t, t._version(), argument});
  }
  void add(std::span<const Tensor> list, size_t argument) {
    for (const Tensor& t : list) add(t, argument);
  }

  void bump() const noexcept {
    for (const Write& w : writes_) {
      if (w.tensor().defined() && w.tensor()._version() == w.before) w.tensor().storage()->bump_version();
    }
  }

  /// Calls what writes, and counts.
  template <class Call>
  std::invoke_result_t<Call> around(Call&& call) const {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
        call();
        bump();
      } else {
        std::invoke_result_t<Call> result = call();
        bump();
        return result;
      }
    } catch (const Interruption&) {
      bump();
      throw;
    }
  }

  auto begin() const noexcept { return writes_.begin(); }
  auto end() const noexcept { return writes_.end(); }

 private:
  template <bool kept, class = void>
  struct Container {
    using type = std::vector<Write>;
  };
  template <class Unused>
  struct Container<false, Unused> {
    using type = std::array<Write, N>;
  };

  const OperatorEntry& entry_;
  typename Container<kKeeps>::type writes_;
  size_t count_ = 0;
};

}  // namespace detail
}  // namespace tenon
