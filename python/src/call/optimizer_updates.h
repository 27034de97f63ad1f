// OptimizerUpdates: which parameters the steps of optimizers update while a call is captured for a replay.
// Filled in by the bindings of optimizers (modules/optimizers.cc), read by replay/replay_maker.cc.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "python/src/interpreter/reference.h"

namespace tenon::python {

class OptimizerUpdates {
 public:
  /// Notes that a step updates parameter `i` of the list of a group.
  void add(PyObject* params, size_t i) { updates_.emplace_back(Ref::borrow(params), i); }
  size_t size() const noexcept { return updates_.size(); }
  /// How many steps have updated parameter `i` of the list of a group.
  int64_t count(PyObject* params, size_t i) const {
    return std::ranges::count_if(
        updates_, [&](const auto& one) { return one.first.get() == params && one.second == i; });
  }

  /// What the capture of this thread's call collects; null where no call is captured.
  static inline thread_local constinit OptimizerUpdates* current = nullptr;

 private:
  std::vector<std::pair<Ref, size_t>> updates_;
};

}  // namespace tenon::python
