// Generator: a seed and a position in the seed's Philox stream, from which random operators take ranges. Used
// by random operators and by callers who want their own stream. Independent of distributions.
#pragma once

#include <cstdint>
#include <mutex>

#include "tenon/core/device.h"
#include "tenon/core/intrusive_ptr.h"

namespace tenon {

/// A position in the stream of a seed, counted in Philox blocks of 128 bits (four 32-bit words).
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
  /// Of captured work (core/capture.h): where the device has the seed, and a position that `offset` is added
  /// to, once the work runs; `seed` is not used then. Else 0.
  uint64_t at = 0;
};

class GeneratorImpl final : public RefCounted {
 public:
  explicit GeneratorImpl(uint64_t seed) noexcept : state_{seed, 0} {}
  static void destroy(GeneratorImpl* g) noexcept { delete g; }

  PhiloxState state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  void set_state(PhiloxState state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }
  /// Reserves `blocks` Philox blocks for one operator: returns where they begin, and moves the position past
  /// them.
  PhiloxState take(uint64_t blocks) {
    const std::lock_guard lock(mutex_);
    const PhiloxState taken = state_;
    state_.offset += blocks;
    return taken;
  }
  /// Undoes a `take` whose operator has failed, unless more blocks have been taken since.
  void give_back(PhiloxState taken, uint64_t blocks) {
    const std::lock_guard lock(mutex_);
    if (state_.seed == taken.seed && state_.offset == taken.offset + blocks) state_ = taken;
  }

 private:
  mutable std::mutex mutex_;
  PhiloxState state_;
};

/// A shared handle. Where an operator takes a generator, an undefined one means the default generator.
class Generator {
 public:
  Generator() = default;
  explicit Generator(uint64_t seed) : impl_(IntrusivePtr<GeneratorImpl>::adopt(new GeneratorImpl(seed))) {}

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  GeneratorImpl* operator->() const noexcept { return impl_.get(); }
  /// Starts the stream of `seed` from its beginning.
  void manual_seed(uint64_t seed) { impl_->set_state({seed, 0}); }
  uint64_t initial_seed() const { return impl_->state().seed; }

  const IntrusivePtr<GeneratorImpl>& impl() const noexcept { return impl_; }
  static Generator adopt(GeneratorImpl* impl) noexcept {
    Generator g;
    g.impl_ = IntrusivePtr<GeneratorImpl>::adopt(impl);
    return g;
  }

 private:
  IntrusivePtr<GeneratorImpl> impl_;
};

/// The generator that operators use when none is passed. One serves all devices, because a counter-based
/// stream gives the same numbers on each.
Generator& default_generator();
/// Seeds the default generator.
void manual_seed(uint64_t seed);

}  // namespace tenon
