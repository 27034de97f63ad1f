#include "tenon/iter/host.h"

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/cpu_target.h"
#include "backends/cpu/pointwise/interpreter.h"

namespace tenon {

namespace {

struct Compiled : HostProgram {
  explicit Compiled(const expr::Expression& e) : HostProgram{&run_program}, program(e) {}

  static void run_program(const HostProgram& self, void* const* ptrs, size_t n, const void* numbers) {
    static_cast<const Compiled&>(self).program.run(ptrs, n, numbers);
  }

  cpu::Program program;
};

const HostProgram* compile(const expr::Expression& e) { return new Compiled(e); }

}  // namespace

constinit const HostBackend kHost{&cpu::convert_fn, &compile, &cpu::cpu_target_name};

}  // namespace tenon
