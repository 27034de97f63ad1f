// tenon._C._memory: the cache of the host's allocator, for tenon.cpu.
#include <fmt/core.h>

#include "python/src/call/parser.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/module_parts.h"
#include "tenon/core/allocator.h"
#include "tenon/core/host_memory.h"

namespace tenon::python {
namespace {

PyObject* reset_peaks(PyObject*, PyObject*) {
  reset_cpu_peak_memory_stats();
  Py_RETURN_NONE;
}

PyObject* reset_sums(PyObject*, PyObject*) {
  reset_cpu_accumulated_memory_stats();
  Py_RETURN_NONE;
}

PyObject* empty_cache(PyObject*, PyObject*) {
  auto emptied = without_gil([&] { return empty_cpu_cache(); });
  return PyLong_FromSize_t(emptied);
}

PyObject* cache_limit(PyObject*, PyObject*) { return PyLong_FromSize_t(cpu_cache_limit()); }

PyObject* set_cache_limit(PyObject*, PyObject* o) {
  return guarded([&] {
    const int64_t n = int_argument("set_cache_limit", "nbytes", o);
    TENON_CHECK(n >= 0, Value, fmt::format("set_cache_limit: nbytes must not be negative, got {}", n));
    set_cpu_cache_limit(static_cast<size_t>(n));
  });
}

PyObject* memory_info(PyObject*, PyObject*) {
  const HostMemory memory = host_memory();
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(memory.obtainable()),
                       static_cast<unsigned long long>(memory.total));
}

PyMethodDef g_memory_methods[] = {
    {"reset_peak_memory_stats", &reset_peaks, METH_NOARGS, "Peaks start again from what is current."},
    {"reset_accumulated_memory_stats", &reset_sums, METH_NOARGS, "Sums start again from zero."},
    {"empty_cache", &empty_cache, METH_NOARGS, "Gives kept blocks back; how many bytes that were."},
    {"cache_limit", &cache_limit, METH_NOARGS, "Bytes that may be kept."},
    {"set_cache_limit", &set_cache_limit, METH_O, "Sets how many bytes may be kept."},
    {"mem_get_info", &memory_info, METH_NOARGS, "Bytes that can be had, and all there are."},
    {}};

}  // namespace

bool add_memory(PyObject* module) { return add_submodule(module, "_memory", g_memory_methods); }

}  // namespace tenon::python
