// The object of Python that holds a graph which is being built. Used by the modules for graphs and for cached
// plans.
#pragma once

#include <memory>

#include "python/src/interpreter/reference.h"
#include "tenon/builder/graph.h"

namespace tenon::python {

/// A capsule that shares the graph; a new reference. Throws PythonError.
PyObject* wrap_graph(std::shared_ptr<builder::Graph> graph);
/// Throws PythonError, with TypeError set, for any other object.
builder::Graph& graph_of(PyObject* capsule);

/// Bytes that a plan moves from which on other threads of Python run meanwhile.
inline constexpr int64_t kLongPlanBytes = int64_t{256} << 10;

}  // namespace tenon::python
