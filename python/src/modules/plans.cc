// tenon._C._plans: the plan cache on disk, for tenon.plans.
#include "python/src/call/dictionary.h"
#include "python/src/interpreter/gil.h"
#include "python/src/module_parts.h"
#include "tenon/cache/plan_cache.h"

namespace tenon::python {
namespace {

using cache::Folder;
using cache::PlanCache;

PyObject* info(PyObject*, PyObject*) {
  return guarded([] {
    PlanCache& cache = PlanCache::get();
    const PlanCache::Counts c = cache.counts();
    Ref all(checked(PyDict_New()));
    put(all, "folder",
        cache.is_on() ? PyUnicode_DecodeFSDefault(cache.folder().c_str()) : Py_NewRef(Py_None));
    set(all, "off_because", cache.off_because());
    set(all, "planned", c.planned);
    set(all, "tuned", c.tuned);
    set(all, "loaded", c.loaded);
    set(all, "written", c.written);
    put(all, "missed", counted(c.missed).release());
    put(all, "not_written", counted(c.not_written).release());
    return all.release();
  });
}

PyObject* entries(PyObject*, PyObject*) {
  return guarded([] {
    auto found = without_gil([&] { return PlanCache::get().list(); });
    Ref list(checked(PyList_New(0)));
    for (const Folder::Entry& e : found) {
      const Ref entry(checked(PyDict_New()));
      set(entry, "file", e.file);
      set(entry, "bytes", e.nbytes);
      put(entry, "used", PyLong_FromLongLong(e.used));
      set(entry, "build", e.written_by.build);
      set(entry, "machine", e.written_by.machine);
      set(entry, "about", e.about);
      set(entry, "problem", e.miss == cache::Miss::None ? std::string_view() : cache::name(e.miss));
      append(list, Py_NewRef(entry.get()));
    }
    return list.release();
  });
}

PyMethodDef g_plans_functions[] = {
    {"info", &info, METH_NOARGS, "What this process made, found and missed."},
    {"entries", &entries, METH_NOARGS, "The plans in the folder."},
    {"totals",
     [](PyObject*, PyObject*) {
       return guarded([] { return counted(PlanCache::get().totals()).release(); });
     },
     METH_NOARGS, "What all processes counted in the folder."},
    {"summary",
     [](PyObject*, PyObject*) {
       return guarded([] { return to_python(std::string_view(PlanCache::get().summary())); });
     },
     METH_NOARGS, "The counts of this process as a line."},
    {"write",
     [](PyObject*, PyObject*) {
       return guarded([] {
         const ReleaseGil released;
         PlanCache::get().write();
       });
     },
     METH_NOARGS, "Writes what waits."},
    {"clear",
     [](PyObject*, PyObject*) { return guarded([] { return PyLong_FromSize_t(PlanCache::get().clear()); }); },
     METH_NOARGS, "Removes all plans, and returns how many there were."},
    {}};

}  // namespace

bool add_plans(PyObject* module) { return add_submodule(module, "_plans", g_plans_functions); }

}  // namespace tenon::python
