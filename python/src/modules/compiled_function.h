// What the type of compiled functions offers to the files that make replays.
#pragma once

#include <memory>

#include "python/src/pure/replay.h"

namespace tenon::python {

/// Makes `replay` the first that a call of `compiled` tries; the oldest goes where there are too many.
void add_replay(PyObject* compiled, std::unique_ptr<pure::PureReplay> replay);

}  // namespace tenon::python
