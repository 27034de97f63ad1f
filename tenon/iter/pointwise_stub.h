// The stubs of pointwise operators, one for each: a device that has a function of its own for an
// operator fills in `NAME_stub`, and gets calls that are checked, with the outputs allocated, as a
// TensorIterator and the call's numbers. Where it has none, or declines, the device's function for
// expressions runs the call (pointwise_device.h). The host runs
// expressions, unless a library has a function for it (REGISTER_DISPATCH). Declared in generated headers
// (tenon/generated/FAMILY/stubs.h).
#pragma once

#include <array>
#include <span>

#include "tenon/dispatch/stub.h"
#include "tenon/iter/pointwise.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::detail {

/// Boxed: the outputs, then the inputs in the outputs' sizes.
template <>
struct StubArg<const TensorIterator&> {
  static constexpr std::array<StubType, 1> types{{{.base = "Tensor", .several = true}}};
  static void push(Stack& s, const TensorIterator& iter);
};
/// Only operators call their stubs, and these fall back by themselves.
template <>
struct HostArgument<const TensorIterator&> {
  const TensorIterator& value;
  explicit HostArgument(const TensorIterator& iter) : value(iter) {}
  [[noreturn]] void add(HostCopies& copies, Access);
  const TensorIterator& get() { return value; }
};

/// Runs a device's own function for an operator, or the host's. False: it has none, or declines the call.
bool run_pointwise_stub(const StubBase& stub, const TensorIterator& iter,
                        std::span<const Scalar* const> scalars);

/// Lists the stub of the operator `info`: what runs expressions serves it, too.
struct PointwiseStubListing {
  template <class S>
  PointwiseStubListing(S& stub, const PointwiseInfo& info) noexcept {
    list(stub, info);
  }

 private:
  static void list(StubBase& stub, const PointwiseInfo& info) noexcept;
};

}  // namespace tenon::detail
