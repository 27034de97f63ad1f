// A kernel that reads behind its tensor: what the AddressSanitizer build must report. The tensor's bytes lie
// in a block of Tenon's own allocator, so this also proves that the allocator does not hide overflows.
#include "tenon/dispatch/library.h"

namespace {

tenon::Tensor read_behind(const tenon::Tensor& self) {
  tenon::Tensor result = tenon::make_empty({1}, tenon::kFloat32);
  *result.data_ptr<float>() = self.data_ptr<float>()[self.numel()];  // the planted fault
  return result;
}

}  // namespace

TENON_LIBRARY(planted, m) { m.def("read_behind(Tensor self) -> Tensor", &read_behind); }

int main(int argc, char**) {
  // The size is not known to the compiler.
  const tenon::Tensor t = tenon::make_empty({argc}, tenon::kFloat32);
  *t.data_ptr<float>() = 1;
  tenon::Dispatcher::singleton()
      .find_schema_or_throw("planted::read_behind")
      .typed<tenon::Tensor(const tenon::Tensor&)>()
      .call(t);
  return 0;
}
