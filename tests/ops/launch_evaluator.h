// Runs pointwise launches by the evaluator of tenon/abi, as a device that calls C++ would.
#pragma once

#include <atomic>
#include <functional>

#include "tenon/abi/program.h"
#include "tenon/iter/pointwise_device.h"

namespace tenon::testing {

/// What such a device makes of a program once, and keeps in its slot.
struct MadeOfProgram {
  static inline std::atomic<int> count{0};  ///< How many were made so far.
};

/// Makes it at the program's first launch.
inline void take_slot(const TenonLaunch& launch) {
  abi::in_slot<MadeOfProgram>(launch, [] {
    ++MadeOfProgram::count;
    return new MadeOfProgram;
  });
}

/// The launch as a task for later.
inline std::function<void()> kept(const TenonLaunch& launch) {
  take_slot(launch);
  return [mine = abi::KeptLaunch(launch)] { abi::run(*mine); };
}

}  // namespace tenon::testing
