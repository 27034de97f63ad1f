// The extension module tenon._C.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "python/src/errors.h"
#include "python/src/module_parts.h"
#include "python/src/overload.h"
#include "python/src/source.h"
#include "python/src/tensor_parts.h"
#include "python/src/types.h"
#include "tenon/dispatch/dispatcher.h"

namespace {

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "tenon._C",
                        "The compiled part of tenon.",
                        -1,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};

std::atomic<int> g_computing{0};
thread_local int t_computing = 0;

/// Runs when the interpreter is gone: whoever still computes cannot start anything else, and ends soon. Not
/// for ever, because an exit that hangs is worse than one that fails.
void wait_for_kernels() {
  using namespace std::chrono;
  const auto limit = steady_clock::now() + seconds(30);
  while (g_computing.load(std::memory_order_acquire) > 0 && steady_clock::now() < limit)
    std::this_thread::sleep_for(milliseconds(1));
}

bool fill(PyObject* module) {
  using namespace tenon::python;
  return add_exceptions(module) && add_source_language(module) && add_types(module) &&
         add_functions(module) && add_tensor_type(module) && add_storage(module) && add_conversion(module) &&
         add_indexing(module) && add_dlpack(module) && add_autograd(module) && add_introspection(module) &&
         add_optimizers(module) && add_dispatch_queries(module) && add_library(module);
}

}  // namespace

namespace tenon::python {

void enter_kernel() noexcept {
  ++t_computing;
  g_computing.fetch_add(1, std::memory_order_relaxed);
}
void leave_kernel() noexcept {
  --t_computing;
  g_computing.fetch_sub(1, std::memory_order_release);
}
void leave_kernels() noexcept {
  while (t_computing > 0) leave_kernel();
}

}  // namespace tenon::python

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&g_module);
  if (module) {
    Py_AtExit(&wait_for_kernels);
    // A forked child has this thread alone.
    pthread_atfork(nullptr, nullptr, [] { g_computing.store(t_computing, std::memory_order_relaxed); });
  }
  if (module && !tenon::python::guarded([&] { return fill(module) ? module : nullptr; })) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
