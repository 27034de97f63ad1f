// A device with a kernel that is not what its operator is, in the way that the environment's MISFIT says.
#include <cstdlib>

#include "tests/devices/planted/kernels.cc"
#include "tests/devices/planted/table.cc"

namespace abi = tenon::abi;

namespace {

abi::Tensor of_two(const abi::Tensor& self, const abi::Tensor&) { return self; }
abi::Tensor of_float(abi::Call&, const abi::Tensor& self, double) { return self; }
void of_nothing(const abi::Tensor&) {}
abi::Tensor of_layout(const abi::Tensor& self, abi::Layout) { return self; }
abi::Tensor of_maybe_format(const abi::Tensor& self, std::optional<abi::MemoryFormat>) { return self; }
abi::Tensor of_generator(const abi::Tensor& self, abi::Generator, double) { return self; }
std::tuple<abi::Tensor, abi::Tensor> two_of(const abi::Tensor& self, int64_t, bool) { return {self, self}; }

TENON_LIBRARY(misfit, m) {
  if (std::string_view(std::getenv("MISFIT")) == "def") m.def("own(Tensor x, int n) -> Tensor", &of_nothing);
}
TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {
  const std::string_view how = std::getenv("MISFIT");
  if (how == "count") m.impl("neg", &of_two);
  if (how == "type") m.impl("softmax.int", &of_float);
  if (how == "none") m.impl("neg", &of_nothing);
  if (how == "layout") m.impl("contiguous", &of_layout);
  if (how == "maybe") m.impl("contiguous", &of_maybe_format);
  if (how == "never")
    m.impl(
        "clone", +[](const abi::Tensor& self, abi::MemoryFormat) { return self; });
  if (how == "generator") m.impl("bernoulli.p", &of_generator);
  if (how == "right") m.impl("sort", &two_of);
}

}  // namespace
