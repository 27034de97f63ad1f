// What the tests of this room share: openreg for a scope, and tensors on it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tenon/autograd/autograd.h"
#include "tenon/core/error.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/plugin/load.h"

namespace tenon::testing {

/// Checks that `f` throws an Error of that kind whose text holds `part`.
template <class F>
void expect_error(F&& f, ErrorKind kind, const std::string& part) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << part;
}

/// The elements in logical order, once the device has computed them.
inline std::vector<double> values(const Tensor& t) {
  const NoGradGuard no_grad;
  const Tensor host = t.detach().to(kCPU).to(kFloat64).contiguous();
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}
inline Tensor on(Device device, const std::vector<double>& numbers) {
  const Tensor host = make_empty({static_cast<int64_t>(numbers.size())}, kFloat64);
  std::copy(numbers.begin(), numbers.end(), host.data_ptr<double>());
  return host.to(device);
}
inline Tensor filled(Device device, int64_t n, double value) {
  return full({n}, value, TensorOptions(device).dtype(kFloat32));
}

}  // namespace tenon::testing

#ifdef TENON_OPENREG
namespace tenon::testing {

/// A device of openreg, unloaded at the end of the scope: nothing of it may live then.
class OpenReg {
 public:
  explicit OpenReg(std::string name, const DeviceOptions& options = {})
      : name_(std::move(name)), device_(load_device(TENON_OPENREG, name_, options)) {}
  ~OpenReg() { EXPECT_NO_THROW(unload_device(name_)); }
  OpenReg(const OpenReg&) = delete;
  OpenReg& operator=(const OpenReg&) = delete;

  Device operator[](int index) const { return Device(device_.backend, static_cast<int8_t>(index)); }
  /// A stream that need not be dropped before the device.
  Stream stream(int index) const {
    const Stream made = Stream::create((*this)[index]);
    made.release();
    return made;
  }

 private:
  std::string name_;
  Device device_;
};

}  // namespace tenon::testing
#endif
