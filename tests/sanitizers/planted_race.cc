// A kernel with a data race, called from two threads: what the ThreadSanitizer build must report. Proves that
// the clean runs beside it would have seen one.
#include <thread>

#include "tenon/dispatch/library.h"

namespace {

int64_t calls = 0;

tenon::Tensor count(const tenon::Tensor& self) {
  ++calls;  // not atomic: the planted fault
  return self;
}

}  // namespace

TENON_LIBRARY(planted, m) { m.def("count(Tensor self) -> Tensor", &count); }

int main() {
  const auto op = tenon::Dispatcher::singleton()
                      .find_schema_or_throw("planted::count")
                      .typed<tenon::Tensor(const tenon::Tensor&)>();
  const tenon::Tensor t = tenon::make_empty({1}, tenon::kFloat32);
  const auto run = [&] {
    for (int i = 0; i < 1000; ++i) op.call(t);
  };
  std::thread other(run);
  run();
  other.join();
  return 0;
}
