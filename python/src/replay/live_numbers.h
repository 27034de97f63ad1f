// LiveNumbers: numbers of a replay that follow from an optimizer's learning rate and count of steps, which
// each replay reads afresh, as the optimizer does. Used by replays.
#pragma once

#include <vector>

#include "python/src/interpreter/reference.h"
#include "tenon/optim/adam.h"
#include "tenon/record/replay.h"

namespace tenon::python::replay {

class LiveNumbers {
 public:
  /// Takes a list of tuples (algorithm, group, state or None, slot of the parameter, lr, count of steps
  /// before, beta1, beta2, weight_decay, decoupled), one for each parameter that was updated. Throws
  /// Error{Runtime} where the update is not found among the recorded calls, PythonError for anything else.
  LiveNumbers(PyObject* list, record::Replay& replay);

  /// Whether all that is read is a number that the optimizer's step takes.
  bool readable() const noexcept;
  /// Sets the numbers of the calls that are about to run.
  void update(record::Replay& replay) const;
  /// The indices of the numbers that it sets.
  std::vector<uint32_t> numbers() const;
  /// Counts the step.
  void count() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Source {
    Ref group, state;  ///< The state is null where no steps are counted.
    optim::AdamOptions options;
    uint32_t step = record::kNoSlot, root = record::kNoSlot,
             shrink = record::kNoSlot;  ///< Indices of numbers.
  };
  std::vector<Source> sources_;
};

}  // namespace tenon::python::replay
